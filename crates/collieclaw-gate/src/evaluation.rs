//! Evaluates shell lines: judges every command in the syntax tree and builds the plan of the line.

mod awk;
mod command;
mod destructive;
mod executed;
mod executed_script;
mod expand;
mod fetch_and_run;
mod found_files;
mod git_settings;
mod jq;
mod line_wrapper;
mod pipeline_neighbour;
mod possible_path;
mod program_arguments;
mod program_identity;
mod program_line;
mod project_program;
mod script_outputs;
mod sed;
mod special_words;
mod sqlite;
mod transfer;
mod variable;
mod walk;

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::facts::MachineFacts;
use crate::plan::{PlannedAction, PlannedCommand, ShellPlan};
use crate::policy::GatePolicy;
use crate::programs::CommandArgument;
use crate::reason::GateReason;
use crate::shell::{self, BytePosition};
use crate::verdict::{AutonomyLevel, GateFindings, GateVerdict, ReasonWeight, RiskLevel};
use command::JudgingPhase;
pub use executed::{
    ExecVerdict, ExecutedProgram, OtherProcesses, ProgramOrigin, can_start_programs, judge_executed_program,
};
pub use pipeline_neighbour::may_change_script;

/// The verdict on a shell line, with the plan that runs if the line is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellVerdict {
    pub verdict: GateVerdict,
    /// `None` if the line is refused at every level, or if only a real shell can run it. Below the level `full`, a real
    /// shell runs it only if every command is judged when it is executed.
    pub plan: Option<ShellPlan>,
}

/// Judges a shell line that would run in the workspace.
#[must_use]
pub fn judge_shell(
    line: &str,
    autonomy: AutonomyLevel,
    policy: &GatePolicy,
    facts: &dyn MachineFacts,
) -> ShellVerdict {
    let verdict = judge_line(line, TildeExpansion::UserHome, autonomy, policy, facts);
    if line.contains('~') && facts.judges_executions() && is_only_outside(&verdict.verdict) {
        let in_shell = judge_line(line, TildeExpansion::ShellHome, autonomy, policy, facts);
        if !in_shell.verdict.reasons.iter().any(|reason| reason.weight() == ReasonWeight::Blocked) {
            return in_shell;
        }
    }
    verdict
}

/// Returns true if a line is refused only because of paths outside of the workspace.
fn is_only_outside(verdict: &GateVerdict) -> bool {
    let is_blocked = |reason: &&GateReason| reason.weight() == ReasonWeight::Blocked;
    let mut blocked = verdict.reasons.iter().filter(is_blocked).peekable();
    blocked.peek().is_some() && blocked.all(|reason| matches!(reason, GateReason::OutsideWorkspace { .. }))
}

fn judge_line(
    line: &str,
    tilde: TildeExpansion,
    autonomy: AutonomyLevel,
    policy: &GatePolicy,
    facts: &dyn MachineFacts,
) -> ShellVerdict {
    let mut evaluation = ShellEvaluation::new(line, policy, facts);
    evaluation.tilde = tilde;
    let plan = match shell::parse(line) {
        Ok(parsed) => {
            evaluation.here_documents.clone_from(&parsed.here_documents);
            evaluation.judge_script(&parsed.script)
        }
        Err(unreadable) => {
            let column = evaluation.column(unreadable.at, ReasonWeight::Blocked);
            evaluation.findings.add(GateReason::Unreadable { what: unreadable.what, column });
            None
        }
    };
    // Each command of a plan has a temporary folder of its own; only in a shell do they share one.
    let plan = plan.filter(|_| !evaluation.findings.uses_temporary() && !evaluation.writes_unknown_files);
    if plan.is_none() && evaluation.findings.heaviest() < ReasonWeight::High {
        // A line without a plan must never pass as if it had one.
        evaluation.add_unknowable("this line needs a real shell", BytePosition(0));
    }
    let plan = plan.filter(|_| evaluation.findings.heaviest() < ReasonWeight::Blocked);
    ShellVerdict { verdict: evaluation.findings.decide(autonomy), plan }
}

/// Judges a command of a plan again just before it runs, because earlier commands may have changed where its
/// paths lead. Returns a reason if the command now weighs more than the risk of the approved line.
#[must_use]
pub fn rejudge_command(
    command: &PlannedCommand,
    line_risk: RiskLevel,
    policy: &GatePolicy,
    facts: &dyn MachineFacts,
) -> Option<GateReason> {
    let PlannedAction::Run { words, .. } = &command.action else { return None };
    let mut evaluation = ShellEvaluation::new("", policy, facts);
    if facts.judges_executions() {
        // A plan has no `~` left, except in lines for a second shell.
        evaluation.tilde = TildeExpansion::ShellHome;
    }
    let words: Vec<CommandArgument> =
        words.iter().map(|word| CommandArgument { text: Some(word.clone()), at: BytePosition(0) }).collect();
    evaluation.judge_program(
        &words,
        &CommandFolder { folder: Some(command.folder.clone()) },
        JudgingPhase::Words,
    );
    let approved = match line_risk {
        RiskLevel::Low => ReasonWeight::Low,
        RiskLevel::Medium => ReasonWeight::Medium,
        RiskLevel::High => ReasonWeight::High,
    };
    if evaluation.findings.heaviest() <= approved {
        return None;
    }
    evaluation.findings.decide(policy.autonomy).reasons.into_iter().next()
}

/// The state of evaluating a shell line.
struct ShellEvaluation<'a> {
    line: &'a str,
    policy: &'a GatePolicy,
    facts: &'a dyn MachineFacts,
    findings: GateFindings,
    /// The depth of nested shell lines (`sh -c '…'` inside `sh -c '…'`).
    nesting: usize,
    here_documents: Vec<shell::ShellWord>,
    budget: EvaluationBudget,
    braces: BracesMeaning,
    /// The pattern that all file names in place of `{}` match.
    name_pattern: Option<String>,
    /// The functions that the line defines.
    functions: BTreeSet<String>,
    /// The files that commands of the line download.
    downloaded_files: BTreeSet<PathBuf>,
    /// True if a command before the current pipeline may have changed files.
    files_may_have_changed: bool,
    /// True if a part of the line needs a real shell that has its commands judged.
    needs_shell: bool,
    /// True if a command of the line may have changed the folders in which the shell looks for programs (`PATH`).
    search_path_may_change: bool,
    /// True if a command computes the names of files that it writes. The checks before a plan rely on known names.
    writes_unknown_files: bool,
    /// True if the line names another command in case the current one fails, as in `rg x || grep x`.
    has_alternative: bool,
    subject: EvaluationSubject,
    /// The folders of `PATH` to which commands can write, for the commands that a program runs by itself.
    writable_search_folders: Vec<PathBuf>,
    /// True for a line whose commands are run by a program, which nobody judges as commands of the line.
    is_line_of_program: bool,
    tilde: TildeExpansion,
    /// The answer of [`MachineFacts::judges_executions`], asked at most once.
    judges_executions: Option<bool>,
}

/// The subject of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EvaluationSubject {
    /// The text of a line.
    Line,
    /// A program that was executed, so no builtin of a shell.
    ExecutedProgram,
}

/// The meaning of an unquoted `~`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TildeExpansion {
    /// The home of the user, as in a plan.
    UserHome,
    /// The value of `HOME` in the shell that runs the line: the commands' own home, unless the line changes the variable.
    ShellHome,
}

/// The meaning of `{}` in the current command: inside of `find -exec` it is replaced by file names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BracesMeaning {
    Literal,
    FileNames,
}

/// The remaining work for a line, so that the time grows only linearly with its length. A line that uses up a
/// budget can't be judged completely and is refused.
struct EvaluationBudget {
    /// Wrappers around the current command.
    wrappers: usize,
    /// Words of commands inside commands, counted each time they are judged.
    inner_words: usize,
    /// Shell lines inside shell lines.
    inner_lines: usize,
    /// Total bytes of the shell lines inside shell lines.
    inner_bytes: usize,
    /// Paths, each of which costs a system call.
    paths: usize,
    /// Folders that are listed to expand patterns.
    folders: usize,
    /// Files that are copied or moved over others.
    transfers: usize,
    /// Words that are searched for downloads that run.
    flow_words: usize,
}

impl Default for EvaluationBudget {
    fn default() -> Self {
        Self {
            wrappers: 16,
            inner_words: 10_000,
            inner_lines: 100,
            inner_bytes: 1 << 15,
            paths: 5_000,
            folders: 200,
            transfers: 4_000,
            flow_words: 30_000,
        }
    }
}

/// The working folder of a command; `None` if it is known only when the line runs.
#[derive(Clone)]
struct CommandFolder {
    folder: Option<PathBuf>,
}

impl<'a> ShellEvaluation<'a> {
    fn new(line: &'a str, policy: &'a GatePolicy, facts: &'a dyn MachineFacts) -> Self {
        Self {
            line,
            policy,
            facts,
            findings: GateFindings::default(),
            nesting: 0,
            here_documents: Vec::new(),
            budget: EvaluationBudget::default(),
            braces: BracesMeaning::Literal,
            name_pattern: None,
            functions: BTreeSet::new(),
            downloaded_files: BTreeSet::new(),
            files_may_have_changed: false,
            needs_shell: false,
            search_path_may_change: false,
            writes_unknown_files: false,
            has_alternative: false,
            subject: EvaluationSubject::Line,
            writable_search_folders: Vec::new(),
            is_line_of_program: false,
            tilde: TildeExpansion::UserHome,
            judges_executions: None,
        }
    }
}

impl ShellEvaluation<'_> {
    /// Returns the column of a position in characters, starting at 1, for a reason of this weight.
    fn column(&self, at: BytePosition, weight: ReasonWeight) -> usize {
        // Counting walks through the whole line, so skip it when the reason is going to be dropped.
        if !self.findings.has_room_for(weight) {
            return 1;
        }
        self.line.get(..at.0).map_or(at.0, |before| before.chars().count()) + 1
    }

    /// Refuses the line because the gate can't check all of it.
    fn add_limit_exceeded(&mut self, what: &'static str) {
        self.findings.add(GateReason::Unreadable { what, column: 1 });
    }

    fn add_unknowable(&mut self, what: &'static str, at: BytePosition) {
        if !self.judges_executions() {
            let column = self.column(at, ReasonWeight::High);
            return self.findings.add(GateReason::Unknowable { what, column });
        }
        // One reason is enough for the operator: the shell and the judge take care of all others.
        if !std::mem::replace(&mut self.needs_shell, true) {
            let column = self.column(at, ReasonWeight::Medium);
            self.findings.add(GateReason::JudgedWhenRun { what, column });
        }
    }

    /// Returns true if a real shell can run the line, with every command judged when it is executed.
    fn judges_executions(&mut self) -> bool {
        *self.judges_executions.get_or_insert_with(|| self.facts.judges_executions())
    }

    /// Returns the file of a command: the accepted program of the workspace, or the system's.
    fn resolve_program(&self, name: &str) -> Option<PathBuf> {
        self.policy.pinned_programs.get(name).cloned().or_else(|| self.facts.find_program(name))
    }
}
