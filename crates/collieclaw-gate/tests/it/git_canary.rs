//! Runs the real `git` with each of its flags, and checks that no flag which passes the gate reads a file
//! outside of the workspace, writes there, or runs its value as a command (C7.3d).

use std::path::Path;
use std::process::{Command, Output, Stdio};

use collieclaw_gate::{AutonomyLevel, GatePolicy, ReasonWeight, judge_shell};

use crate::flag_canary::RealMachine;
use crate::test_machine::policy;

const CANARY: &str = "canary-that-nobody-may-see";

/// The subcommands that the table describes, as far as they need no other machine.
const SUBCOMMANDS: &str = "add am apply archive blame branch cat-file check-ignore checkout cherry-pick clone \
     commit describe diff fetch for-each-ref format-patch grep hash-object init log ls-files ls-remote ls-tree merge mv \
     name-rev notes pull push rebase reset restore rev-list revert rm shortlog show show-ref stash status switch tag \
     update-index worktree";

/// Flags of one letter that read or write files in some subcommand.
const LETTERS: &str = "-F -t -S -X -O -f -o -C -u -c -I -e -x";

fn git(folder: &Path, arguments: &[&str]) -> Output {
    Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null())
        .output()
        .expect("`git` is there")
}

/// Creates a repository with a commit, a script that leaves a trace, and a canary beside it.
#[expect(clippy::disallowed_methods, reason = "real programs need real files; the gate itself touches none")]
fn create_repository(workspace: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(workspace).expect("a workspace");
    let canary = workspace.with_file_name("canary");
    std::fs::write(&canary, format!("{CANARY}\n")).expect("a canary");
    std::fs::write(workspace.join("a.txt"), "one\ntwo\n").expect("a file");
    let trace = workspace.with_file_name("trace");
    let script = workspace.join("runs");
    std::fs::write(&script, format!("#!/bin/sh\necho \"$0\" >> {}\n", trace.display())).expect("a script");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("an executable script");
    for arguments in [
        &["init", "-q", "-b", "main"][..],
        &["config", "user.name", "x"],
        &["config", "user.email", "x@example.org"],
        &["add", "."],
        &["commit", "-q", "-m", "one"],
    ] {
        let output = git(workspace, arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
}

/// Returns lines with each flag of a subcommand and a value.
fn flag_lines(workspace: &Path, subcommand: &str, value: &str) -> Vec<String> {
    let help = git(workspace, &[subcommand, "--git-completion-helper-all"]).stdout;
    let help = String::from_utf8_lossy(&help).into_owned();
    let flags = help.split_whitespace().filter(|flag| flag.starts_with("--") && !flag.starts_with("--no-"));
    let long = flags.filter(|flag| *flag != "--").flat_map(|flag| {
        let name = flag.trim_end_matches('=');
        let joined = format!("git {subcommand} {name}={value} a.txt");
        let apart = flag.ends_with('=').then(|| format!("git {subcommand} {name} {value} a.txt"));
        std::iter::once(joined).chain(apart)
    });
    let short = LETTERS.split(' ').flat_map(|flag| {
        [format!("git {subcommand} {flag} {value} a.txt"), format!("git {subcommand} {flag}{value} a.txt")]
    });
    long.chain(short).collect()
}

/// Runs lines in a shell, and returns the output of each line.
fn run_lines(lines: &[String], workspace: &Path) -> Vec<String> {
    const SCRIPT: &str = r#"for line; do eval "$line" < /dev/null 2>&1; printf '<line ends here>'; done"#;
    let output = Command::new("timeout")
        .args(["120", "sh", "-c", SCRIPT, "sh"])
        .args(lines)
        .current_dir(workspace)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", workspace)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_EDITOR", "false")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .output()
        .expect("`timeout` is there");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_terminator("<line ends here>").map(str::to_owned).collect()
}

#[test]
fn no_flag_of_git_leaves_the_workspace_or_runs_its_value() {
    let mut wrong = Vec::new();
    let mut run = 0;
    for subcommand in SUBCOMMANDS.split_whitespace() {
        let folder = tempfile::tempdir().expect("a folder");
        let workspace = folder.path().canonicalize().expect("it is there").join("workspace");
        create_repository(&workspace);
        let policy = GatePolicy { workspace: workspace.clone(), ..policy("git") };
        let passes = |line: &String| {
            let verdict = judge_shell(line, AutonomyLevel::Supervised, &policy, &RealMachine).verdict;
            verdict.reasons.iter().all(|reason| reason.weight() < ReasonWeight::High)
        };
        let lines =
            ["../canary", "./runs"].into_iter().flat_map(|value| flag_lines(&workspace, subcommand, value));
        let lines: Vec<_> = lines.filter(passes).collect();
        run += lines.len();
        let printed = run_lines(&lines, &workspace);
        assert_eq!(printed.len(), lines.len(), "git {subcommand} did not end in time");
        let seen = lines.iter().zip(&printed).filter(|(_, printed)| printed.contains(CANARY));
        wrong.extend(seen.map(|(line, _)| format!("{line}: prints the canary")));
        wrong.extend(changed_outside(folder.path()).map(|change| format!("git {subcommand}: {change}")));
    }
    assert!(run > 500, "only {run} lines passed the gate");
    assert!(wrong.is_empty(), "{} of {run}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns the changes beside the workspace.
#[expect(clippy::disallowed_methods, reason = "real programs need real files; the gate itself touches none")]
fn changed_outside(folder: &Path) -> impl Iterator<Item = String> {
    let canary = std::fs::read_to_string(folder.join("canary")).unwrap_or_default();
    let changed = (canary != format!("{CANARY}\n")).then(|| format!("changed the canary: {canary:?}"));
    let trace = std::fs::read_to_string(folder.join("trace")).ok().map(|trace| format!("ran {trace:?}"));
    changed.into_iter().chain(trace)
}
