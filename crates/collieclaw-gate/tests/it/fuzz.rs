//! Fuzz target; longer with `cargo xtask fuzz collieclaw-gate`.

use std::collections::BTreeSet;
use std::path::Path;

use collieclaw_gate::plan::{Act, Plan, PlannedCommand, To};
use collieclaw_gate::shell::{self, Command, Line, Script, Simple, Target, Word};
use collieclaw_gate::{
    Autonomy, Decision, Facts, GatePolicy, Reason, Seen, ShellVerdict, Weight, judge_shell,
};

use crate::blocked_lines::BLOCKED;
use crate::changing_lines::CHANGES;
use crate::harmless_lines::LISTED_TOO;
use crate::high_lines::HIGH;
use crate::looking_lines::LOOKS;
use crate::world::{World, policy};

/// More reasons than this tell nobody anything; four weights, each with its bound.
const MOST_REASONS: usize = 4 * 32;

struct Bench {
    policy: GatePolicy,
    world: World,
}

impl Bench {
    fn judge(&self, line: &str, autonomy: Autonomy) -> ShellVerdict {
        judge_shell(line, autonomy, &self.policy, &self.world)
    }

    fn weight(&self, line: &str) -> Weight {
        weight(&self.judge(line, Autonomy::Full))
    }

    /// All that must hold for any line. What is returned guides the run.
    fn check(&self, line: &str) -> (Weight, BTreeSet<&'static str>, bool) {
        let [readonly, supervised, full] =
            [Autonomy::ReadOnly, Autonomy::Supervised, Autonomy::Full].map(|level| self.judge(line, level));
        assert_eq!(full, self.judge(line, Autonomy::Full), "asked twice, answered twice");
        assert_eq!(supervised.plan, full.plan, "the level decides whether it runs, not what");
        assert!(full.verdict.decision <= supervised.verdict.decision);
        assert!(full.verdict.decision <= readonly.verdict.decision);
        let reasons = &full.verdict.reasons;
        assert!((1..=MOST_REASONS).contains(&reasons.len()));
        assert!(reasons.iter().all(|reason| !reason.detail().is_empty()));
        let weight = weight(&full);
        match shell::parse(line) {
            Err(_) => assert_eq!(weight, Weight::Blocked, "what can't be read runs at no level"),
            Ok(tree) => self.check_readable(line, &tree, weight),
        }
        if weight == Weight::Blocked {
            assert_eq!((&full.plan, full.verdict.decision), (&None, Decision::Deny));
        }
        if let Some(plan) = &full.plan {
            self.check_plan(plan, weight, readonly.verdict.decision);
        } else {
            assert!(weight >= Weight::High, "what passes has a plan");
        }
        (weight, reasons.iter().map(Reason::code).collect(), full.plan.is_some())
    }

    fn check_readable(&self, line: &str, tree: &Line, weight: Weight) {
        if weight < Weight::High {
            assert!(is_plain(&tree.script), "only what is known before it runs passes");
        }
        // What stands before a line makes it no better.
        assert!(self.weight(&format!("true; {line}")) >= weight || tree.script.lists.is_empty());
        assert!(self.weight(&format!("true\n{line}")) >= weight);
        if alone(&tree.script).is_some_and(can_be_wrapped) {
            for wrapper in ["env", "nice", "timeout 5", "nohup", "env nice -n 3"] {
                let wrapped = format!("{wrapper} {line}");
                assert!(self.weight(&wrapped) >= weight, "{wrapped:?}");
            }
        }
    }

    fn check_plan(&self, plan: &Plan, weight: Weight, at_readonly: Decision) {
        for command in commands(plan) {
            assert!(command.folder.starts_with("/w"), "{command:?}");
            for redirection in &command.redirections {
                let path = match &redirection.to {
                    To::Read(path) => path,
                    To::Write(path) | To::Append(path) => {
                        assert_eq!(at_readonly, Decision::Deny, "nothing is written at readonly");
                        path
                    }
                    To::Copy(_) | To::Text(_) | To::Null => continue,
                };
                assert!(self.is_inside(&command.folder.join(path)), "{path}");
            }
            match &command.act {
                Act::Run { words, .. } => {
                    let name = words.first().expect("a program has a name");
                    let name = name.rsplit('/').next().expect("there is a last part");
                    assert!(!self.policy.forbidden_commands.contains(name), "{name}");
                    let wraps =
                        ["env", "nice", "nohup", "time", "timeout", "stdbuf", "ionice"].contains(&name);
                    assert!(
                        weight >= Weight::High || wraps || self.policy.allowed_commands.contains(name),
                        "{name} is not listed"
                    );
                }
                Act::Enter(folder) => assert!(folder.starts_with("/w"), "{folder:?}"),
                Act::Nothing => {}
            }
        }
    }

    fn is_inside(&self, path: &Path) -> bool {
        match self.world.look(path) {
            Seen::Nothing { leads_to } | Seen::File { leads_to, .. } | Seen::Folder { leads_to } => {
                leads_to.starts_with("/w")
            }
            Seen::Special { .. } | Seen::Unreachable => false,
        }
    }
}

fn weight(judged: &ShellVerdict) -> Weight {
    judged.verdict.reasons.iter().map(Reason::weight).max().expect("a verdict has a reason")
}

fn commands(plan: &Plan) -> impl Iterator<Item = &PlannedCommand> {
    let pipelines = plan
        .lists()
        .iter()
        .flat_map(|list| std::iter::once(&list.first).chain(list.rest.iter().map(|(_, pipeline)| pipeline)));
    pipelines.flat_map(|pipeline| &pipeline.commands)
}

/// Whether a script is simple commands of words that need no shell.
fn is_plain(script: &Script) -> bool {
    let known = |word: &Word| word.unknowns().next().is_none();
    script.lists.iter().all(|list| {
        list.background.is_none()
            && list.pipelines().flat_map(|pipeline| &pipeline.commands).all(|command| match command {
                Command::Compound(_) => false,
                Command::Simple(simple) => {
                    simple.words.iter().all(known)
                        && simple.assignments.iter().all(|assignment| known(&assignment.value))
                        && simple.redirections.iter().all(|redirection| match &redirection.target {
                            Target::Read(word) | Target::Write(word) | Target::Append(word) => known(word),
                            Target::Descriptor(_) | Target::HereDocument(_) => true,
                            Target::ReadWrite(_) | Target::Closed | Target::Dialect(_) => false,
                        })
                }
            })
    })
}

/// The only command of a script.
fn alone(script: &Script) -> Option<&Simple> {
    let [list] = script.lists.as_slice() else { return None };
    match list.first.commands.as_slice() {
        [Command::Simple(simple)] if list.rest.is_empty() && !list.first.negated => Some(simple),
        _ => None,
    }
}

/// Whether a wrapper before a command is read as one: it must begin with a name.
fn can_be_wrapped(simple: &Simple) -> bool {
    let begins = simple.words.first().is_some_and(|word| word.at.0 == 0);
    let name = simple.words.first().and_then(Word::literal).unwrap_or_default();
    begins
        && simple.assignments.is_empty()
        && !name.contains('=')
        && !name.starts_with('-')
        && !name.is_empty()
}

#[test]
fn no_line_makes_the_gate_panic_or_break_its_word() {
    let hostile = BLOCKED.iter().chain(HIGH).map(|(line, _)| *line);
    let corpus: Vec<Vec<u8>> = hostile.chain(LOOKS.iter().chain(CHANGES).copied()).map(Vec::from).collect();
    let bench = Bench { policy: policy(LISTED_TOO), world: World::new() };
    let report =
        ward_fuzz::run("gate", &corpus, |bytes| bench.check(&String::from_utf8_lossy(bytes))).unwrap();
    println!("{report}");
}
