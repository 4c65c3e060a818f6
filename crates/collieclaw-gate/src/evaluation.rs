//! The hearing of a shell line: every command in its tree is judged, and the plan is made of what is left.

mod awk;
mod command;
mod destructive;
mod expand;
mod fetch_and_run;
mod jq;
mod program_arguments;
mod script_outputs;
mod sed;
mod transfer;
mod variable;
mod walk;

use std::path::PathBuf;

use crate::facts::MachineFacts;
use crate::plan::{PlannedAction, PlannedCommand, ShellPlan};
use crate::policy::GatePolicy;
use crate::programs::CommandArgument;
use crate::reason::GateReason;
use crate::shell::{self, BytePosition};
use crate::verdict::{AutonomyLevel, GateFindings, GateVerdict, ReasonWeight, RiskLevel};
use command::JudgingPhase;

/// What the gate says of a shell line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellVerdict {
    /// The verdict.
    pub verdict: GateVerdict,
    /// What runs. `None` if the line goes beyond what is carried out from the tree; only a real shell could run it.
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
    let mut hearing = ShellEvaluation::new(line, policy, facts);
    let plan = match shell::parse(line) {
        Ok(parsed) => {
            hearing.here_documents.clone_from(&parsed.here_documents);
            hearing.judge_script(&parsed.script)
        }
        Err(unreadable) => {
            let column = hearing.column(unreadable.at);
            hearing.findings.add(GateReason::Unreadable { what: unreadable.what, column });
            None
        }
    };
    if plan.is_none() && hearing.findings.heaviest() < ReasonWeight::High {
        // What can't be carried out from the tree is never run as if it could.
        hearing.add_unknowable("this can't be carried out without a shell", BytePosition(0));
    }
    let plan = plan.filter(|_| hearing.findings.heaviest() < ReasonWeight::Blocked);
    ShellVerdict { verdict: hearing.findings.decide(autonomy), plan }
}

/// Judges a command of a plan once more, just before it runs: what ran before may have changed where its paths lead.
/// The reason why it is more than the whole line was found to be, if it is.
#[must_use]
pub fn rejudge_command(
    command: &PlannedCommand,
    was: RiskLevel,
    policy: &GatePolicy,
    facts: &dyn MachineFacts,
) -> Option<GateReason> {
    let PlannedAction::Run { words, .. } = &command.action else { return None };
    let mut hearing = ShellEvaluation::new("", policy, facts);
    let words: Vec<CommandArgument> =
        words.iter().map(|word| CommandArgument { text: Some(word.clone()), at: BytePosition(0) }).collect();
    hearing.judge_program(
        &words,
        &CommandFolder { folder: Some(command.folder.clone()) },
        JudgingPhase::Words,
    );
    let most = match was {
        RiskLevel::Low => ReasonWeight::Low,
        RiskLevel::Medium => ReasonWeight::Medium,
        RiskLevel::High => ReasonWeight::High,
    };
    if hearing.findings.heaviest() <= most {
        return None;
    }
    hearing.findings.decide(policy.autonomy).reasons.into_iter().next()
}

/// The state of a hearing.
struct ShellEvaluation<'a> {
    line: &'a str,
    policy: &'a GatePolicy,
    facts: &'a dyn MachineFacts,
    findings: GateFindings,
    /// How many lines inside lines this one is.
    nesting: usize,
    here_documents: Vec<shell::ShellWord>,
    budget: EvaluationBudget,
    braces: BracesMeaning,
    /// The pattern that the names which stand in the place of `{}` fit.
    name_pattern: Option<String>,
}

/// Whether `{}` in the words at hand stands for the names of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BracesMeaning {
    Literal,
    FileNames,
}

/// How much more will be looked at, so that the work grows with the length of a line and not faster. Whoever runs out
/// of it has not judged everything, so the line is refused.
struct EvaluationBudget {
    /// Wrappers around the command at hand.
    wrappers: usize,
    /// Words of commands inside commands, each time they are looked at.
    inner_words: usize,
    /// Lines inside lines.
    inner_lines: usize,
    /// Their bytes.
    inner_bytes: usize,
    /// Paths, each of which is a question to the kernel.
    paths: usize,
    /// Folders that patterns are compared with.
    folders: usize,
    /// Files that are put over others.
    transfers: usize,
    /// Words that are looked along for what is fetched and run.
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

/// Where a command stands.
#[derive(Clone)]
struct CommandFolder {
    /// The folder it runs in, if that is known.
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
        }
    }
}

impl ShellEvaluation<'_> {
    /// The column for people: counted in characters, from one.
    fn column(&self, at: BytePosition) -> usize {
        // Where nobody is shown it, it is not counted: each count goes through all that is before.
        if !self.findings.has_room_for_high() {
            return 1;
        }
        self.line.get(..at.0).map_or(at.0, |before| before.chars().count()) + 1
    }

    /// Not everything was looked at.
    fn add_limit_exceeded(&mut self, what: &'static str) {
        self.findings.add(GateReason::Unreadable { what, column: 1 });
    }

    fn add_unknowable(&mut self, what: &'static str, at: BytePosition) {
        let column = self.column(at);
        self.findings.add(GateReason::Unknowable { what, column });
    }
}
