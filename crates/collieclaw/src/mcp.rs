//! The Model Context Protocol, both ways: tools of other servers behind our door, and our tools for other agents.
//!
//! A server's tools are *pinned*: somebody has seen their names, descriptions and schemas and said yes
//! ([`Pinned`]). Only these are offered, so that nothing has to be started to know them; and before the first call the
//! server must still list them unchanged. A server runs in the sandbox, or it is there already on a loopback address.
//!
//! The protocol is spoken by a program of its own, `collieclaw-mcp`, in a sandbox with nothing of anyone's: here nobody
//! reads what strangers write, but for what [`mod@line`] lets through. It is started with the first call of a server's
//! tool, or with [`serve`], and with nothing else.

mod complaint;
mod hearing;
pub mod line;
mod pins;
pub mod serve;
mod session;
mod sessions;
mod speaker;
mod start;
mod tool;

pub use pins::{Change, PinError, Pinned, PinnedTool};
pub use session::{Session, Trouble};
pub use sessions::{Approved, Sessions};
pub use speaker::program as speaker;
pub use start::Ground;
pub(crate) use tool::BETWEEN;
pub use tool::{Servers, offered_name};
