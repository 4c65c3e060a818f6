//! The second checks: of a path after it was opened, and of a command just before it runs.

use std::path::{Path, PathBuf};

use collieclaw_gate::plan::{PlannedAction, PlannedCommand};
use collieclaw_gate::{
    AutonomyLevel, GatePolicy, GateReason, MachineFacts, PathBounds, PathStatus, RiskLevel,
    absolute_tool_path, can_start_programs, judge_moved_entry, judge_opened_path, judge_shell,
    judge_write_target, rejudge_command,
};

use crate::judged_lines::JudgingMachine;
use crate::test_machine::{GateTestMachine, policy};

fn code(result: Result<(), GateReason>) -> &'static str {
    result.map_or_else(|reason| reason.code(), |()| "fine")
}

#[test]
fn a_tool_path_starts_in_the_workspace_or_at_home() {
    let absolute = |text| absolute_tool_path(text, &policy("")).map_err(|reason| reason.code());
    for (text, expected) in [
        ("a.txt", "/w/a.txt"),
        ("/usr/x", "/usr/x"),
        ("~", "/home/kid"),
        ("~/x", "/home/kid/x"),
        ("~//x", "/home/kid/x"),
        ("a~", "/w/a~"),
    ] {
        assert_eq!(absolute(text), Ok(PathBuf::from(expected)), "{text}");
    }
    for text in ["", "a\0b", "~kim", "~kim/x"] {
        assert_eq!(absolute(text), Err("not-a-path"), "{text:?}");
    }
}

#[test]
fn an_opened_path_is_judged_by_its_real_place() {
    let mut policy = policy("");
    for (place, expected) in [
        ("/w/a.txt", "fine"),
        ("/w", "fine"),
        ("/tmp/x", "outside-workspace"),
        ("/etc/passwd", "forbidden-path"),
        ("/w/kept/secret", "forbidden-path"),
        ("/home/kid/.collieclaw/x", "own-home"),
    ] {
        assert_eq!(code(judge_opened_path(Path::new(place), &policy)), expected, "{place}");
    }
    policy.bounds = PathBounds::Anywhere;
    for (place, expected) in
        [("/home/kid/x", "fine"), ("/proc/1/mem", "forbidden-path"), ("/dev/sda", "forbidden-path")]
    {
        assert_eq!(code(judge_opened_path(Path::new(place), &policy)), expected, "{place}");
    }
    // A workspace on a device's file system is still a workspace.
    policy.workspace = "/dev/shm/w".into();
    assert_eq!(code(judge_opened_path(Path::new("/dev/shm/w/x"), &policy)), "fine");
}

#[test]
fn companions_of_own_files_are_own_files() {
    let policy = GatePolicy { own_files: vec!["/w/logs/audit.log".into()], ..policy("") };
    for (place, expected) in [
        ("/w/logs/audit.log", "own-home"),
        ("/w/logs/audit.log.head", "own-home"),
        ("/w/logs/audit.log-wal", "own-home"),
        ("/w/logs/audit.log/x", "own-home"),
        ("/w/logs/audit.logs", "fine"),
        ("/w/logs/audit", "fine"),
        ("/w/logs", "fine"),
        ("/w/audit.log", "fine"),
    ] {
        assert_eq!(code(judge_opened_path(Path::new(place), &policy)), expected, "{place}");
    }
}

#[test]
fn a_written_file_must_not_turn_out_to_control_git() {
    for (asked, place, expected) in [
        ("/w/a.txt", "/w/a.txt", "fine"),
        ("/w/link/config", "/w/.git/config", "executable-config"),
        // The gate refused or allowed this name already.
        ("/w/.git/config", "/w/.git/config", "fine"),
        ("/w/.git/config", "/w/a.txt", "fine"),
        ("/w/link/hgrc", "/w/.HG/hgrc", "executable-config"),
    ] {
        assert_eq!(code(judge_write_target(Path::new(asked), Path::new(place))), expected, "{asked} {place}");
    }
}

#[test]
fn a_moved_entry_contains_neither_the_workspace_nor_a_protected_path() {
    let anywhere = GatePolicy { bounds: PathBounds::Anywhere, workspace: "/data/w".into(), ..policy("") };
    for (asked, place, expected) in [
        ("a.txt", "/data/w/a.txt", "fine"),
        (".", "/data/w", "wrong-kind"),
        ("/data", "/data", "wrong-kind"),
        ("/home/kid", "/home/kid", "own-home"),
        ("/w/kept", "/w/kept", "forbidden-path"),
        ("/etc/x", "/etc/x", "forbidden-path"),
        ("link/config", "/data/w/.git/config", "executable-config"),
        ("/home/kim", "/home/kim", "fine"),
    ] {
        let judged = judge_moved_entry(Path::new(asked), Path::new(place), &anywhere);
        assert_eq!(code(judged), expected, "{asked} {place}");
    }
}

/// A machine on which `a.txt` has become a symlink out of the workspace.
struct SwappedFile(GateTestMachine);

impl MachineFacts for SwappedFile {
    fn inspect_path(&self, path: &Path) -> PathStatus {
        self.0.inspect_path(if path == Path::new("/w/a.txt") { Path::new("/etc/passwd") } else { path })
    }

    fn names_in(&self, folder: &Path) -> Option<Vec<String>> {
        self.0.names_in(folder)
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        self.0.find_program(name)
    }
}

/// Returns the first command of a line's plan.
fn planned(line: &str, policy: &GatePolicy) -> PlannedCommand {
    let plan = judge_shell(line, AutonomyLevel::Full, policy, &GateTestMachine::new()).plan;
    plan.unwrap().lists()[0].first.commands[0].clone()
}

#[test]
fn a_command_is_judged_again_with_the_files_as_they_are_now() {
    let policy = policy("");
    let again = |line: &str, risk, facts: &dyn MachineFacts| {
        rejudge_command(&planned(line, &policy), risk, &policy, facts).map(|reason| reason.code())
    };
    let (same, swapped) = (GateTestMachine::new(), SwappedFile(GateTestMachine::new()));
    assert_eq!(again("cat a.txt", RiskLevel::Medium, &same), None);
    assert_eq!(again("cat a.txt", RiskLevel::Medium, &swapped), Some("forbidden-path"));
    assert_eq!(again("cat b.txt", RiskLevel::Medium, &swapped), None);
    // A command must not weigh more than the line that was approved.
    assert_eq!(again("cat a.txt", RiskLevel::Low, &same), Some("listed-program"));
    assert_eq!(again("gcc b.txt", RiskLevel::High, &same), None);
    assert_eq!(again("gcc b.txt", RiskLevel::Medium, &same), Some("unlisted-program"));
    // A change of folder and `:` run no program.
    assert_eq!(again("cd src", RiskLevel::Low, &swapped), None);
    assert_eq!(again(": a.txt", RiskLevel::Low, &swapped), None);
    // Relative paths start in the command's own folder.
    let mut moved = planned("cat a.txt", &policy);
    moved.folder = "/w/src".into();
    assert_eq!(rejudge_command(&moved, RiskLevel::Medium, &policy, &swapped), None);
}

#[test]
fn everything_that_is_known_only_at_run_time_is_found_again() {
    let policy = policy("xargs git curl");
    let again = |words: &[&str], risk, facts: &dyn MachineFacts| {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let action = PlannedAction::Run { program: "/usr/bin/x".into(), words, variables: Vec::new() };
        let command = PlannedCommand { action, folder: "/w".into(), redirections: Vec::new() };
        rejudge_command(&command, risk, &policy, facts).map(|reason| reason.code())
    };
    let machine = GateTestMachine::new();
    let several = ["find", "src", "-exec", "cat", "{}", ";", "-exec", "touch", "x", ";"];
    assert_eq!(again(&several, RiskLevel::Medium, &machine), Some("argument"));
    assert_eq!(again(&["find", "src", "-delete"], RiskLevel::Medium, &machine), Some("argument"));
    assert_eq!(again(&["xargs", "cat"], RiskLevel::Medium, &machine), Some("unknowable"));
    assert_eq!(again(&["git", "-C", "/etc", "log"], RiskLevel::Medium, &machine), Some("forbidden-path"));
    assert_eq!(again(&["curl", "http://10.0.0.1/"], RiskLevel::Medium, &machine), Some("private-address"));
    assert_eq!(again(&["sed", "1e id", "a.txt"], RiskLevel::Medium, &machine), Some("argument"));
    assert_eq!(again(&["env", "LD_PRELOAD=x", "ls"], RiskLevel::Medium, &machine), Some("variable"));
    assert_eq!(again(&["bash", "x.sh"], RiskLevel::Low, &JudgingMachine::new()), Some("judged-when-run"));
}

#[test]
fn only_programs_of_a_new_installation_start_nothing_by_themselves() {
    let policy = policy("git make");
    for (line, risk, expected) in [
        ("ls -l", RiskLevel::Medium, false),
        ("/bin/ls -l", RiskLevel::Medium, false),
        ("ls -l", RiskLevel::High, true),
        ("sort a.txt", RiskLevel::Low, false),
        ("find . -name x", RiskLevel::Medium, true),
        ("git status", RiskLevel::Medium, true),
        ("make", RiskLevel::Medium, true),
        ("cd src", RiskLevel::High, false),
        (":", RiskLevel::High, false),
    ] {
        assert_eq!(can_start_programs(&planned(line, &policy).action, risk), expected, "{line} {risk}");
    }
    let nothing = PlannedAction::Run { program: "/x".into(), words: Vec::new(), variables: Vec::new() };
    assert!(can_start_programs(&nothing, RiskLevel::Low));
}
