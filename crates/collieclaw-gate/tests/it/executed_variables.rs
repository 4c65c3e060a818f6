//! The variables of an executed program (C17).

use std::collections::BTreeSet;
use std::path::Path;

use collieclaw_gate::{
    ExecVerdict, ExecutedProgram, OtherProcesses, ProgramOrigin, RiskLevel, judge_executed_program,
};

use crate::executed_programs::check;
use crate::judged_lines::JudgingMachine;
use crate::test_machine::policy;

use ProgramOrigin::{Line, Program};

#[test]
fn variables_that_make_programs_run_code_are_refused_for_commands_of_the_line() {
    for (name, value, expected) in [
        ("LD_PRELOAD", "./x.so", "variable"),
        ("LD_LIBRARY_PATH", ".", "variable"),
        ("GIT_SSH_COMMAND", "x", "variable"),
        ("GIT_PAGER", "./x", "variable"),
        ("BASH_ENV", "./x", "variable"),
        ("PYTHONSTARTUP", "./x", "variable"),
        ("PERL5OPT", "-Mx", "variable"),
        ("PYTHONPATH", "/home/kid/x", "variable"),
        ("HOME", "/w", "variable"),
        ("HOME", "/tmp/../w", "variable"),
        ("HOME", "tmp", "variable"),
        ("HOME", "/tmp/home", "program"),
        ("GIT_DIR", "/tmp/home", "variable"),
        ("PYTHONPATH", ".", "program"),
        ("PYTHONPATH", "src:/w/lib", "program"),
        ("PYTHONPATH", "/tmp/x", "program"),
        // `stdbuf` sets this.
        ("LD_PRELOAD", "/usr/libexec/coreutils/libstdbuf.so", "program"),
        ("LD_PRELOAD", "/usr/lib/../../w/coreutils/libstdbuf.so", "variable"),
        ("LD_PRELOAD", "/w/coreutils/libstdbuf.so", "variable"),
        ("LD_PRELOAD", "/usr/libexec/x:/w/coreutils/libstdbuf.so", "variable"),
        ("LD_PRELOAD", "/usr/libexec/x /w/coreutils/libstdbuf.so", "variable"),
        // Only `node` obeys this, and `node` runs the project's code anyway.
        ("NODE_OPTIONS", "--require=./x", "program"),
        ("NODE_ENV", "test", "program"),
        ("GIT_PAGER", "cat", "program"),
        ("PATH", "/w/.venv/bin:/usr/bin", "program"),
        ("CI", "1", "program"),
        ("BASH_FUNC_f%%", "() { ls; }", "program"),
        ("OLDPWD", "/w", "program"),
    ] {
        let found = check(Line, "/usr/bin/ls ls", &[(name, value)], &policy(""));
        assert_eq!(found, expected, "{name}={value}");
        assert_eq!(check(Program, "/usr/bin/ls ls", &[(name, value)], &policy("")), "program");
    }
}

#[test]
fn exported_functions_and_variables_of_the_shell_are_harmless() {
    for (name, expected) in [
        ("BASH_FUNC_f%%", "program"),
        ("BASH_FUNC_f", "variable"),
        ("LD_PRELOAD%%", "variable"),
        ("PS1", "program"),
        ("IFS", "program"),
        ("SHELLOPTS", "program"),
        ("PS4", "variable"),
    ] {
        assert_eq!(check(Line, "/usr/bin/ls ls", &[(name, "x")], &policy("")), expected, "{name}");
    }
}

/// Without its settings, `git` obeys those that a line can write into the commands' own home.
#[test]
fn git_keeps_the_variable_with_its_settings() {
    let run = |text: &str, removed: &[&str]| {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        let executed = ExecutedProgram {
            program: Path::new(&words[0]),
            file: Path::new(&words[0]),
            arguments: &words[1..],
            environment: &[],
            removed_variables: &removed.iter().map(|&name| name.to_owned()).collect::<Vec<_>>(),
            folder: Path::new("/w"),
            started_by: Line,
            others: OtherProcesses::Waiting,
            writable: &[],
            downloads: &BTreeSet::new(),
            output: None,
        };
        let policy = policy("git make");
        match judge_executed_program(&executed, RiskLevel::Medium, &policy, &JudgingMachine::new()) {
            ExecVerdict::Run { .. } => "runs",
            ExecVerdict::Refused(reason) => reason.code(),
        }
    };
    let status = "/usr/bin/git git status";
    for (text, removed, expected) in [
        (status, &["GIT_CONFIG_GLOBAL"][..], "variable"),
        (status, &["FOO", "GIT_CONFIG_GLOBAL", "PATH"], "variable"),
        (status, &["GIT_CONFIG_GLOBAL", "HOME"], "runs"),
        (status, &["FOO", "HOME"], "runs"),
        (status, &[], "runs"),
        // These ignore the variable, or run the project's code anyway.
        ("/usr/bin/ls ls", &["GIT_CONFIG_GLOBAL"], "runs"),
        ("/usr/bin/make make", &["GIT_CONFIG_GLOBAL"], "runs"),
    ] {
        assert_eq!(run(text, removed), expected, "{text}, {removed:?}");
    }
}
