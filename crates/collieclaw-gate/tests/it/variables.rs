//! Environment variables before a command: most are harmless, some make programs do something else.

use collieclaw_gate::{AutonomyLevel, ReasonWeight};

use crate::test_machine::{heaviest_reasons, judge_line};

fn judged(line: &str) -> (ReasonWeight, Vec<&'static str>) {
    heaviest_reasons(&judge_line(line, AutonomyLevel::Full, ""))
}

#[test]
fn variables_that_only_change_the_output_are_harmless() {
    for variable in [
        "FOO=1",
        "DEBUG=",
        "LC_ALL=C",
        "LC_ALL=",
        "LANG=POSIX",
        "LC_ALL=en_GB.UTF-8",
        "LANG=de_DE.utf8",
        "PAGER=cat",
        "GIT_PAGER=",
        "EDITOR=true",
        "GIT_EDITOR=:",
        "VISUAL=true",
        "MANPAGER=cat",
        "PYTHONPATH=src:lib",
        "PYTHONPATH=/w/src",
        "PYTHONPATH=",
        "NODE_PATH=src/../lib",
        "PYTHONWARNINGS=ignore",
        "TMPDIR=/tmp",
        "TMPDIR=/tmp/x",
        "CARGO_TERM_COLOR=always",
        "GIT_AUTHOR_NAME=x",
        "PYTHONUNBUFFERED=1",
        "NODE_ENV=test",
    ] {
        for line in [format!("{variable} ls"), format!("env {variable} ls")] {
            assert_eq!(judged(&line), (ReasonWeight::Medium, vec!["listed-program"]), "{line}");
        }
    }
}

#[test]
fn variables_that_make_programs_do_something_else_are_refused() {
    for variable in [
        "LANG=ja_JP.SJIS",
        "LC_CTYPE=zh_CN.GBK",
        "LANG=en_GB",
        "PAGER=less",
        "GIT_PAGER=./x",
        "EDITOR=vi",
        "PYTHONPATH=/tmp",
        "PYTHONPATH=src:..",
        "PYTHONPATH='~/x'",
        "NODE_PATH=/usr/lib",
        "PYTHONWARNINGS=error::x.Y",
        "TMPDIR=/w",
        "TMPDIR=/tmpx",
        "GIT_DIR=.",
        "MY_PAGER=x",
        "MY_OPTIONS=x",
        "GOPATH=x",
        "HTTPS_PROXY=x",
        "HOME=/w",
        "CC=gcc",
        "PYTHONSTARTUP=x",
    ] {
        for line in [format!("{variable} ls"), format!("env {variable} ls")] {
            assert_eq!(judged(&line), (ReasonWeight::High, vec!["variable"]), "{line}");
        }
    }
}

#[test]
fn a_variable_without_a_known_value_or_program_is_refused() {
    for line in ["PAGER=$x ls", "LC_ALL=$x ls", "PYTHONPATH=$x ls", "FOO=1 $x", "env FOO=1 $x"] {
        let verdict = judge_line(line, AutonomyLevel::Full, "");
        assert!(verdict.reasons.iter().any(|reason| reason.code() == "variable"), "{line}");
    }
    // A harmless variable stays harmless, and the line needs a shell for its value only.
    assert_eq!(judged("FOO=$x ls"), (ReasonWeight::High, vec!["unknowable"]));
    assert_eq!(judged("NODE_ENV=$x ls"), (ReasonWeight::High, vec!["unknowable"]));
}

#[test]
fn setting_a_variable_for_later_needs_a_shell() {
    assert_eq!(judged("FOO=1"), (ReasonWeight::High, vec!["unknowable"]));
    assert_eq!(judged("LD_PRELOAD=x"), (ReasonWeight::High, vec!["unknowable", "variable"]));
    assert_eq!(judged("LD_PRELOAD=x export A"), (ReasonWeight::High, vec!["unknowable", "variable"]));
}
