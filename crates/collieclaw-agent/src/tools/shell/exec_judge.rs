//! Judges the programs that a line executes, in the thread that traces them (C17).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use collieclaw_gate::{
    ExecVerdict, ExecutedProgram, GatePolicy, GateReason, OtherProcesses, ProgramOrigin, RiskLevel,
    judge_executed_program,
};
use ward_process::{ExecDecision, ExecJudge, ExecutedImage, ProcessLabel};

use crate::receipts::{ExecutedCommand, ExecutedCommands};
use crate::security::SystemFacts;

/// The label of processes whose programs belong to the line. It is the strictest label, which a process of unknown origin
/// gets as well.
const LINE_LABEL: ProcessLabel = ProcessLabel(0);

/// The label of processes whose programs a listed program has started by itself.
const PROGRAM_LABEL: ProcessLabel = ProcessLabel(1);

/// The number of refusals of programs that are reported for one line.
const MAX_REPORTED_REFUSALS: usize = 8;

/// The number of questions about a process until its neighbours count as running. There is a millisecond between two.
const MAX_QUESTIONS: u32 = 100;

/// The programs of a line so far, shared with the threads that judge them.
#[derive(Debug, Default)]
pub(super) struct CommandLog {
    commands: ExecutedCommands,
    /// The refusal that ended the line.
    refusal: Option<String>,
    /// Refusals of programs that listed programs have started.
    notices: Vec<String>,
    /// The files that commands of the line have downloaded.
    downloads: BTreeSet<PathBuf>,
}

/// A handle on the log of a line.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedCommandLog(Arc<Mutex<CommandLog>>);

impl SharedCommandLog {
    fn with<T>(&self, change: impl FnOnce(&mut CommandLog) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a program that runs.
    pub(super) fn add_run(&self, program: &str, arguments: &[String]) {
        self.with(|log| {
            if log.commands.has_room() {
                log.commands.add(ExecutedCommand::new(program, arguments, ExecutedCommand::RUN));
            } else {
                log.commands.count_unlisted();
            }
        });
    }

    fn downloads(&self) -> BTreeSet<PathBuf> {
        self.with(|log| log.downloads.clone())
    }

    fn add_downloads(&self, downloads: BTreeSet<PathBuf>) {
        self.with(|log| log.downloads.extend(downloads));
    }

    fn add_refused(&self, program: &str, arguments: &[String], verdict: &'static str) {
        self.with(|log| log.commands.add(ExecutedCommand::new(program, arguments, verdict)));
    }

    /// Returns the refusal that ended the line.
    pub(super) fn refusal(&self) -> Option<String> {
        self.with(|log| log.refusal.clone())
    }

    /// Takes the reports about refused programs.
    pub(super) fn take_notices(&self) -> Vec<String> {
        self.with(|log| std::mem::take(&mut log.notices))
    }

    /// Takes the list of programs for the receipt.
    pub(super) fn take_commands(&self) -> ExecutedCommands {
        self.with(|log| std::mem::take(&mut log.commands))
    }
}

/// The first program of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstProgram {
    /// Our own shell, which runs the line.
    LineShell,
    /// A program of a plan.
    Planned,
}

/// The rules for the programs of one process tree.
pub(super) struct JudgingRules {
    pub(super) policy: Arc<GatePolicy>,
    pub(super) line_risk: RiskLevel,
    /// Folders to which the programs can write.
    pub(super) writable: Vec<PathBuf>,
    /// Programs of the line in other process trees.
    pub(super) neighbours: OtherProcesses,
}

/// Judges the programs of one process tree.
pub(super) struct LineJudge {
    rules: JudgingRules,
    log: SharedCommandLog,
    /// The first program, until it is executed.
    first: Option<FirstProgram>,
    /// The environment of the first program.
    environment: BTreeSet<OsString>,
    /// The number of questions about processes that are about to run an allowed script.
    questions: BTreeMap<i32, u32>,
}

impl LineJudge {
    pub(super) fn new(rules: JudgingRules, log: SharedCommandLog, first: FirstProgram) -> Self {
        let (environment, questions) = Default::default();
        Self { rules, log, first: Some(first), environment, questions }
    }

    /// Returns what the other processes of the line do; `None` if that can be told only later. Only the answer about an
    /// allowed script matters. A shell that has just forked the process needs a moment until it waits.
    fn other_processes(&mut self, image: &ExecutedImage, origin: ProgramOrigin) -> Option<OtherProcesses> {
        if origin == ProgramOrigin::Program
            || self.rules.neighbours == OtherProcesses::MayRun
            || !self.may_run_script(image)
        {
            return Some(OtherProcesses::MayRun);
        }
        if ancestors_wait(image.pid, image.other_processes) {
            self.questions.remove(&image.pid);
            return Some(OtherProcesses::Waiting);
        }
        let questions = self.questions.entry(image.pid).or_default();
        *questions += 1;
        if *questions < MAX_QUESTIONS {
            return None;
        }
        self.questions.remove(&image.pid);
        Some(OtherProcesses::MayRun)
    }

    /// Returns true if an allowed script is among the arguments. The kernel passes a script as the first or the second
    /// argument of its interpreter.
    fn may_run_script(&self, image: &ExecutedImage) -> bool {
        let scripts = &self.rules.policy.allowed_scripts;
        let is_allowed = |text: &OsString| {
            let path = image.folder.join(text).canonicalize();
            path.is_ok_and(|path| scripts.contains_key(&path))
        };
        !scripts.is_empty() && image.arguments.iter().skip(1).take(2).any(is_allowed)
    }

    fn refuse(&self, arguments: &[String], origin: ProgramOrigin, reason: &GateReason) -> ExecDecision {
        let text = format!("refused to run `{}`: {}", shorten_command(arguments), reason.detail());
        self.log.with(|log| match origin {
            ProgramOrigin::Line => {
                log.refusal.get_or_insert(text);
                ExecDecision::KillTree
            }
            ProgramOrigin::Program => {
                if log.notices.len() < MAX_REPORTED_REFUSALS {
                    log.notices.push(text);
                }
                ExecDecision::KillProcess
            }
        })
    }

    /// Returns the names of the variables that a program no longer has.
    fn removed_variables(&self, environment: &[OsString]) -> Vec<String> {
        let names = |entry: &OsString| lossy(entry).split_once('=').map(|(name, _)| name.to_owned());
        let kept: BTreeSet<String> = environment.iter().filter_map(names).collect();
        self.environment.iter().filter_map(names).filter(|name| !kept.contains(name)).collect()
    }

    /// Returns the variables that the line has changed.
    fn changed_variables(&self, environment: &[OsString]) -> Vec<(String, String)> {
        let changed = environment.iter().filter(|entry| !self.environment.contains(*entry));
        changed
            .filter_map(|entry| {
                let entry = entry.to_string_lossy();
                // Programs ignore an entry without `=`, also the dynamic loader.
                let (name, value) = entry.split_once('=')?;
                Some((name.to_owned(), value.to_owned()))
            })
            .collect()
    }
}

/// Returns a command for a message.
pub(super) fn shorten_command(words: &[String]) -> String {
    const MAX_COMMAND_BYTES: usize = 200;
    crate::tools::truncate_text(&words.join(" "), MAX_COMMAND_BYTES)
}

impl ExecJudge for LineJudge {
    fn judge(&mut self, image: &ExecutedImage) -> ExecDecision {
        let arguments: Vec<String> = image.arguments.iter().map(|text| lossy(text)).collect();
        let program = lossy(image.program.as_os_str());
        let first = self.first.take();
        if first.is_some() {
            self.environment = image.environment.iter().cloned().collect();
        }
        if first == Some(FirstProgram::LineShell) {
            return ExecDecision::Run(LINE_LABEL);
        }
        let origin = if image.label == PROGRAM_LABEL { ProgramOrigin::Program } else { ProgramOrigin::Line };
        let environment = self.changed_variables(&image.environment);
        let removed_variables = self.removed_variables(&image.environment);
        let Some(others) = self.other_processes(image, origin) else { return ExecDecision::AskAgain };
        // The kernel shows a file by its path, and a pipe or a socket by a name without a slash.
        let output = std::fs::read_link(format!("/proc/{}/fd/1", image.pid)).ok();
        let output = output.filter(|file| file.is_absolute());
        let executed = ExecutedProgram {
            program: &image.program,
            file: &image.file,
            arguments: &arguments,
            environment: &environment,
            removed_variables: &removed_variables,
            folder: &image.folder,
            started_by: origin,
            others,
            writable: &self.rules.writable,
            downloads: &self.log.downloads(),
            output: output.as_deref(),
        };
        match judge_executed_program(&executed, self.rules.line_risk, &self.rules.policy, &SystemFacts) {
            ExecVerdict::Run { children, downloads } => {
                self.log.add_downloads(downloads);
                self.log.add_run(&program, &arguments);
                ExecDecision::Run(match children {
                    ProgramOrigin::Line => LINE_LABEL,
                    ProgramOrigin::Program => PROGRAM_LABEL,
                })
            }
            ExecVerdict::Refused(reason) => {
                self.log.add_refused(&program, &arguments, reason.code());
                self.refuse(&arguments, origin, &reason)
            }
        }
    }

    fn judge_unreadable(&mut self, error: std::io::Error) -> ExecDecision {
        self.log.with(|log| {
            log.refusal.get_or_insert(format!("refused to run a program that can't be inspected: {error}"));
        });
        ExecDecision::KillTree
    }
}

fn lossy(text: &OsStr) -> String {
    text.to_string_lossy().into_owned()
}

/// Returns true if the nearest `count` ancestors of a process all wait for a child.
fn ancestors_wait(pid: i32, count: usize) -> bool {
    let mut pid = pid;
    for _ in 0..count {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
        let Some(parent) = parent else { return false };
        pid = parent;
        let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
        if !WAIT_CALLS.contains(&call.split(' ').next().unwrap_or_default()) {
            return false;
        }
    }
    true
}

/// The numbers of `wait4` and `waitid`.
#[cfg(target_arch = "x86_64")]
const WAIT_CALLS: [&str; 2] = ["61", "247"];
#[cfg(not(target_arch = "x86_64"))]
const WAIT_CALLS: [&str; 2] = ["260", "95"];
