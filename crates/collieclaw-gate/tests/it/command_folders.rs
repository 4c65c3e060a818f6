//! Folders that only commands use: the temporary folder of their sandbox, and their home and caches.

use collieclaw_gate::plan::PlannedAction;
use collieclaw_gate::{
    AutonomyLevel, GateDecision, GatePolicy, ProjectPrograms, RiskLevel, ShellVerdict, judge_shell,
    rejudge_command,
};

use crate::judged_lines::JudgingMachine;
use crate::test_machine::{GateTestMachine, heaviest_reasons, policy};

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
        assert_eq!(found.verdict.decision, GateDecision::Ask, "{line}: {:?}", found.verdict);
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
        (format!("cp a.txt {CACHE}/home/.git/config"), "executable-config"),
        ("cp a.txt /tmp/x/.git/hooks/y".to_owned(), "executable-config"),
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

#[test]
fn a_tilde_is_the_home_of_commands_where_a_shell_runs_the_line() {
    for line in [
        "ls ~",
        "cd ~ && ls",
        "cp a.txt ~/x",
        "echo x > ~/x; cat < ~/x",
        "for f in ~/x; do cat $f; done",
        "A=~/x env ls ~/",
        "PYTHONPATH=~/lib ls ~",
        "ls ~/../../x",
    ] {
        let found = judged(line, &cached_policy());
        assert_eq!(found.verdict.decision, GateDecision::Ask, "{line}: {:?}", found.verdict);
        assert_eq!(found.plan, None, "{line}");
    }
    for (line, expected) in [
        ("cat ~/.ssh/id_ed25519", "forbidden-path"),
        ("cat ~/.collieclaw/config.toml", "own-home"),
        ("ls ~; cat ~/.ssh/id_ed25519", "forbidden-path+outside-workspace"),
        ("ls ~ ../x", "outside-workspace"),
        ("ls '~/../..'", "outside-workspace"),
        ("chmod -R 777 ~", "destructive+outside-workspace"),
        ("ls ~; rustc a.txt", "unlisted-program"),
    ] {
        assert_eq!(codes(line, &cached_policy()), expected, "{line}");
    }
    let unjudged = judge_shell("ls ~", AutonomyLevel::Supervised, &cached_policy(), &GateTestMachine::new());
    assert_eq!(heaviest_reasons(&unjudged.verdict).1, ["outside-workspace"]);
}

/// A line that needs no shell means the home of the user, as before. A second shell means that of commands.
#[test]
fn a_planned_tilde_is_the_home_of_the_user() {
    let planned = |line: &str| {
        let found = judged(line, &cached_policy());
        assert_ne!(found.verdict.decision, GateDecision::Deny, "{line}: {:?}", found.verdict);
        found.plan.unwrap().lists()[0].first.commands[0].clone()
    };
    let PlannedAction::Run { words, .. } = planned("echo ~").action else { panic!("it runs a program") };
    assert_eq!(words, ["echo", "/home/kid"]);
    let in_shell = planned("bash -c 'cd ~; ls ~/x'");
    let rejudged = |risk| rejudge_command(&in_shell, risk, &cached_policy(), &JudgingMachine::new());
    assert_eq!(rejudged(RiskLevel::Medium), None);
}

#[test]
fn a_home_that_only_commands_use_is_harmless() {
    for line in [
        &format!("HOME={CACHE}/home ls"),
        &format!("HOME={CACHE}/x cp a.txt b.txt"),
        "HOME=/tmp/x ls",
        "HOME=\"$HOME\" ls",
    ] {
        let found = judged(line, &cached_policy());
        assert_eq!(found.verdict.decision, GateDecision::Ask, "{line}: {:?}", found.verdict);
        // The sandbox gives each planned program a home of its own.
        assert_eq!(found.plan, None, "{line}");
    }
    let by_env = judged(&format!("env HOME={CACHE}/home ls"), &cached_policy());
    assert_eq!(by_env.verdict.decision, GateDecision::Ask, "{:?}", by_env.verdict);
    for home in ["x", "/w", "/home/kid", "~", "", &format!("{CACHE}/../2")] {
        assert_eq!(codes(&format!("HOME={home} ls"), &cached_policy()), "variable", "{home}");
    }
    assert_eq!(codes("HOME=/home/kid/.cache ls", &policy("")), "variable");
    let line = format!("HOME={CACHE}/home ls");
    let unjudged = judge_shell(&line, AutonomyLevel::Supervised, &cached_policy(), &GateTestMachine::new());
    assert_eq!(heaviest_reasons(&unjudged.verdict).1, ["variable"]);
}
