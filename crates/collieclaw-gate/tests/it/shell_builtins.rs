//! Builtins of the shell: some change the shell itself, so that only a real shell can run them.

use collieclaw_gate::{AutonomyLevel, GateDecision, GatePolicy, ReasonWeight, judge_shell};

use crate::judged_lines::JudgingMachine;
use crate::test_machine::{GateTestMachine, heaviest_reasons, judge_line, policy};

/// Returns the weight and the codes at `full`, on a machine that can't judge commands when they run.
fn planned(line: &str) -> (ReasonWeight, String) {
    let (weight, codes) = heaviest_reasons(&judge_line(line, AutonomyLevel::Full, "env"));
    (weight, codes.join("+"))
}

/// Returns the decision at `supervised`, on a machine that judges commands when they run.
fn decision(line: &str) -> GateDecision {
    judge_shell(line, AutonomyLevel::Supervised, &policy("env"), &JudgingMachine::new()).verdict.decision
}

#[test]
fn builtins_without_an_effect_only_look() {
    for line in ["type rm", "command -v rm", "command -V rm", ":", ": a b", "cd"] {
        let verdict = judge_line(line, AutonomyLevel::Full, "");
        assert!(verdict.reasons.iter().any(|reason| reason.code() == "looks-only"), "{line}: {verdict:?}");
    }
    assert_eq!(planned(":"), (ReasonWeight::Low, "looks-only".to_owned()));
    assert_eq!(planned("command ls").0, ReasonWeight::High);
    assert_eq!(planned("command -p rm x"), (ReasonWeight::Blocked, "forbidden-command".to_owned()));
}

#[test]
fn lines_inside_of_builtins_are_judged() {
    for line in [
        "eval rm x",
        "eval ls ';' rm x",
        "trap 'rm x' EXIT",
        "alias a=ls 'b=rm x'",
        "command rm x",
        "builtin eval 'rm x'",
        "exec rm x",
    ] {
        assert_eq!(planned(line), (ReasonWeight::Blocked, "forbidden-command".to_owned()), "{line}");
        assert_eq!(decision(line), GateDecision::Deny, "{line}");
    }
    for line in ["trap - EXIT", "trap -p", "trap", "alias rm", "eval ls", "eval $x", "set -e; ls"] {
        assert_eq!(planned(line), (ReasonWeight::High, "unknowable".to_owned()), "{line}");
        assert_eq!(decision(line), GateDecision::Ask, "{line}");
    }
}

#[test]
fn an_unreadable_line_inside_of_a_line_is_left_to_a_judged_shell() {
    for line in ["eval \"echo 'x\"", "trap 'ls |' EXIT"] {
        assert_eq!(planned(line), (ReasonWeight::Blocked, "unreadable".to_owned()), "{line}");
        assert_eq!(decision(line), GateDecision::Ask, "{line}");
    }
}

#[test]
fn code_is_not_loaded_into_the_shell() {
    for line in ["enable -f ./x.so x", "enable -f./x.so x", "enable -af ./x.so x", "enable x", "enable $x"] {
        assert_eq!(decision(line), GateDecision::Deny, "{line}");
    }
    // The shell loads the file `test`, although a builtin has this name, too.
    for line in
        ["enable -f test echo", "enable -ftest echo", "enable -nf test echo", "enable -a -f test echo"]
    {
        assert_eq!(decision(line), GateDecision::Deny, "{line}");
    }
    for line in ["enable -n echo", "enable -n false printf", "enable test kill source", "enable -p", "enable"]
    {
        assert_eq!(decision(line), GateDecision::Ask, "{line}");
    }
}

/// The shell prints the lines of such a file that are no commands.
#[test]
fn files_that_no_tool_may_touch_are_not_sourced() {
    for line in [
        "source /etc/shadow",
        ". /etc/../etc/shadow",
        "cd src; . /etc/passwd",
        ". ~/.collieclaw/config.toml",
        ". /etc/os-release/../shadow",
        ". /etc/os-releases",
        ". /etc/os-release; cat /etc/os-release",
    ] {
        assert_eq!(decision(line), GateDecision::Deny, "{line}");
    }
    for line in
        ["source ./env.sh", ". ~/.bashrc", "source $x", "source <(ls)", "source /dev/stdin", ". env.sh"]
    {
        assert_eq!(decision(line), GateDecision::Ask, "{line}");
    }
}

/// Every program can read these in the sandbox.
#[test]
fn files_of_etc_that_programs_need_are_sourced() {
    let lines =
        [". /etc/os-release && echo \"$ID\"", "source /etc/lsb-release", ". /etc/../etc/locale.conf; ls"];
    for line in lines {
        assert_eq!(decision(line), GateDecision::Ask, "{line}");
    }
    // Unless a rule forbids the file itself, or it belongs to CollieClaw.
    for line in lines {
        let names = ["/etc/os-release", "/etc/lsb-release", "/etc/locale.conf"].map(Into::into);
        let mut forbidden = policy("");
        forbidden.forbidden_paths.extend(names.clone());
        let own = GatePolicy { own_files: names.to_vec(), ..policy("") };
        for policy in [forbidden, own] {
            let judged = judge_shell(line, AutonomyLevel::Supervised, &policy, &JudgingMachine::new());
            assert_eq!(judged.verdict.decision, GateDecision::Deny, "{line}");
        }
    }
}

#[test]
fn builtins_may_change_the_folder_of_later_commands() {
    // From an unknown folder, `../a.txt` may be inside of the workspace, so the shell's commands are judged later.
    for line in [
        "cd $x; cat ../a.txt",
        ". ./env.sh; cat ../a.txt",
        "source ./env.sh; cat ../a.txt",
        "eval 'cd src'; cat ../a.txt",
        "pushd src; cat ../a.txt",
        "popd; cat ../a.txt",
        "builtin cd src; cat ../a.txt",
        "command cd src; cat ../a.txt",
        "$x; cat ../a.txt",
        "f() { cd src; }; f; cat ../a.txt",
        "for d in a; do cd $d; done; cat ../a.txt",
        "while ls; do cat ../a.txt; cd src; done",
        "{ cd src; }; cat ../a.txt",
        "cd src < a.txt; cat ../a.txt",
        "test -f x && cd src; cat ../a.txt",
    ] {
        assert_eq!(decision(line), GateDecision::Ask, "{line}");
    }
    for line in [
        "ls $x; cat ../a.txt",
        "set -e; cat ../a.txt",
        "(cd src); cat ../a.txt",
        "cd src | ls; cat ../a.txt",
        "cd src; cd ..; cat ../a.txt",
        "pushd src; cat /etc/passwd",
    ] {
        assert_eq!(decision(line), GateDecision::Deny, "{line}");
    }
}

#[test]
fn cd_needs_an_existing_folder_without_links() {
    for (line, expected) in [
        ("cd src", "listed-program"),
        ("cd -", "unknowable"),
        ("cd", "unknowable"),
        ("cd src deep", "unknowable"),
        ("cd -P src", "unknowable"),
        ("cd inner", "unknowable"),
        ("cd a.txt", "unknowable"),
        ("cd missing", "unknowable"),
        ("env cd src", "unknowable"),
        ("env cd /etc", "forbidden-path"),
        ("env : x", "unknowable"),
    ] {
        let line = format!("{line}; ls");
        let (_, codes) = planned(&line);
        assert!(codes.split('+').any(|code| code == expected), "{line}: {codes}");
    }
    assert_eq!(planned("cd src"), (ReasonWeight::Low, "reads-inside".to_owned()));
}

#[test]
fn kill_reaches_only_processes_of_the_line_in_a_judged_shell() {
    assert_eq!(decision("kill %1"), GateDecision::Ask);
    assert_eq!(decision("ls & kill $!"), GateDecision::Ask);
    assert_eq!(planned("kill 1"), (ReasonWeight::High, "unlisted-program".to_owned()));
    let policy = policy("kill");
    let judged = judge_shell("kill 1", AutonomyLevel::Full, &policy, &JudgingMachine::new());
    assert_eq!(judged.plan, None);
    let judged = judge_shell("kill 1", AutonomyLevel::Full, &policy, &GateTestMachine::new());
    assert!(judged.plan.is_some());
}

#[test]
fn variables_of_the_shell_are_judged_with_its_commands() {
    // The shell shows the variables that it exports with each command.
    assert_eq!(decision("LD_PRELOAD=./x.so; ls"), GateDecision::Ask);
    assert_eq!(decision("LD_PRELOAD=./x.so export A"), GateDecision::Ask);
    assert_eq!(decision("LD_PRELOAD=./x.so ls"), GateDecision::Deny);
    assert_eq!(decision("FOO=1 $x"), GateDecision::Ask);
}

#[test]
fn a_line_without_a_command_has_an_empty_plan() {
    for line in ["", "# nothing", "> x", "< a.txt"] {
        let judged = judge_shell(line, AutonomyLevel::Full, &policy(""), &GateTestMachine::new());
        assert!(judged.plan.is_some(), "{line:?}: {:?}", judged.verdict);
    }
    assert_eq!(planned(""), (ReasonWeight::Low, "looks-only".to_owned()));
}
