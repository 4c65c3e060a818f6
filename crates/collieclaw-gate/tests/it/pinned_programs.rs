//! Programs outside of the system's folders, and scripts of the workspace, that the operator has accepted (C16).

use std::path::{Path, PathBuf};

use collieclaw_gate::plan::PlannedAction;
use collieclaw_gate::{
    AutonomyLevel, GatePolicy, MachineFacts, PathStatus, RiskLevel, ScriptContent, ShellVerdict, judge_shell,
};

use crate::test_machine::{GateTestMachine, heaviest_reasons, policy};

/// A machine with few programs of its own, and a toolchain in the user's home.
struct ToolchainMachine {
    judges_executions: bool,
}

const CARGO: &str = "/home/kid/.cargo/bin/cargo";

impl MachineFacts for ToolchainMachine {
    fn inspect_path(&self, path: &Path) -> PathStatus {
        let leads_to = collieclaw_gate::normalize_path(path);
        match leads_to.to_str().unwrap_or_default() {
            "/w" | "/w/src" => PathStatus::Folder { leads_to },
            "/w/link.sh" => PathStatus::File { leads_to: "/w/run.sh".into(), link_count: 1 },
            "/w/run.sh" | "/w/tool" | "/w/other.sh" | "/usr/bin/ls" | CARGO => {
                PathStatus::File { leads_to, link_count: 1 }
            }
            _ => PathStatus::Missing { leads_to },
        }
    }

    fn names_in(&self, _: &Path) -> Option<Vec<String>> {
        None
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        matches!(name, "ls" | "cat" | "env").then(|| Path::new("/usr/bin").join(name))
    }

    fn is_trusted_program(&self, path: &Path) -> bool {
        [CARGO, "/w/tool"].iter().any(|trusted| path == Path::new(trusted))
    }

    fn judges_executions(&self) -> bool {
        self.judges_executions
    }

    fn read_script(&self, path: &Path) -> Option<ScriptContent> {
        (path == Path::new("/w/run.sh"))
            .then(|| ScriptContent { sha256: "good".to_owned(), interpreter_line: None })
    }
}

fn developer_policy() -> GatePolicy {
    let mut policy = policy("cargo gone tool");
    for (name, path) in [("cargo", CARGO), ("gone", "/home/kid/bin/gone"), ("tool", "/w/tool")] {
        policy.pinned_programs.insert(name.to_owned(), path.into());
    }
    policy.allowed_scripts.insert("/w/run.sh".into(), "good".to_owned());
    policy
}

fn judged(line: &str, judges_executions: bool) -> ShellVerdict {
    judge_shell(line, AutonomyLevel::Full, &developer_policy(), &ToolchainMachine { judges_executions })
}

fn codes(line: &str, judges_executions: bool) -> String {
    heaviest_reasons(&judged(line, judges_executions).verdict).1.join("+")
}

/// Returns the file of the first command of a line.
fn planned_file(line: &str) -> Option<PathBuf> {
    match &judged(line, false).plan?.lists()[0].first.commands[0].action {
        PlannedAction::Run { program, .. } => Some(program.clone()),
        _ => None,
    }
}

#[test]
fn the_accepted_file_runs_under_its_name() {
    for (line, file) in [
        ("ls", Some("/usr/bin/ls")),
        ("/usr/bin/ls", Some("/usr/bin/ls")),
        ("cargo build", Some(CARGO)),
        ("/home/kid/.cargo/bin/cargo build", Some(CARGO)),
        ("./run.sh", Some("/w/run.sh")),
        ("./link.sh", Some("/w/run.sh")),
        ("gone", None),
        ("tool", None),
        ("date", None),
    ] {
        assert_eq!(planned_file(line), file.map(PathBuf::from), "{line}");
    }
}

#[test]
fn a_pinned_program_must_still_be_the_accepted_one() {
    for (line, expected) in [
        ("cargo build", "listed-program"),
        ("env cargo build", "listed-program"),
        ("gone", "changed-program+not-installed"),
        // Tools can change a program in the workspace.
        ("tool", "changed-program+not-installed"),
        ("/usr/bin/cargo build", "not-installed+program-by-path"),
        ("date", "not-installed"),
        ("/usr/bin/ls", "listed-program"),
        ("./other.sh", "not-installed+program-by-path+unlisted-program"),
        ("./src", "not-installed+program-by-path+unlisted-program"),
    ] {
        assert_eq!(codes(line, false), expected, "{line}");
    }
}

#[test]
fn a_script_runs_with_the_accepted_content_only() {
    for (line, expected) in [
        ("./run.sh", "listed-program"),
        ("./run.sh -v x=1", "listed-program"),
        ("/w/run.sh", "listed-program"),
        ("cd src && ../run.sh", "listed-program"),
        ("./run.sh /etc/passwd", "forbidden-path"),
        ("./run.sh --file=../x", "outside-workspace"),
        ("run.sh", "not-installed+unlisted-program"),
    ] {
        assert_eq!(codes(line, false), expected, "{line}");
    }
    let mut changed = developer_policy();
    changed.allowed_scripts.insert("/w/run.sh".into(), "other".to_owned());
    let machine = ToolchainMachine { judges_executions: false };
    let judged = judge_shell("./run.sh", AutonomyLevel::Full, &changed, &machine);
    assert!(judged.verdict.reasons.iter().any(|reason| reason.code() == "changed-script"), "{judged:?}");
    assert_eq!(judged.plan, None);
}

#[test]
fn a_script_runs_in_a_real_shell_if_its_commands_can_be_judged() {
    assert_eq!(judged("./run.sh x", true).verdict.risk, RiskLevel::Medium);
    assert_eq!(codes("./run.sh x", true), "judged-when-run+listed-program");
    assert_eq!(codes("./run.sh /etc/passwd", true), "forbidden-path");
    // Only the running shell knows the folder.
    assert_eq!(codes("cd -; ./run.sh", false), "program-by-path+unknowable+unlisted-program");
    assert_eq!(codes("cd -; /w/run.sh", false), "unknowable");
    assert_eq!(codes("cd $x; ./run.sh", true), "judged-when-run");
    assert_eq!(codes("cd $x; /w/other.sh", true), "program-by-path+unlisted-program");
}

#[test]
fn a_missing_program_is_left_to_the_shell_if_a_shell_runs_the_line_anyway() {
    assert_eq!(codes("date", true), "not-installed");
    assert_eq!(codes("x=1; date", true), "judged-when-run+listed-program");
    assert_eq!(codes("x=1; gcc", true), "not-installed+unlisted-program");
    // The line says itself what runs instead.
    assert_eq!(codes("date || ls", true), "judged-when-run+listed-program");
    assert_eq!(codes("date && ls || pwd", true), "judged-when-run+listed-program");
    assert_eq!(codes("ls || date", true), "not-installed");
    assert_eq!(codes("gcc || ls", true), "not-installed+unlisted-program");
    // Without a judge, no shell runs the line.
    assert_eq!(codes("date || ls", false), "not-installed");
}

#[test]
fn a_machine_that_knows_nothing_about_its_programs_trusts_none() {
    let machine = GateTestMachine::new();
    let program = Path::new("/usr/bin/ls");
    assert!(!machine.is_trusted_program(program));
    assert!(!machine.is_same_program(program, program));
}
