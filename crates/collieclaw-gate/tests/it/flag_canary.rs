//! Runs real programs with each of their flags, and checks that no flag lets them read a file outside of the
//! workspace.
//!
//! If the table said that a flag takes a value and it doesn't, the gate would not judge the path after that
//! flag. The test therefore puts the path of a canary file outside of the workspace after every flag, and
//! runs the lines that pass the gate.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use collieclaw_gate::{AutonomyLevel, GatePolicy, MachineFacts, PathStatus, ReasonWeight, judge_shell};

use crate::test_machine::policy;

/// Programs of the default list, and others that operators may list. Missing programs are harmless here.
const PROGRAMS: &str = "awk basename cat cmp comm cp cut date diff dirname du echo file find grep head jq ls md5sum mkdir mv nl \
     printf realpath rev sed seq sha256sum sort stat tac tail touch tr uniq wc od paste fold fmt expand join base64 \
     column shuf pr numfmt split tar gzip zcat less xxd strings hexdump";

const CANARY: &str = "canary-that-nobody-may-see";

pub(crate) struct RealMachine;

impl MachineFacts for RealMachine {
    fn inspect_path(&self, path: &Path) -> PathStatus {
        let Ok(leads_to) = path.canonicalize() else {
            let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
                return PathStatus::Unreachable;
            };
            let Ok(folder) = folder.canonicalize() else { return PathStatus::Unreachable };
            return PathStatus::Missing { leads_to: folder.join(name) };
        };
        if leads_to.is_dir() {
            PathStatus::Folder { leads_to }
        } else {
            PathStatus::File { leads_to, link_count: 1 }
        }
    }

    fn names_in(&self, _: &Path) -> Option<Vec<String>> {
        None
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        Some(Path::new("/usr/bin").join(name))
    }
}

/// Returns all one-letter flags, and the long flags in a program's help text.
fn flags_of_program(name: &str) -> Vec<String> {
    let help = Command::new("timeout").args(["2", name, "--help"]).stdin(Stdio::null()).output();
    let help = help.expect("`timeout` is there").stdout;
    let help = String::from_utf8_lossy(&help).into_owned();
    let long =
        help.split([' ', ',', '\n', '\t', '=', '[']).filter(|word| word.starts_with("--") && word.len() > 2);
    let letters = ('a'..='z').chain('A'..='Z').chain('0'..='9').map(|letter| format!("-{letter}"));
    letters.chain(long.map(str::to_owned)).collect()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "real programs need real files; the gate itself touches none")]
fn no_flag_hides_a_path_from_the_gate() {
    let folder = tempfile::tempdir().expect("a folder");
    let workspace = folder.path().canonicalize().expect("it is there").join("workspace");
    std::fs::create_dir(&workspace).expect("a workspace");
    std::fs::write(workspace.join("a.txt"), "one\ntwo\n").expect("a file");
    std::fs::write(folder.path().join("canary"), format!("{CANARY}\n")).expect("a canary");
    let policy = GatePolicy { workspace: workspace.clone(), ..policy(PROGRAMS) };
    let mut run = 0;
    let mut seen = Vec::new();
    for name in PROGRAMS.split_whitespace() {
        let flags = flags_of_program(name);
        let lines = flags.iter().flat_map(|flag| {
            let plain = format!("{name} {flag} ../canary");
            // In `head -5c`, the letter takes no value.
            let numbered =
                (flag.len() == 2).then(|| format!("{name} -5{} ../canary", flag.trim_start_matches('-')));
            std::iter::once(plain).chain(numbered)
        });
        let passes = |line: &String| {
            let verdict = judge_shell(line, AutonomyLevel::Supervised, &policy, &RealMachine).verdict;
            verdict.reasons.iter().all(|reason| reason.weight() < ReasonWeight::High)
        };
        let lines: Vec<_> = lines.filter(passes).collect();
        run += lines.len();
        let printed = run_lines(&lines, &workspace);
        assert_eq!(printed.len(), lines.len(), "{name} did not end in time");
        seen.extend(
            lines
                .into_iter()
                .zip(printed)
                .filter(|(_, printed)| printed.contains(CANARY))
                .map(|(line, _)| line),
        );
    }
    assert!(run > 100, "only {run} lines passed the gate");
    assert!(seen.is_empty(), "{} of {run}:\n{}", seen.len(), seen.join("\n"));
    let canary = std::fs::read_to_string(folder.path().join("canary")).expect("the canary is where it was");
    assert_eq!(canary, format!("{CANARY}\n"));
}

/// Runs lines in a shell, and returns the output of each line.
fn run_lines(lines: &[String], workspace: &Path) -> Vec<String> {
    const SCRIPT: &str = r#"for line; do eval "$line" < /dev/null 2>&1; printf '<line ends here>'; done"#;
    let output = Command::new("timeout")
        .args(["30", "sh", "-c", SCRIPT, "sh"])
        .args(lines)
        .current_dir(workspace)
        .stdin(Stdio::null())
        .output()
        .expect("`timeout` is there");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_terminator("<line ends here>").map(str::to_owned).collect()
}
