//! The Model Context Protocol, both ways: tools of other servers behind our door, and our tools for other agents.
//!
//! A server's tools are *pinned*: somebody has seen their names, descriptions and schemas and said yes
//! ([`PinnedServer`]). Only these are offered, so that nothing has to be started to know them; and before the first call the
//! server must still list them unchanged. A server runs in the sandbox, or it is there already on a loopback address.
//!
//! The protocol is spoken by a program of its own, `collieclaw-mcp`, in a sandbox with nothing of anyone's: here nobody
//! reads what strangers write, but for what [`mod@line`] lets through. It is started with the first call of a server's
//! tool, or with [`relay`], and with nothing else.

mod adapter;
mod pins;
mod reply_mailbox;
pub mod serve;
mod server_process;
mod session;
mod session_pool;
mod stderr_capture;
mod tool;

pub use adapter::locate_program as speaker;
pub use collieclaw_mcp_ipc::PinnedTool;
pub use pins::{PinnedServer, PinnedToolChange, ToolPinError};
pub use server_process::McpStartContext;
pub use session::{McpCallError, McpSession};
pub use session_pool::{ApprovedServer, McpSessionPool};
pub use tool::{McpServerSet, offered_name};
