//! The plan of an allowed shell line: the checked syntax tree with every word expanded (C7.3b).
//!
//! Only the gate creates plans. The executor runs the plan and never parses shell text itself.

use std::path::PathBuf;

pub use crate::shell::ListOperator;

/// The command lists of a shell line, in the order in which they run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShellPlan {
    pub(crate) lists: Vec<PlannedList>,
}

impl ShellPlan {
    #[must_use]
    pub fn lists(&self) -> &[PlannedList] {
        &self.lists
    }
}

/// Pipelines joined by `&&` and `||`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedList {
    /// The pipeline that always runs.
    pub first: PlannedPipeline,
    /// The pipelines that run depending on the exit status before them.
    pub rest: Vec<(ListOperator, PlannedPipeline)>,
}

/// Commands of which each reads the output of the previous command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPipeline {
    /// True if `!` inverts the exit status.
    pub negated: bool,
    /// At least one command.
    pub commands: Vec<PlannedCommand>,
}

/// A command with the folder it runs in and its redirections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedCommand {
    pub action: PlannedAction,
    /// The folder the command runs in, with all links resolved.
    pub folder: PathBuf,
    /// The redirections, in the order in which they apply.
    pub redirections: Vec<PlannedRedirection>,
}

/// The effect of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedAction {
    /// Runs a program of the system.
    Run {
        /// The program's file.
        program: PathBuf,
        /// The program's name as written, followed by its arguments.
        words: Vec<String>,
        /// Environment variables for this program only.
        variables: Vec<(String, String)>,
    },
    /// `cd`: later commands run in this folder. If the folder can't be entered, the executor stops.
    ChangeFolder(PathBuf),
    /// `:`, or redirections without a command.
    Nothing,
}

/// A redirection of a file descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRedirection {
    /// 0, 1 or 2.
    pub descriptor: u32,
    pub target: PlannedTarget,
}

/// The target of a redirection. Paths are relative to the command's folder and must be opened beneath the
/// workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedTarget {
    Read(String),
    /// A file that is created or truncated.
    Write(String),
    Append(String),
    /// The target of another descriptor.
    Duplicate(u32),
    /// The text of a here-document.
    Text(String),
    /// `/dev/null`, which the executor opens itself.
    Null,
}
