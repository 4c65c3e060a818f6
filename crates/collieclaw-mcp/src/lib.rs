//! The Model Context Protocol in both directions: tools of MCP servers for our agent, and our tools for other
//! agents.
//!
//! A server's tools are *pinned*: an operator has seen their names, descriptions and schemas and approved
//! them ([`PinnedServer`]). Only pinned tools are offered to the model, so no server has to start just to
//! list them. Before the first call the server must list the same tools again. A server runs in the sandbox,
//! or already listens on a loopback address.
//!
//! A separate program, `collieclaw-mcp`, implements the protocol in a sandbox without access to the user's
//! files. So this process parses no untrusted input except the few messages of [`collieclaw_mcp_ipc`]. The
//! program starts with the first call of a server's tool, or with [`serve`].

mod adapter;
mod failure;
mod pins;
mod reply_mailbox;
pub mod serve;
mod server_process;
mod session;
mod session_pool;
mod stderr_capture;
mod tool;

pub use adapter::locate_adapter;
pub use collieclaw_mcp_ipc::PinnedTool;
pub use failure::McpFailure;
pub use pins::{PinnedServer, PinnedToolChange, ToolPinError};
pub use server_process::McpStartContext;
pub use session::{McpCallError, McpSession};
pub use session_pool::{ApprovedServer, McpSessionPool};
pub use tool::{McpServerSet, offered_name};
