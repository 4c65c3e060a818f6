//! Environment variables before a command: most are harmless, some make programs do something else.

use collieclaw_gate::{AutonomyLevel, GateDecision, ReasonWeight};

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
        "GIT_SEQUENCE_EDITOR=true",
        "GIT_TRACE=1",
        "GIT_LFS_SKIP_SMUDGE=1",
        "LESS=-FRX",
        "HTTPS_PROXY=",
        "NO_PROXY=localhost",
        "NODE_TLS_REJECT_UNAUTHORIZED=0",
        "PYTHONBREAKPOINT=0",
        "PYTHONDEVMODE=1",
        "MALLOC_ARENA_MAX=2",
        "npm_config_loglevel=silent",
    ] {
        for line in [format!("{variable} ls"), format!("env {variable} ls")] {
            assert_eq!(judged(&line), (ReasonWeight::Medium, vec!["listed-program"]), "{line}");
        }
    }
}

/// `ls` ignores them. A toolchain that obeys them runs the project's code anyway.
#[test]
fn variables_of_toolchains_are_harmless() {
    for variable in [
        "CC=gcc",
        "CXX=clang++",
        "CFLAGS='-O2 -Wall'",
        "MAKEFLAGS=-j4",
        "GOFLAGS=-count=1",
        "NODE_OPTIONS=--max-old-space-size=4096",
        "JAVA_HOME=/usr/lib/jvm/default-java",
        "MAVEN_OPTS=-Xmx1g",
        "PKG_CONFIG_PATH=/usr/lib/pkgconfig",
        "CLASSPATH=build/classes",
        "RUSTC_WRAPPER=",
        "CARGO_BUILD_JOBS=2",
        "CARGO_PROFILE_DEV_DEBUG=0",
        "RUSTUP_TOOLCHAIN=nightly",
        "MYPYPATH=src",
        "XDG_CACHE_HOME=/tmp/cache",
        "CARGO_HOME=.cargo-home",
        "CARGO_TARGET_DIR=/tmp/target",
        "CARGO_TARGET_DIR=/w/target2",
        "GOPATH=go",
        "PYTHONPATH=/tmp/site:src",
        "PERL5LIB=lib",
        "npm_config_cache=/tmp/npm",
    ] {
        for line in [format!("{variable} ls"), format!("env {variable} ls")] {
            assert_eq!(judged(&line), (ReasonWeight::Medium, vec!["listed-program"]), "{line}");
        }
    }
}

/// `yq` only reads, and a variable can make it run a module of the workspace.
#[test]
fn variables_that_choose_code_are_refused_at_the_level_readonly() {
    let decision = |line: &str, level| judge_line(line, level, "yq").decision;
    for variable in
        ["PYTHONPATH=.", "PYTHONPYCACHEPREFIX=.", "PERL5LIB=lib", "JAVA_TOOL_OPTIONS=-javaagent:x.jar"]
    {
        for line in [format!("{variable} yq . a.txt"), format!("env {variable} yq . a.txt")] {
            assert_eq!(decision(&line, AutonomyLevel::ReadOnly), GateDecision::Deny, "{line}");
            assert_eq!(decision(&line, AutonomyLevel::Supervised), GateDecision::Ask, "{line}");
        }
    }
    for line in ["yq . a.txt", "LC_ALL=C yq . a.txt", "NODE_ENV=test yq . a.txt"] {
        assert_eq!(decision(line, AutonomyLevel::ReadOnly), GateDecision::Allow, "{line}");
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
        "PYTHONPATH=src:..",
        "PYTHONPATH=/tmp/../w/..",
        "PERL5LIB=/home/kid/lib",
        "PERL5OPT=-Mx",
        "CARGO_HOME=/home/kid/.cargo",
        "CARGO_TARGET_DIR=..",
        "GOPATH=/home/kid/go",
        "GIT_SEQUENCE_EDITOR=./x",
        "PYTHONPATH='~/x'",
        "NODE_PATH=/usr/lib",
        "PYTHONWARNINGS=error::x.Y",
        "TMPDIR=/w",
        "TMPDIR=/tmpx",
        "GIT_DIR=.",
        "MY_PAGER=x",
        "MY_OPTIONS=x",
        "HTTPS_PROXY=x",
        "GIT_TRACE=/w/x",
        "LESS=-ox",
        "LESS='+!x'",
        "PYTHONBREAKPOINT=x.y",
        "MYPYPATH=..",
        "XDG_CACHE_HOME=/home/kid/.cache",
        "XDG_CONFIG_HOME=.",
        "HOME=/w",
        "PYTHONSTARTUP=x",
        // A harmless pager or editor is no harmless value of other variables.
        "BASH_ENV=cat",
        "PYTHONSTARTUP=true",
        "SSH_ASKPASS=true",
        "HOME=:",
        // `man` passes these on to `groff`, which can run commands.
        "MANROFFOPT=-U",
        "GROFF_COMMAND_PREFIX=x",
        "ZIP=-TT",
        // The script `zgrep` runs this.
        "GREP=./x",
        // `gawk` maps this file as its own memory.
        "GAWK_PERSIST_FILE=x",
        "OPENSSL_MODULES=.",
        "OPENSSL_ENGINES=.",
        // Only the library of `stdbuf` itself is harmless.
        "LD_PRELOAD=/w/coreutils/libstdbuf.so",
        "LD_PRELOAD=/usr/lib/x:/w/coreutils/libstdbuf.so",
        "LD_PRELOAD='/usr/lib/x /w/coreutils/libstdbuf.so'",
    ] {
        for line in [format!("{variable} ls"), format!("env {variable} ls")] {
            assert_eq!(judged(&line), (ReasonWeight::High, vec!["variable"]), "{line}");
        }
    }
}

/// Without this variable, `git` obeys settings that a line can write.
#[test]
fn the_variable_with_the_settings_of_git_is_kept() {
    for line in ["env -u GIT_CONFIG_GLOBAL git log", "env --unset=GIT_CONFIG_GLOBAL FOO=1 timeout 5 git log"]
    {
        assert_eq!(heaviest_reasons(&judge_line(line, AutonomyLevel::Full, "git")).1, ["variable"], "{line}");
    }
    for line in ["env -u FOO git log", "env -u PAGER -u LD_PRELOAD ls", "env -i ls"] {
        let (weight, _) = heaviest_reasons(&judge_line(line, AutonomyLevel::Full, "git"));
        assert_eq!(weight, ReasonWeight::Medium, "{line}");
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
