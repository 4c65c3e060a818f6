//! What stands between a tool and the machine: the handle on the workspace, and what the gate is told of the world.

mod apart;
mod facts;
mod ours;
mod remembered;
mod workspace;

pub(crate) use apart::Apart;
pub(crate) use facts::PROGRAM_FOLDERS;
pub use facts::SystemFacts;
pub use ours::is_ours;
pub use remembered::{Approval, ApprovalError, Approvals, Listed, Subject, Subjected};
pub use workspace::{Access, Depth, Entry, FileError, Kind, Listing, Output, Workspace, Written};
