//! Patterns are expanded before the verdict, so that the judged words are the words that run (C7.3b).

use collieclaw_gate::plan::PlannedAction;
use collieclaw_gate::{AutonomyLevel, GatePolicy, PathBounds, judge_shell};

use crate::test_machine::{GateTestMachine, policy};

/// Returns the words of the first command of the plan, separated by `|`; `None` if the line needs a shell.
fn words(line: &str) -> Option<String> {
    let plan = judge_shell(line, AutonomyLevel::Full, &policy(""), &GateTestMachine::new()).plan?;
    match &plan.lists()[0].first.commands[0].action {
        PlannedAction::Run { words, .. } => Some(words.join("|")),
        _ => None,
    }
}

#[test]
fn a_pattern_becomes_the_names_that_match() {
    for (line, expected) in [
        ("ls *.txt", "ls|a.txt|b.txt|shared.txt"),
        ("ls ?.txt", "ls|a.txt|b.txt"),
        ("ls [ab].txt", "ls|a.txt|b.txt"),
        ("ls [a-a].txt", "ls|a.txt"),
        ("ls [!a].txt", "ls|b.txt"),
        ("ls [!a]*.txt", "ls|b.txt|shared.txt"),
        ("ls [b-z]*.txt", "ls|b.txt|shared.txt"),
        ("ls [a-].txt", "ls|a.txt"),
        ("ls *a*.txt", "ls|a.txt|shared.txt"),
        ("ls s*r*d.txt", "ls|shared.txt"),
        ("ls *.tx", "ls|*.tx"),
        ("ls *?.txt", "ls|a.txt|b.txt|shared.txt"),
        ("ls a.txt*", "ls|a.txt"),
        ("ls a.txt?", "ls|a.txt?"),
        ("ls A*", "ls|A*"),
        ("ls '*'.txt", "ls|*.txt"),
        // Names with a dot need a dot in the pattern.
        ("ls .h*", "ls|.hidden"),
        ("ls *hidden", "ls|*hidden"),
        ("ls ?hidden", "ls|?hidden"),
        ("ls [.]hidden", "ls|[.]hidden"),
        // Folders.
        ("ls src/*.rs", "ls|src/lib.rs|src/main.rs|src/shared.rs"),
        ("ls ./?.txt", "ls|./a.txt|./b.txt"),
        ("ls /w/*.md", "ls|/w/README.md"),
        ("ls my\\ dir/*", "ls|my dir/n.txt"),
        ("ls src/*/x.rs", "ls|src/deep/x.rs"),
        ("ls src/d*/*.rs", "ls|src/deep/x.rs"),
        ("ls src/*/", "ls|src/deep/"),
        ("ls [s]rc/main.rs", "ls|src/main.rs"),
        ("ls [s]rc/none.rs", "ls|[s]rc/none.rs"),
        ("ls s*c/lib.rs b*", "ls|src/lib.rs|b.txt"),
        ("ls a.txt/*", "ls|a.txt/*"),
        // A pattern also matches a symlink that leads to nothing.
        ("ls [l]ost/link", "ls|lost/link"),
        ("ls [l]ost/other", "ls|[l]ost/other"),
        ("ls lo*/*", "ls|lost/link"),
        ("ls none/*", "ls|none/*"),
    ] {
        assert_eq!(words(line).as_deref(), Some(expected), "{line}");
    }
}

#[test]
fn patterns_that_shells_expand_differently_need_a_shell() {
    for line in [
        // Some shells match `.` and `..`, collapse slashes, or follow `..` through links.
        "ls .*",
        "ls .?",
        "ls src/.*",
        "ls src//*.rs",
        "ls src/../*.txt",
        // Folders outside of the workspace aren't listed.
        "ls /us[r]/x",
        "ls o?t/*",
        "ls */*.rs",
        "ls ~/*",
        // The command before may have created files.
        "touch x; ls *.txt",
        "touch x; ls; ls *.txt",
        "ls [z[:alpha:]]*",
    ] {
        let judged = judge_shell(line, AutonomyLevel::Full, &policy(""), &GateTestMachine::new());
        assert_eq!(judged.plan, None, "{line}: {:?}", judged.verdict);
    }
    for line in ["ls .[h]*", "ls .h?dden", "ls src/*", "ls *.txt; touch x"] {
        assert!(words(line).is_some(), "{line}");
    }
}

#[test]
fn folders_outside_of_the_workspace_are_never_listed() {
    let policy = GatePolicy { bounds: PathBounds::Anywhere, ..policy("") };
    for line in ["ls /us[r]/bin", "ls /usr/bin/l*", "ls /home/kid/.bashrc/*"] {
        let verdict = judge_shell(line, AutonomyLevel::Full, &policy, &GateTestMachine::new()).verdict;
        assert!(verdict.reasons.iter().any(|reason| reason.code() == "unknowable"), "{line}: {verdict:?}");
    }
}

#[test]
fn a_pattern_as_long_as_a_file_name_is_expanded() {
    let line = |length: usize| format!("ls *{}", "x".repeat(length - 1));
    assert!(words(&line(255)).is_some());
    assert_eq!(words(&line(256)), None);
}
