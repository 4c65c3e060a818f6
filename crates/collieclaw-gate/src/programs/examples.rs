//! The examples of the table, run through the gate with a small world.

use std::path::{Path, PathBuf};

use super::{Judged, all};
use crate::verdict::{Autonomy, Decision, Weight};
use crate::{Bounds, Facts, GatePolicy, Reason, Seen, judge_shell};

struct World;

impl Facts for World {
    fn look(&self, path: &Path) -> Seen {
        let leads_to = crate::plain(path);
        match leads_to.to_str() {
            Some("/w" | "/w/src" | "/" | "/etc" | "/tmp") => Seen::Folder { leads_to },
            Some("/w/README.md" | "/w/a.txt" | "/w/b.txt" | "/etc/passwd" | "/w/package.json") => {
                Seen::File { leads_to, names: 1 }
            }
            _ => Seen::Nothing { leads_to },
        }
    }

    fn names_in(&self, _: &Path) -> Option<Vec<String>> {
        Some(vec!["README.md".to_owned(), "a.txt".to_owned(), "src".to_owned()])
    }

    fn program(&self, name: &str) -> Option<PathBuf> {
        Some(Path::new("/usr/bin").join(name))
    }
}

fn policy() -> GatePolicy {
    let names = |text: &str| text.split(' ').map(str::to_owned).collect();
    GatePolicy {
        autonomy: Autonomy::Supervised,
        workspace: "/w".into(),
        bounds: Bounds::Workspace,
        user_home: "/home/kid".into(),
        own_home: "/home/kid/.collieclaw".into(),
        own_files: Vec::new(),
        forbidden_paths: vec!["/etc".into(), "/home/kid/.ssh".into()],
        forbidden_commands: names("rm shutdown reboot mkfs dd"),
        // Wrappers and shells are never on the list: what they run is.
        allowed_commands: all()
            .filter(|program| matches!(program.nature, super::Nature::Looks | super::Nature::Changes))
            .flat_map(|program| program.names.split(' ').map(str::to_owned))
            .collect(),
        allowed_domains: Vec::new(),
    }
}

#[test]
fn every_example_of_the_table_is_judged_as_it_says() {
    let policy = policy();
    let mut wrong = Vec::new();
    for program in all() {
        for example in program.examples {
            let judged = judge_shell(example.line, Autonomy::Full, &policy, &World);
            let weight = judged.verdict.reasons.iter().map(Reason::weight).max();
            let looks_only = judged.verdict.reasons.iter().all(Reason::looks_only);
            let is = match weight {
                Some(Weight::Blocked) => Judged::Blocked,
                Some(Weight::High) => Judged::Unknown,
                _ if looks_only => Judged::Looks,
                _ => Judged::Changes,
            };
            if is != example.is {
                wrong.push(format!(
                    "{}: {is:?}, not {:?}: {:?}",
                    example.line, example.is, judged.verdict.reasons
                ));
            }
            assert_eq!(
                judged.plan.is_some(),
                matches!(is, Judged::Looks | Judged::Changes)
                    || (judged.plan.is_some() && is == Judged::Unknown)
            );
            assert_eq!(is == Judged::Blocked, judged.verdict.decision == Decision::Deny);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_program_has_an_example() {
    let without: Vec<_> =
        all().filter(|program| program.examples.is_empty()).map(|program| program.names).collect();
    assert!(without.is_empty(), "{without:?}");
}
