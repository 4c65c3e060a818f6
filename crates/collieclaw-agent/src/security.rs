//! Protection of the machine from tools: file access through the workspace handle, facts for the gate, and
//! approvals.

mod approvals;
mod blocking_workers;
mod facts;
mod ownership;
mod removal;
mod workspace;

pub use approvals::{Approval, ApprovalCall, ApprovalError, ApprovalStore, ApprovalSubject, ListedApproval};
pub(crate) use blocking_workers::BlockingWorkers;
pub use facts::SystemFacts;
pub(crate) use facts::{PROGRAM_FOLDERS, exec_judging_fault, trusted_home_program};
pub use ownership::is_securely_owned;
pub use removal::remove_tree;
pub use workspace::{
    EntryKind, ExistingTarget, FileAccess, FileError, FolderListing, ListingDepth, ListingEntry, ListingKind,
    MAX_WALKED_ENTRIES, OutputMode, WalkExtent, WalkFilter, WalkStep, WalkedFile, WorkspaceHandle,
    WriteOutcome,
};
