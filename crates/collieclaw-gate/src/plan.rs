//! What runs, when a shell line was allowed: the checked tree with every word known (C7.3b).
//!
//! Only the gate makes one. Whoever carries it out reads no text of the shell again.

use std::path::PathBuf;

pub use crate::shell::ListOperator;

/// Commands to be carried out, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShellPlan {
    pub(crate) lists: Vec<PlannedList>,
}

impl ShellPlan {
    /// The lists, in order.
    #[must_use]
    pub fn lists(&self) -> &[PlannedList] {
        &self.lists
    }
}

/// Pipelines that wait for each other's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedList {
    /// The first one always runs.
    pub first: PlannedPipeline,
    /// The others, each with what it waits for.
    pub rest: Vec<(ListOperator, PlannedPipeline)>,
}

/// Commands whose output is the next one's input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPipeline {
    /// Whether its result is turned round.
    pub negated: bool,
    /// One at least.
    pub commands: Vec<PlannedCommand>,
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedCommand {
    /// What it does.
    pub action: PlannedAction,
    /// The folder it runs in, with all links followed.
    pub folder: PathBuf,
    /// In the order in which they are carried out.
    pub redirections: Vec<PlannedRedirection>,
}

/// What a command does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedAction {
    /// It runs a program of the system.
    Run {
        /// The file of the program.
        program: PathBuf,
        /// Its name as written, and its arguments.
        words: Vec<String>,
        /// Variables for it alone.
        variables: Vec<(String, String)>,
    },
    /// `cd`: the commands after it run there. If it can't be entered, nothing more runs.
    ChangeFolder(PathBuf),
    /// `:`, or redirections alone.
    Nothing,
}

/// Where a descriptor leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRedirection {
    /// 0, 1 or 2.
    pub descriptor: u32,
    /// Where to.
    pub target: PlannedTarget,
}

/// Where a descriptor leads. Paths are relative to the command's folder, and must be opened beneath the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedTarget {
    /// A file that is read.
    Read(String),
    /// A file that is made or emptied.
    Write(String),
    /// A file that is added to.
    Append(String),
    /// Where another descriptor leads.
    Duplicate(u32),
    /// A text.
    Text(String),
    /// Nowhere.
    Null,
}
