//! Folders that only commands use: the temporary folder of their sandbox, and their home and caches.

use collieclaw_gate::{AutonomyLevel, GatePolicy, ProjectPrograms, ShellVerdict, judge_shell};

use crate::judged_lines::JudgingMachine;
use crate::test_machine::{heaviest_reasons, policy};

const CACHE: &str = "/home/kid/.cache/collieclaw/1";

fn cached_policy() -> GatePolicy {
    GatePolicy {
        command_cache: Some(CACHE.into()),
        project_programs: ProjectPrograms::Allowed,
        ..policy("gcc")
    }
}

fn judged(line: &str, policy: &GatePolicy) -> ShellVerdict {
    judge_shell(line, AutonomyLevel::Supervised, policy, &JudgingMachine::new())
}

/// Returns the codes of the heaviest reasons.
fn codes(line: &str, policy: &GatePolicy) -> String {
    heaviest_reasons(&judged(line, policy).verdict).1.join("+")
}

/// In a plan, CollieClaw itself would open the files, outside of the sandbox.
#[test]
fn lines_with_such_a_folder_ask_and_need_a_shell() {
    for line in [
        "cat /tmp/x",
        "echo x > /tmp/x; cat /tmp/x",
        "cp a.txt /tmp/d/",
        &format!("cat {CACHE}/home/.config/x"),
        &format!("echo x > {CACHE}/home/x"),
        &format!("mkdir -p {CACHE}/home/a && cd src && ls"),
        &format!("{CACHE}/cargo/bin/app --version"),
    ] {
        let found = judged(line, &cached_policy());
        assert_eq!(found.verdict.decision, collieclaw_gate::GateDecision::Ask, "{line}: {:?}", found.verdict);
        assert_eq!(found.plan, None, "{line}");
    }
}

#[test]
fn paths_beside_such_a_folder_are_outside() {
    for line in [
        "cat /home/kid/.cache/other".to_owned(),
        format!("cat {CACHE}/../2/x"),
        format!("cat {CACHE}x"),
        format!("echo x > {CACHE}/../../../x"),
        "cat /var/tmp/x".to_owned(),
        "cat /tmp/../home/kid/x".to_owned(),
    ] {
        assert!(codes(&line, &cached_policy()).contains("outside-workspace"), "{line}");
    }
    assert_eq!(codes(&format!("cat {CACHE}/x"), &policy("")), "outside-workspace");
}

#[test]
fn files_that_steer_git_and_forbidden_paths_stay_closed_there() {
    let mut policy = cached_policy();
    policy.forbidden_paths.extend([format!("{CACHE}/kept").into(), "/tmp/kept".into()]);
    for (line, code) in [
        (format!("cp a.txt {CACHE}/home/.git/config"), "steers-programs"),
        ("cp a.txt /tmp/x/.git/hooks/y".to_owned(), "steers-programs"),
        (format!("cat {CACHE}/kept/x"), "forbidden-path"),
        ("cat /tmp/kept/x".to_owned(), "forbidden-path"),
    ] {
        assert!(codes(&line, &policy).contains(code), "{line}: {}", codes(&line, &policy));
    }
}

/// The sandbox can't replace the temporary folder of the system if the workspace is in it.
#[test]
fn a_workspace_in_the_temporary_folder_has_no_other_one() {
    let policy = GatePolicy { workspace: "/tmp/w".into(), ..policy("") };
    assert!(codes("cat /tmp/x", &policy).contains("outside-workspace"));
}
