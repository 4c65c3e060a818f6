//! Runs the examples of the table through the gate, on a small machine in memory.

use std::path::{Path, PathBuf};

use super::{ExampleOutcome, all_programs};
use crate::verdict::{AutonomyLevel, GateDecision, ReasonWeight};
use crate::{GatePolicy, GateReason, MachineFacts, PathBounds, PathStatus, judge_shell};

struct ExampleMachine;

impl MachineFacts for ExampleMachine {
    fn inspect_path(&self, path: &Path) -> PathStatus {
        let leads_to = crate::normalize_path(path);
        match leads_to.to_str() {
            Some("/w" | "/w/src" | "/" | "/etc" | "/tmp") => PathStatus::Folder { leads_to },
            Some("/w/README.md" | "/w/a.txt" | "/w/b.txt" | "/etc/passwd" | "/w/package.json") => {
                PathStatus::File { leads_to, link_count: 1 }
            }
            _ => PathStatus::Missing { leads_to },
        }
    }

    fn names_in(&self, _: &Path) -> Option<Vec<String>> {
        Some(vec!["README.md".to_owned(), "a.txt".to_owned(), "src".to_owned()])
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        Some(Path::new("/usr/bin").join(name))
    }
}

fn policy() -> GatePolicy {
    let names = |text: &str| text.split(' ').map(str::to_owned).collect();
    GatePolicy {
        autonomy: AutonomyLevel::Supervised,
        workspace: "/w".into(),
        bounds: PathBounds::Workspace,
        user_home: "/home/kid".into(),
        own_home: "/home/kid/.collieclaw".into(),
        own_files: Vec::new(),
        forbidden_paths: vec!["/etc".into(), "/home/kid/.ssh".into()],
        forbidden_commands: names("rm shutdown reboot mkfs dd"),
        // Wrappers and shells aren't listed themselves; the gate judges the programs that they run.
        allowed_commands: all_programs()
            .filter(|program| {
                matches!(
                    program.kind,
                    super::ProgramKind::ReadOnly
                        | super::ProgramKind::Modifies
                        | super::ProgramKind::Interpreter
                )
            })
            .flat_map(|program| program.names.split(' ').map(str::to_owned))
            .collect(),
        allowed_domains: Vec::new(),
        command_network: Default::default(),
        pinned_programs: Default::default(),
        allowed_scripts: Default::default(),
        project_programs: Default::default(),
        command_cache: None,
    }
}

#[test]
fn every_example_of_the_table_is_judged_as_it_says() {
    let policy = policy();
    let mut wrong = Vec::new();
    for program in all_programs() {
        for example in program.examples {
            let judged = judge_shell(example.line, AutonomyLevel::Full, &policy, &ExampleMachine);
            let weight = judged.verdict.reasons.iter().map(GateReason::weight).max();
            let read_only = judged.verdict.reasons.iter().all(GateReason::is_read_only);
            let outcome = match weight {
                Some(ReasonWeight::Blocked) => ExampleOutcome::Blocked,
                Some(ReasonWeight::High) => ExampleOutcome::Unknown,
                _ if read_only => ExampleOutcome::ReadOnly,
                _ => ExampleOutcome::Modifies,
            };
            if outcome != example.expected {
                wrong.push(format!(
                    "{}: {outcome:?}, not {:?}: {:?}",
                    example.line, example.expected, judged.verdict.reasons
                ));
            }
            assert_eq!(
                judged.plan.is_some(),
                matches!(outcome, ExampleOutcome::ReadOnly | ExampleOutcome::Modifies)
                    || (judged.plan.is_some() && outcome == ExampleOutcome::Unknown)
            );
            assert_eq!(outcome == ExampleOutcome::Blocked, judged.verdict.decision == GateDecision::Deny);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_program_has_an_example() {
    let without: Vec<_> =
        all_programs().filter(|program| program.examples.is_empty()).map(|program| program.names).collect();
    assert!(without.is_empty(), "{without:?}");
}
