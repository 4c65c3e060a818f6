//! Fuzzes the gate with random shell lines. `cargo xtask fuzz collieclaw-gate` runs it for longer.

use std::collections::BTreeSet;
use std::path::Path;

use collieclaw_gate::plan::{PlannedAction, PlannedCommand, PlannedTarget, ShellPlan};
use collieclaw_gate::shell::{
    self, RedirectionTarget, ShellCommand, ShellLine, ShellScript, ShellWord, SimpleCommand,
};
use collieclaw_gate::{
    AutonomyLevel, GateDecision, GatePolicy, GateReason, MachineFacts, PathStatus, ReasonWeight,
    ShellVerdict, judge_shell,
};

use crate::blocked_cases::BLOCKED_LINES;
use crate::harmless_cases::EXTRA_ALLOWED;
use crate::high_risk_cases::HIGH_RISK_LINES;
use crate::modifying_cases::MODIFYING_LINES;
use crate::readonly_cases::READ_ONLY_LINES;
use crate::test_machine::{GateTestMachine, policy};

/// The maximum number of reasons in a verdict: 32 for each of the four weights.
const MAX_REASONS: usize = 4 * 32;

struct GateFuzzer {
    policy: GatePolicy,
    machine: GateTestMachine,
}

impl GateFuzzer {
    fn judge(&self, line: &str, autonomy: AutonomyLevel) -> ShellVerdict {
        judge_shell(line, autonomy, &self.policy, &self.machine)
    }

    fn weight(&self, line: &str) -> ReasonWeight {
        heaviest_weight(&self.judge(line, AutonomyLevel::Full))
    }

    /// Checks everything that must hold for any line. The result guides the fuzzer to new behaviour.
    fn check(&self, line: &str) -> (ReasonWeight, BTreeSet<&'static str>, bool) {
        let [readonly, supervised, full] =
            [AutonomyLevel::ReadOnly, AutonomyLevel::Supervised, AutonomyLevel::Full]
                .map(|level| self.judge(line, level));
        assert_eq!(full, self.judge(line, AutonomyLevel::Full), "the same line has two verdicts");
        assert_eq!(supervised.plan, full.plan, "the plan depends on the level of autonomy");
        assert!(full.verdict.decision <= supervised.verdict.decision);
        assert!(full.verdict.decision <= readonly.verdict.decision);
        let reasons = &full.verdict.reasons;
        assert!((1..=MAX_REASONS).contains(&reasons.len()));
        assert!(reasons.iter().all(|reason| !reason.detail().is_empty()));
        let weight = heaviest_weight(&full);
        match shell::parse(line) {
            Err(_) => assert_eq!(weight, ReasonWeight::Blocked, "a line that can't be parsed is not blocked"),
            Ok(tree) => self.check_readable(line, &tree, weight),
        }
        if weight == ReasonWeight::Blocked {
            assert_eq!((&full.plan, full.verdict.decision), (&None, GateDecision::Deny));
        }
        if let Some(plan) = &full.plan {
            self.check_plan(plan, weight, readonly.verdict.decision);
        } else {
            assert!(weight >= ReasonWeight::High, "a line passes without a plan");
        }
        (weight, reasons.iter().map(GateReason::code).collect(), full.plan.is_some())
    }

    fn check_readable(&self, line: &str, tree: &ShellLine, weight: ReasonWeight) {
        if weight < ReasonWeight::High {
            assert!(is_plain(&tree.script), "a line passes that needs a shell");
        }
        // A command before the line must not lower its weight.
        assert!(self.weight(&format!("true; {line}")) >= weight || tree.script.lists.is_empty());
        assert!(self.weight(&format!("true\n{line}")) >= weight);
        if only_command(&tree.script).is_some_and(can_be_wrapped) {
            for wrapper in ["env", "nice", "timeout 5", "nohup", "env nice -n 3"] {
                let wrapped = format!("{wrapper} {line}");
                assert!(self.weight(&wrapped) >= weight, "{wrapped:?}");
            }
        }
    }

    fn check_plan(&self, plan: &ShellPlan, weight: ReasonWeight, at_readonly: GateDecision) {
        for command in planned_commands(plan) {
            assert!(command.folder.starts_with("/w"), "{command:?}");
            for redirection in &command.redirections {
                let path = match &redirection.target {
                    PlannedTarget::Read(path) => path,
                    PlannedTarget::Write(path) | PlannedTarget::Append(path) => {
                        assert_eq!(at_readonly, GateDecision::Deny, "`readonly` allows a write");
                        path
                    }
                    PlannedTarget::Duplicate(_) | PlannedTarget::Text(_) | PlannedTarget::Null => continue,
                };
                assert!(self.is_inside(&command.folder.join(path)), "{path}");
            }
            match &command.action {
                PlannedAction::Run { words, .. } => {
                    let name = words.first().expect("a program has a name");
                    let name = name.rsplit('/').next().expect("there is a last part");
                    assert!(!self.policy.forbidden_commands.contains(name), "{name}");
                    let wraps =
                        ["env", "nice", "nohup", "time", "timeout", "stdbuf", "ionice"].contains(&name);
                    assert!(
                        weight >= ReasonWeight::High || wraps || self.policy.allowed_commands.contains(name),
                        "{name} is not listed"
                    );
                }
                PlannedAction::ChangeFolder(folder) => assert!(folder.starts_with("/w"), "{folder:?}"),
                PlannedAction::Nothing => {}
            }
        }
    }

    fn is_inside(&self, path: &Path) -> bool {
        match self.machine.inspect_path(path) {
            PathStatus::Missing { leads_to }
            | PathStatus::File { leads_to, .. }
            | PathStatus::Folder { leads_to } => leads_to.starts_with("/w"),
            PathStatus::Special { .. } | PathStatus::Unreachable => false,
        }
    }
}

fn heaviest_weight(judged: &ShellVerdict) -> ReasonWeight {
    judged.verdict.reasons.iter().map(GateReason::weight).max().expect("a verdict has a reason")
}

fn planned_commands(plan: &ShellPlan) -> impl Iterator<Item = &PlannedCommand> {
    let pipelines = plan
        .lists()
        .iter()
        .flat_map(|list| std::iter::once(&list.first).chain(list.rest.iter().map(|(_, pipeline)| pipeline)));
    pipelines.flat_map(|pipeline| &pipeline.commands)
}

/// Returns true if a script consists of simple commands whose words need no shell.
fn is_plain(script: &ShellScript) -> bool {
    let known = |word: &ShellWord| word.unknowns().next().is_none();
    script.lists.iter().all(|list| {
        list.background.is_none()
            && list.pipelines().flat_map(|pipeline| &pipeline.commands).all(|command| match command {
                ShellCommand::Compound(_) => false,
                ShellCommand::Simple(simple) => {
                    simple.words.iter().all(known)
                        && simple.assignments.iter().all(|assignment| known(&assignment.value))
                        && simple.redirections.iter().all(|redirection| match &redirection.target {
                            RedirectionTarget::Read(word)
                            | RedirectionTarget::Write(word)
                            | RedirectionTarget::Append(word) => known(word),
                            RedirectionTarget::Descriptor(_) | RedirectionTarget::HereDocument(_) => true,
                            RedirectionTarget::ReadWrite(_)
                            | RedirectionTarget::Closed
                            | RedirectionTarget::HereString(_)
                            | RedirectionTarget::NonPortable(_) => false,
                        })
                }
            })
    })
}

/// Returns the command of a script that consists of a single simple command.
fn only_command(script: &ShellScript) -> Option<&SimpleCommand> {
    let [list] = script.lists.as_slice() else { return None };
    match list.first.commands.as_slice() {
        [ShellCommand::Simple(simple)] if list.rest.is_empty() && !list.first.negated => Some(simple),
        _ => None,
    }
}

/// Returns true if a wrapper can be put before a command: the command must start with a plain name.
fn can_be_wrapped(simple: &SimpleCommand) -> bool {
    let begins = simple.words.first().is_some_and(|word| word.at.0 == 0);
    let name = simple.words.first().and_then(ShellWord::literal).unwrap_or_default();
    begins
        && simple.assignments.is_empty()
        && !name.contains('=')
        && !name.starts_with('-')
        && !name.is_empty()
}

#[test]
fn no_line_makes_the_gate_panic_or_break_an_invariant() {
    let hostile = BLOCKED_LINES.iter().chain(HIGH_RISK_LINES).map(|(line, _)| *line);
    let corpus: Vec<Vec<u8>> =
        hostile.chain(READ_ONLY_LINES.iter().chain(MODIFYING_LINES).copied()).map(Vec::from).collect();
    let fuzzer = GateFuzzer { policy: policy(EXTRA_ALLOWED), machine: GateTestMachine::new() };
    let report =
        ward_fuzz::run("gate", &corpus, |bytes| fuzzer.check(&String::from_utf8_lossy(bytes))).unwrap();
    println!("{report}");
}
