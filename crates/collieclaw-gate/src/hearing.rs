//! The hearing of a shell line: every command in its tree is judged, and the plan is made of what is left.

mod awk;
mod command;
mod destructive;
mod expand;
mod fetched;
mod jq;
mod put;
mod sed;
mod variable;
mod walk;
mod words;
mod written;

use std::path::PathBuf;

use crate::facts::Facts;
use crate::plan::{Act, Plan, PlannedCommand};
use crate::policy::GatePolicy;
use crate::programs::Argument;
use crate::reason::Reason;
use crate::shell::{self, At};
use crate::verdict::{Autonomy, Findings, Risk, Verdict, Weight};
use command::Judging;

/// What the gate says of a shell line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellVerdict {
    /// The verdict.
    pub verdict: Verdict,
    /// What runs. `None` if the line goes beyond what is carried out from the tree; only a real shell could run it.
    pub plan: Option<Plan>,
}

/// Judges a shell line that would run in the workspace.
#[must_use]
pub fn judge_shell(line: &str, autonomy: Autonomy, policy: &GatePolicy, facts: &dyn Facts) -> ShellVerdict {
    let mut hearing = Hearing::new(line, policy, facts);
    let plan = match shell::parse(line) {
        Ok(parsed) => {
            hearing.here.clone_from(&parsed.here_documents);
            hearing.hear(&parsed.script)
        }
        Err(unreadable) => {
            let column = hearing.column(unreadable.at);
            hearing.findings.add(Reason::Unreadable { what: unreadable.what, column });
            None
        }
    };
    if plan.is_none() && hearing.findings.heaviest() < Weight::High {
        // What can't be carried out from the tree is never run as if it could.
        hearing.unknowable("this can't be carried out without a shell", At(0));
    }
    let plan = plan.filter(|_| hearing.findings.heaviest() < Weight::Blocked);
    ShellVerdict { verdict: hearing.findings.decide(autonomy), plan }
}

/// Judges a command of a plan once more, just before it runs: what ran before may have changed where its paths lead.
/// The reason why it is more than the whole line was found to be, if it is.
#[must_use]
pub fn judge_again(
    command: &PlannedCommand,
    was: Risk,
    policy: &GatePolicy,
    facts: &dyn Facts,
) -> Option<Reason> {
    let Act::Run { words, .. } = &command.act else { return None };
    let mut hearing = Hearing::new("", policy, facts);
    let words: Vec<Argument> =
        words.iter().map(|word| Argument { text: Some(word.clone()), at: At(0) }).collect();
    hearing.run(&words, &Stand { folder: Some(command.folder.clone()) }, Judging::Words);
    let most = match was {
        Risk::Low => Weight::Low,
        Risk::Medium => Weight::Medium,
        Risk::High => Weight::High,
    };
    if hearing.findings.heaviest() <= most {
        return None;
    }
    hearing.findings.decide(policy.autonomy).reasons.into_iter().next()
}

/// The state of a hearing.
struct Hearing<'a> {
    line: &'a str,
    policy: &'a GatePolicy,
    facts: &'a dyn Facts,
    findings: Findings,
    /// How many lines inside lines this one is.
    inner: usize,
    here: Vec<shell::Word>,
    patience: Patience,
    names: Names,
    /// The pattern that the names which stand in the place of `{}` fit.
    named: Option<String>,
}

/// Whether `{}` in the words at hand stands for the names of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Written,
    Inserted,
}

/// How much more will be looked at, so that the work grows with the length of a line and not faster. Whoever runs out
/// of it has not judged everything, so the line is refused.
struct Patience {
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
    puts: usize,
    /// Words that are looked along for what is fetched and run.
    flow: usize,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            wrappers: 16,
            inner_words: 10_000,
            inner_lines: 100,
            inner_bytes: 1 << 15,
            paths: 5_000,
            folders: 200,
            puts: 4_000,
            flow: 30_000,
        }
    }
}

/// Where a command stands.
#[derive(Clone)]
struct Stand {
    /// The folder it runs in, if that is known.
    folder: Option<PathBuf>,
}

impl<'a> Hearing<'a> {
    fn new(line: &'a str, policy: &'a GatePolicy, facts: &'a dyn Facts) -> Self {
        Self {
            line,
            policy,
            facts,
            findings: Findings::default(),
            inner: 0,
            here: Vec::new(),
            patience: Patience::default(),
            names: Names::Written,
            named: None,
        }
    }
}

impl Hearing<'_> {
    /// The column for people: counted in characters, from one.
    fn column(&self, at: At) -> usize {
        // Where nobody is shown it, it is not counted: each count goes through all that is before.
        if !self.findings.have_room() {
            return 1;
        }
        self.line.get(..at.0).map_or(at.0, |before| before.chars().count()) + 1
    }

    /// Not everything was looked at.
    fn tired(&mut self, what: &'static str) {
        self.findings.add(Reason::Unreadable { what, column: 1 });
    }

    fn unknowable(&mut self, what: &'static str, at: At) {
        let column = self.column(at);
        self.findings.add(Reason::Unknowable { what, column });
    }
}
