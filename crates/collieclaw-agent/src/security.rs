//! Protection of the machine from tools: file access through the workspace handle, facts for the gate, and
//! approvals.

mod approvals;
mod blocking_workers;
mod facts;
mod ownership;
mod workspace;

pub use approvals::{Approval, ApprovalCall, ApprovalError, ApprovalStore, ApprovalSubject, ListedApproval};
pub(crate) use blocking_workers::BlockingWorkers;
pub(crate) use facts::PROGRAM_FOLDERS;
pub use facts::SystemFacts;
pub(crate) use facts::exec_judging_fault;
pub use ownership::is_securely_owned;
pub use workspace::{
    FileAccess, FileError, FolderListing, ListingDepth, ListingEntry, ListingKind, OutputMode,
    WorkspaceHandle, WriteOutcome,
};
