//! The gate: takes a tool call, a policy and facts about the machine, and returns a verdict with its reasons.
//!
//! The gate judges what a call *does*, not how it is spelled. It does no I/O: it reads no file, clock,
//! environment or network and runs nothing. Facts about the machine come from [`MachineFacts`]. Start with
//! [`judge`] and [`GateReason`].
//!
//! # What the gate decides
//! - **Commands.** It finds every command that a shell line runs, also inside quotes, lists, constructs,
//!   substitutions, here-documents and wrappers, and checks if a command is forbidden, destructive or not
//!   listed.
//! - **Arguments.** The table in `programs` says which arguments are paths, and which flags run, write or
//!   read something else. Tests compare the table with the installed programs.
//! - **Paths.** A path is judged as written and as the kernel resolves it now. Files that control other
//!   programs (`.git/config`, hooks) are never written.
//! - **The plan.** The result for a shell line is a [`plan::ShellPlan`] in which all words are known and all
//!   patterns are expanded, so that no shell parses the text again.
//! - **Executed programs.** A line that needs a real shell has no plan. If the machine can stop programs where
//!   they are executed, such a line has medium risk, and [`judge_executed_program`] judges each program by its
//!   real file, arguments and environment.
//!
//! Where programs can't be stopped, anything that is known only at run time is high risk. A line that the gate
//! can't parse, or that is too large to check, is refused at every level.
//!
//! # What the gate leaves to the sandbox and the executor
//! - **Changes between check and use.** The executor opens files beneath the workspace and has the opened
//!   path judged again ([`judge_opened_path`], [`judge_write_target`]). It also has each command of a plan
//!   judged again just before the command runs ([`rejudge_command`]), because earlier commands may have moved
//!   or linked files.
//! - **Files that a program finds by itself**: links inside a folder (`diff -r`, `cp -r`, `find -exec`), the
//!   contents of an archive (`tar -x`), links inside the target folder of a copy, and effects of the commands
//!   of one pipeline on each other. Outside of the workspace, the sandbox shows only the system's programs
//!   and no user's files.
//! - **Behaviour of listed programs.** `git` obeys the settings of the repository it runs in. The sandbox
//!   protects the settings of the workspace's own repository (`.git/config`, `.git/hooks`, `.hg/hgrc`), but
//!   not those of a nested or new repository. A program that the table doesn't describe is trusted once the
//!   operator lists it. Interpreters and build tools run the project's code, which the gate doesn't judge.
//! - **Resources**: output size, time, memory, processes and the network.

pub mod plan;
pub mod shell;

mod address;
mod facts;
mod foreign;
mod path;
mod policy;
mod presets;
mod programs;
mod reason;
mod recheck;
mod system_files;
mod verdict;

mod call;
mod evaluation;

pub use address::{HttpMethod, UrlHost, UrlScheme, WebAddress, is_public};
pub use call::{ApprovalQuestion, ApprovalSource, GateOutcome, GateRequest, Permit, judge, judge_unlisted};
pub use evaluation::{
    ExecVerdict, ExecutedProgram, OtherProcesses, ProgramOrigin, ShellVerdict, can_start_programs,
    judge_executed_program, judge_shell, may_change_script, rejudge_command,
};
pub use facts::{MachineFacts, PathStatus, ScriptContent};
pub use foreign::{ForeignToolAccess, NetworkReach, WriteAccess};
pub use path::{PathAccess, normalize_path};
pub use policy::{
    CommandNetwork, DEFAULT_ALLOWED_COMMANDS, DEFAULT_FORBIDDEN_COMMANDS, DEFAULT_FORBIDDEN_PATHS,
    GatePolicy, PathBounds, ProjectPrograms,
};
pub use presets::{WORKSPACE_PRESETS, WorkspacePreset};
pub use reason::GateReason;
pub use recheck::{absolute_tool_path, judge_moved_entry, judge_opened_path, judge_write_target};
pub use system_files::NEEDED_ETC_FILES;
pub use verdict::{AutonomyLevel, GateDecision, GateFindings, GateVerdict, ReasonWeight, RiskLevel};
