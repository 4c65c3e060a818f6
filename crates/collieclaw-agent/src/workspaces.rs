//! Workspaces: the folders that the operator trusts, each with rules of its own (C16).
//!
//! Everything about a workspace is kept in CollieClaw's home, where no tool can change it. Nothing is ever read from
//! the workspace itself. Start with [`WorkspaceStore`] and [`WorkspaceRules`].

mod allow;
mod cargo_seed;
mod git_identity;
mod path_search;
mod rules;
mod script;
mod store;
mod toolchains;
mod trust;

pub use allow::{AllowError, AllowReport, ProgramOrigin, RuleEditor};
pub use path_search::{ProgramSearch, SkippedFolder};
pub use rules::{PinnedProgram, WorkspaceNetwork, WorkspaceRules};
pub(crate) use script::read_program_file;
pub use script::{MAX_SCRIPT_BYTES, hash_file};
pub use store::{WorkspaceError, WorkspaceStore};
pub use toolchains::{ToolchainPlaces, plan_toolchain_access, toolchain_access};
pub use trust::{FolderIdentity, FolderRefusal, TrustBounds};
