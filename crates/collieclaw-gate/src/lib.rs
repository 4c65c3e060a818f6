//! The gate: a tool call, a policy and facts in; a verdict with its reasons out.
//!
//! It judges what a call *does*, not how it is spelled. It reads no file, no clock, no environment and no network, and
//! runs nothing: what it must know about the machine it asks of [`MachineFacts`]. Start with [`judge`] and [`GateReason`].
//!
//! # What it decides
//! - Which commands a shell line runs, behind quotes, lists, constructs, substitutions, here-documents and wrappers;
//!   whether one of them is forbidden, destroys, or is not listed.
//! - What their words mean to them: which are paths, which flags run, write or read something else. This is one table,
//!   compared in the tests with the programs that are installed.
//! - Where paths lead, as written and as the kernel follows them at this moment; whether a file steers other programs
//!   (`.git/config`, hooks).
//! - What exactly runs: the [`plan::ShellPlan`], with all words known and all patterns resolved. No text is read again.
//!
//! What it can't know before it runs is high, and so is what only some shells understand. What it can't read, or would
//! not finish looking through, is refused at every level.
//!
//! # What is left to the sandbox and to whoever carries the plan out
//! - What changes between the check and the use: files must be opened beneath the workspace, and where they really lie
//!   judged again ([`judge_opened_path`], [`judge_write_target`]); each command of a plan is judged again just before it runs
//!   ([`rejudge_command`]), since what ran before it may have moved or linked what it is about.
//! - Links that a program meets on its way through a folder (`diff -r`, `cp -r`, `find -exec`), what an archive holds
//!   (`tar -x`), links that lie inside a folder that is copied into, and what commands of one pipe do to each other. Of what is outside of the workspace the sandbox shows the system's programs, and nothing of anyone's.
//! - What a listed program does of itself: `git` obeys the settings of the repository it stands in. The sandbox keeps
//!   those of the workspace itself (`.git/config`, `.git/hooks`, `.hg/hgrc`) as they are; a repository further down, or a
//!   new one, is not kept. A program that the table doesn't know is trusted as far as the operator listed it.
//! - Endless or huge output, time, memory, processes, and the network.

pub mod plan;
pub mod shell;

mod address;
mod facts;
mod foreign;
mod path;
mod policy;
mod programs;
mod reason;
mod recheck;
mod verdict;

mod call;
mod evaluation;

pub use address::{HttpMethod, UrlHost, UrlScheme, WebAddress, is_public};
pub use call::{ApprovalQuestion, ApprovalSource, GateOutcome, GateRequest, Permit, judge, judge_unlisted};
pub use evaluation::{ShellVerdict, judge_shell, rejudge_command};
pub use facts::{MachineFacts, PathStatus};
pub use foreign::{ForeignToolInfo, NetworkReach, WriteAccess};
pub use path::{PathAccess, normalize_path};
pub use policy::{
    DEFAULT_ALLOWED_COMMANDS, DEFAULT_FORBIDDEN_COMMANDS, DEFAULT_FORBIDDEN_PATHS, GatePolicy, PathBounds,
};
pub use reason::GateReason;
pub use recheck::{absolute_tool_path, judge_opened_path, judge_write_target};
pub use verdict::{AutonomyLevel, GateDecision, GateFindings, GateVerdict, ReasonWeight, RiskLevel};
