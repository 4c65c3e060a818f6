//! The verdict on a program that was executed, by its real file, arguments and environment (C17).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use collieclaw_gate::{
    AutonomyLevel, ExecVerdict, ExecutedProgram, GatePolicy, OtherProcesses, ProgramOrigin, RiskLevel,
    judge_executed_program, judge_shell, may_change_script,
};

use crate::judged_lines::JudgingMachine;
use crate::test_machine::policy;

use ProgramOrigin::{Line, Program};

/// Judges `FILE ARGV…`, separated by blanks, and returns `line`, `program` or the code of the reason.
pub(crate) fn check(
    origin: ProgramOrigin,
    text: &str,
    variables: &[(&str, &str)],
    policy: &GatePolicy,
) -> &'static str {
    check_beside((origin, OtherProcesses::Waiting, RiskLevel::Medium), text, variables, policy)
}

fn check_beside(
    (started_by, others, risk): (ProgramOrigin, OtherProcesses, RiskLevel),
    text: &str,
    variables: &[(&str, &str)],
    policy: &GatePolicy,
) -> &'static str {
    let mut words = text.split(' ').map(str::to_owned);
    let program = PathBuf::from(words.next().unwrap());
    let arguments: Vec<String> = words.collect();
    let environment: Vec<_> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let executed = ExecutedProgram {
        program: &program,
        file: &program,
        arguments: &arguments,
        environment: &environment,
        removed_variables: &[],
        folder: Path::new("/w"),
        started_by,
        others,
        writable: &["/w", "/home/kid/.cache", "/home/kid/.pyenv/cache"].map(PathBuf::from),
        downloads: &BTreeSet::new(),
        output: None,
    };
    match judge_executed_program(&executed, risk, policy, &JudgingMachine::new()) {
        ExecVerdict::Run { children: Line, .. } => "line",
        ExecVerdict::Run { children: Program, .. } => "program",
        ExecVerdict::Refused(reason) => reason.code(),
    }
}

#[test]
fn commands_of_the_line_are_judged_by_the_table() {
    for (text, expected) in [
        ("/usr/bin/ls ls -l", "program"),
        ("/usr/bin/cat cat a.txt", "program"),
        ("/usr/bin/cat cat /etc/passwd", "forbidden-path"),
        ("/usr/bin/cat cat /home/kid/.bashrc", "outside-workspace"),
        ("/usr/bin/cat cat /dev/fd/63", "program"),
        ("/usr/bin/gcc gcc x.c", "unlisted-program"),
        ("/usr/bin/sed sed -n 1e x", "argument"),
        ("/w/ls ls", "program-by-path"),
        ("/w/ls /w/ls", "program-by-path"),
        // The name in `argv[0]` counts only if it names the executed file.
        ("/usr/bin/gcc ls -l", "unlisted-program"),
        ("/usr/bin/ls gcc", "program"),
        ("/usr/bin/bash bash -c ls", "line"),
        ("/usr/bin/bash -bash", "line"),
        ("/usr/bin/bash bash script.sh", "line"),
        ("/usr/bin/bash bash -c gcc", "unlisted-program"),
        // Builtins of the second shell need no program; an executed program of such a name does.
        ("/usr/bin/bash bash -c cd", "line"),
        ("/usr/bin/bash bash -c set", "line"),
        // The shell knows its home, and the sandbox guards the file.
        ("/usr/bin/bash bash -c ls<~/x", "line"),
        ("/usr/bin/bash bash -c ls<../x", "outside-workspace"),
        ("/usr/bin/env env ls", "line"),
        ("/usr/bin/env env gcc", "unlisted-program"),
        ("/usr/bin/xargs xargs ls", "line"),
        ("/usr/bin/find find . -name x", "line"),
        ("/usr/bin/timeout timeout 5 ls", "line"),
        ("/usr/bin/kill kill 1", "unlisted-program"),
        ("/usr/bin/sudo sudo ls", "unlisted-program"),
        ("/usr/bin/mv mv a.txt .git/hooks/x", "executable-config"),
    ] {
        assert_eq!(check(Line, text, &[], &policy("")), expected, "{text}");
    }
}

#[test]
fn programs_of_listed_programs_are_judged_by_what_nobody_may_do() {
    for (text, expected) in [
        ("/usr/bin/gcc gcc x.c", "program"),
        ("/w/target/debug/x x", "program"),
        ("/usr/bin/bash sh -c gcc", "program"),
        ("/usr/bin/cat cat /home/kid/.bashrc", "program"),
        ("/usr/bin/rm rm x", "forbidden-command"),
        ("/usr/bin/rm ls x", "forbidden-command"),
        ("/usr/bin/busybox rm x", "forbidden-command"),
        ("/usr/bin/busybox busybox rm x", "forbidden-command"),
        ("/usr/bin/busybox busybox ls", "program"),
        ("/usr/bin/coreutils coreutils --coreutils-prog=rm x", "forbidden-command"),
        ("/usr/bin/mkfs.ext4 mkfs.ext4 /dev/sda", "forbidden-command"),
        ("/w/copy harmless x", "forbidden-command"),
        ("/usr/lib/ld-linux-x86-64.so.2 ld.so /usr/bin/rm x", "forbidden-command"),
        ("/usr/lib/ld-linux-x86-64.so.2 ld.so --argv0 ls /usr/bin/rm x", "forbidden-command"),
        ("/usr/lib/ld-linux-x86-64.so.2 ld.so /w/run.sh x", "program-by-path"),
        ("/usr/lib/ld-linux-x86-64.so.2 ld.so --verify /w/run.sh", "program"),
        // A loader outside of the usual folders, where no command can write.
        ("/nix/store/g/lib/ld-linux-x86-64.so.2 x /usr/bin/rm x", "forbidden-command"),
        ("/opt/lib/ld-musl-armhf.so.1 x /w/app", "program-by-path"),
        ("/opt/lib/ld-musl-armhf.so.1 x /usr/bin/ls", "program"),
        ("/opt/lib/ld-copy x /usr/bin/ls", "forbidden-command"),
        // The same name where commands can write: any program.
        ("/w/ld-musl-armhf.so.1 x /usr/bin/rm x", "program"),
        ("/home/kid/.cache/ld-x x /usr/bin/rm x", "program"),
        // Behind the program, the same words are names of files.
        ("/usr/lib/ld-linux-x86-64.so.2 ld.so /usr/bin/rm -f -- x --list", "forbidden-command"),
        ("/usr/lib/ld-linux-x86-64.so.2 ld.so --argv0 --list /usr/bin/rm x", "forbidden-command"),
        // This symlink to a program could lead elsewhere a moment later.
        ("/usr/lib/ld-linux-x86-64.so.2 ld.so /w/link-to-ls x", "program-by-path"),
        ("/w/copied-loader x /usr/bin/rm x", "program-by-path"),
        // Only a loader of the system is one.
        ("/w/ld-linux-copy x /usr/bin/ls x", "forbidden-command"),
        ("/usr/lib/ld-linux-x86-64.so.2 ld.so /usr/bin/ls x", "program"),
        // The loader in front of a program that contains many.
        ("/usr/lib/ld-linux-x86-64.so.2 ld.so /usr/bin/busybox rm x", "forbidden-command"),
        ("/usr/lib/ld-linux-x86-64.so.2 ld.so /usr/bin/busybox -x busybox rm x", "forbidden-command"),
        ("/usr/lib/ld-linux-x86-64.so.2 ld.so --argv0 rm /usr/bin/busybox x", "forbidden-command"),
        ("/usr/lib/ld-linux-x86-64.so.2 ld.so /usr/bin/chown -R kid src", "destructive"),
        ("/usr/lib/ld-linux-x86-64.so.2 ld.so --argv0 x /usr/bin/busybox ls rm", "program"),
        ("/usr/bin/busybox busybox busybox rm x", "forbidden-command"),
        ("/w/copied-busybox x rm x", "forbidden-command"),
        ("/w/copied-busybox x ls", "program"),
        ("/usr/bin/chown chown -R kid src", "destructive"),
        ("/usr/bin/systemctl systemctl poweroff", "destructive"),
        ("/w/kept/secret secret", "forbidden-path"),
        ("/home/kid/.collieclaw/x x", "own-home"),
    ] {
        assert_eq!(check(Program, text, &[], &policy("")), expected, "{text}");
    }
}

#[test]
fn scripts_count_as_the_command_or_the_allowed_script() {
    let mut policy = policy("npm");
    for (text, expected) in [
        ("/usr/bin/env /usr/bin/env node /usr/bin/npm test", "line"),
        // On Debian, `which` is a symlink to a script with another name.
        ("/usr/bin/dash /bin/sh /usr/bin/which ls", "program"),
        ("/usr/bin/node node /usr/bin/npm test", "program"),
        ("/usr/bin/node node evil.js", "unlisted-program"),
        ("/usr/bin/node node -r /usr/bin/npm", "unlisted-program"),
        ("/usr/bin/node node -r /home/kid/x.js", "outside-workspace"),
        ("/usr/bin/python3 python3 /w/run.sh", "unlisted-program"),
    ] {
        assert_eq!(check(Line, text, &[], &policy), expected, "{text}");
    }
    policy.allowed_scripts.insert("/w/run.sh".into(), "good".to_owned());
    policy.allowed_scripts.insert("/w/tool".into(), "tool".to_owned());
    policy.allowed_scripts.insert("/w/env-tool".into(), "env-tool".to_owned());
    for (text, expected) in [
        ("/usr/bin/bash /bin/bash -e ./run.sh x", "program"),
        ("/usr/bin/python3 python3 ./run.sh", "program"),
        ("/usr/bin/python3 python3 -m ./run.sh", "unlisted-program"),
        // The sandbox has a temporary folder of its own, so this is another file than the symlink of the machine.
        ("/usr/bin/python3 python3 /tmp/link-to-script", "unlisted-program"),
        // Nobody knows what this program does with the script.
        ("/usr/bin/somewhat somewhat ./run.sh", "unlisted-program"),
        ("/usr/bin/somewhat somewhat -e ./run.sh", "unlisted-program"),
        ("/usr/bin/somewhat somewhat /usr/bin/npm ci", "unlisted-program"),
        ("/usr/bin/own-interpreter own-interpreter ./tool x", "program"),
        ("/usr/bin/other-interpreter other-interpreter ./tool x", "unlisted-program"),
        ("/usr/bin/own-interpreter own-interpreter ./env-tool x", "program"),
        ("/usr/bin/other-interpreter other-interpreter ./env-tool x", "unlisted-program"),
    ] {
        assert_eq!(check(Line, text, &[], &policy), expected, "{text}");
    }
    policy.allowed_scripts.insert("/w/run.sh".into(), "other content".to_owned());
    assert_eq!(check(Line, "/usr/bin/python3 python3 ./run.sh", &[], &policy), "unlisted-program");
}

/// The shell opens the script after this check, so a symlink that the line can replace proves nothing.
#[test]
fn a_symlink_that_the_line_can_replace_does_not_count_as_the_command_it_leads_to() {
    let policy = policy("ls");
    for path in ["/usr/bin/which", "/home/kid/.local/bin/link-to-which"] {
        assert_eq!(check(Line, &format!("/usr/bin/dash sh {path} ls"), &[], &policy), "program", "{path}");
    }
    for path in [
        "./link-to-which",
        "/w/link-to-which",
        "/home/kid/.cache/link-to-which",
        "/tmp/link-to-which",
        "/usr/../w/link-to-which",
    ] {
        for program in ["/usr/bin/dash sh", "/usr/bin/python3 python3"] {
            let text = format!("{program} {path} ls");
            assert_ne!(check(Line, &text, &[], &policy), "program", "{text}");
        }
    }
}

#[test]
fn a_command_that_only_reads_or_writes_other_files_can_not_change_a_script() {
    let policy = policy("tee");
    let machine = JudgingMachine::new();
    for (line, expected) in [
        ("cat a.txt", false),
        ("grep -n x run.sh", false),
        ("sort a.txt > out.txt", false),
        ("tee out.txt", false),
        ("tee run.sh", true),
        ("tee src", false),
        ("cat a.txt >> run.sh", true),
        ("cp a.txt b.txt", true),
        ("sed -i s/a/b/ a.txt", true),
    ] {
        let plan = judge_shell(line, AutonomyLevel::Full, &policy, &machine).plan.expect(line);
        let command = &plan.lists()[0].first.commands[0];
        assert_eq!(may_change_script(command, Path::new("/w/run.sh"), &policy, &machine), expected, "{line}");
    }
}

#[test]
fn at_the_level_full_unlisted_programs_run_and_forbidden_ones_do_not() {
    let policy = GatePolicy { autonomy: AutonomyLevel::Full, ..policy("") };
    assert_eq!(check(Line, "/usr/bin/gcc gcc x.c", &[], &policy), "program");
    assert_eq!(check(Line, "/w/tool tool", &[], &policy), "program");
    assert_eq!(check(Line, "/usr/bin/rm rm x", &[], &policy), "forbidden-command");
    assert_eq!(check(Line, "/usr/bin/cat cat /etc/passwd", &[], &policy), "forbidden-path");
}

#[test]
fn a_pinned_program_is_the_command_of_its_name() {
    let mut policy = policy("cargo");
    assert_eq!(check(Line, "/home/kid/.cargo/bin/rustup cargo build", &[], &policy), "program-by-path");
    policy.pinned_programs.insert("cargo".to_owned(), "/home/kid/.cargo/bin/rustup".into());
    assert_eq!(check(Line, "/home/kid/.cargo/bin/rustup cargo build", &[], &policy), "program");
    assert_eq!(check(Line, "/usr/bin/cargo cargo build", &[], &policy), "program-by-path");
    // The file is known by its place, whatever its caller calls it.
    assert_eq!(check(Line, "/home/kid/.cargo/bin/rustup x build", &[], &policy), "program");
}

#[test]
fn a_listed_shell_runs_a_script_file_like_an_interpreter() {
    let full = GatePolicy { autonomy: AutonomyLevel::Full, ..policy("") };
    for (text, unlisted, listed) in [
        ("/usr/bin/bash bash script.sh", "line", "program"),
        ("/usr/bin/bash bash -e script.sh x", "line", "program"),
        ("/usr/bin/bash bash -c ls", "line", "line"),
        ("/usr/bin/bash bash -s x", "line", "line"),
        ("/usr/bin/bash bash", "line", "line"),
        ("/usr/bin/bash bash -e", "line", "line"),
        // The values of flags are no scripts.
        ("/usr/bin/bash bash -o errexit", "line", "line"),
        ("/usr/bin/bash bash -o pipefail -es", "line", "line"),
        ("/usr/bin/bash bash -oe pipefail", "line", "line"),
        ("/usr/bin/bash bash -Oo extglob pipefail", "line", "line"),
        ("/usr/bin/bash bash +e", "line", "line"),
        ("/usr/bin/bash bash --rcfile x", "line", "line"),
        ("/usr/bin/bash bash --init-file x", "line", "line"),
        ("/usr/bin/bash bash -init-file x", "line", "line"),
        ("/usr/bin/bash bash -rcfile x", "line", "line"),
        ("/usr/bin/bash bash --norc -- /dev/stdin", "line", "line"),
        // Long flags with one dash, which are no letters.
        ("/usr/bin/bash bash -login -c ls", "line", "line"),
        ("/usr/bin/bash bash -login -s x", "line", "line"),
        ("/usr/bin/bash bash -noprofile -c ls x", "line", "line"),
        ("/usr/bin/bash bash -noediting -noprofile -wordexp -c ls x", "line", "line"),
        ("/usr/bin/bash bash --login -noediting -es x", "line", "line"),
        ("/usr/bin/bash bash -e -noprofile errexit pipefail -s x", "line", "line"),
        ("/usr/bin/bash bash -login script.sh", "line", "program"),
        ("/usr/bin/bash bash -norc -posix script.sh", "line", "program"),
        ("/usr/bin/bash bash --", "line", "line"),
        ("/usr/bin/bash bash - /dev/fd/5", "line", "line"),
        ("/usr/bin/bash bash -o errexit script.sh", "line", "program"),
        ("/usr/bin/bash bash -oe pipefail script.sh", "line", "program"),
        ("/usr/bin/bash bash --rcfile x script.sh", "line", "program"),
        ("/usr/bin/bash bash --norc script.sh", "line", "program"),
        ("/usr/bin/bash bash +x script.sh", "line", "program"),
        ("/usr/bin/bash bash -- script.sh", "line", "program"),
        // `dash` takes the long flags of bash for letters, and `s` for its input.
        ("/usr/bin/dash dash -posix errexit", "line", "line"),
        ("/usr/bin/bash bash - script.sh", "line", "program"),
        // The arguments of a script are no flags of the shell.
        ("/usr/bin/bash bash script.sh -s", "line", "program"),
        ("/usr/bin/bash bash script.sh -c ls", "line", "program"),
        ("/usr/bin/bash bash script.sh /dev/stdin", "line", "program"),
        ("/usr/bin/env env ls", "line", "line"),
        ("/usr/bin/xargs xargs ls", "line", "line"),
    ] {
        assert_eq!(check(Line, text, &[], &policy("")), unlisted, "{text}");
        assert_eq!(check(Line, text, &[], &policy("bash env xargs")), listed, "{text}");
        assert_eq!(check(Line, text, &[], &full), listed, "{text}");
    }
}

#[test]
fn an_allowed_script_is_read_when_nothing_can_swap_it() {
    let mut policy = policy("");
    policy.allowed_scripts.insert("/w/run.sh".into(), "good".to_owned());
    for (text, alone, beside_others) in [
        ("/usr/bin/python3 python3 ./run.sh", "program", "unlisted-program"),
        ("/usr/bin/env env ./run.sh", "line", "line"),
        ("/usr/bin/bash bash -e ./run.sh", "program", "line"),
        // The executed file itself is read through the process.
        ("/w/run.sh ./run.sh", "program", "program"),
        ("/w/ls ./run.sh", "program-by-path", "program-by-path"),
        // These programs don't interpret their arguments.
        ("/usr/bin/cp cp ./run.sh /etc/x", "forbidden-path", "forbidden-path"),
        ("/usr/bin/cat cat ./run.sh /etc/passwd", "forbidden-path", "forbidden-path"),
        // Another flag than that of the script's `#!` line.
        ("/usr/bin/bash bash -x ./run.sh", "line", "line"),
        ("/usr/bin/python3 python3 run.sh", "unlisted-program", "unlisted-program"),
    ] {
        for (others, expected) in [(OtherProcesses::Waiting, alone), (OtherProcesses::MayRun, beside_others)]
        {
            let found = check_beside((Line, others, RiskLevel::Medium), text, &[], &policy);
            assert_eq!(found, expected, "{text} {others:?}");
        }
    }
}

#[test]
fn a_program_may_weigh_as_much_as_its_approved_line() {
    for (text, risk, expected) in [
        ("/usr/bin/ls ls", RiskLevel::Low, "listed-program"),
        ("/usr/bin/ls ls", RiskLevel::Medium, "program"),
        ("/usr/bin/gcc gcc", RiskLevel::Medium, "unlisted-program"),
        ("/usr/bin/gcc gcc", RiskLevel::High, "program"),
        ("/usr/bin/cat cat /etc/passwd", RiskLevel::High, "forbidden-path"),
    ] {
        let found = check_beside((Line, OtherProcesses::Waiting, risk), text, &[], &policy(""));
        assert_eq!(found, expected, "{text} {risk}");
    }
}

#[test]
fn every_name_of_an_executed_file_is_judged() {
    let mut policy = policy("");
    for (text, expected) in [
        ("/usr/bin/busybox busybox /bin/rm x", "forbidden-command"),
        ("/usr/bin/busybox busybox -x rm", "forbidden-command"),
        ("/usr/bin/busybox busybox ls rm", "program"),
        ("/usr/bin/busybox busybox chown -R kid src", "destructive"),
        ("/usr/bin/busybox.static busybox.static rm x", "forbidden-command"),
        ("/usr/bin/toybox toybox rm x", "forbidden-command"),
        ("/usr/bin/coreutils coreutils --coreutils-prog-shebang=rm x", "forbidden-command"),
        ("/usr/bin/coreutils coreutils --coreutils-prog=/bin/rm x", "forbidden-command"),
        ("/usr/bin/coreutils coreutils --coreutils-prog=ls x", "program"),
        ("/usr/bin/ls ls rm", "program"),
        ("/usr/bin/x -rm x", "forbidden-command"),
        ("/usr/lib/ld64.so.1 ld64.so.1 /usr/bin/rm x", "forbidden-command"),
        ("/usr/bin/ld.so ld.so /usr/bin/rm x", "forbidden-command"),
        ("/usr/bin/ld.so ld.so", "program-by-path"),
        ("/usr/bin/ld.so ld.so --preload x /usr/bin/ls", "program"),
        ("/usr/bin/ld.so ld.so --x /usr/bin/ls", "program"),
        ("/usr/bin/ld.so ld.so --help", "program"),
        ("/usr/bin/ld.so ld.so /usr/bin/../bin/ls", "program-by-path"),
        ("/usr/bin/ld.so ld.so /usr/bin", "program-by-path"),
        ("/usr/bin/ldd ldd /usr/bin/rm", "program"),
        ("/w/copied-which which x", "program"),
    ] {
        assert_eq!(check(Program, text, &[], &policy), expected, "{text}");
    }
    // A file with many names is more than one forbidden command.
    policy.forbidden_commands.insert("which".to_owned());
    assert_eq!(check(Program, "/w/copied-which x", &[], &policy), "program");
    assert_eq!(check(Program, "/w/copied-which which", &[], &policy), "forbidden-command");
}

/// A virtual environment leads to the Python that has created it, which may be another version than the listed one.
#[test]
fn the_python_of_a_virtual_environment_counts_as_the_listed_one() {
    let pyenv = "/home/kid/.pyenv/versions/3.12/bin/python3.12 .venv/bin/python";
    for (text, allowed, expected) in [
        (format!("{pyenv} a.py"), "python3", "program"),
        (format!("{pyenv} a.py"), "python", "program"),
        (format!("{pyenv} /etc/passwd"), "python3", "forbidden-path"),
        (format!("{pyenv} a.py"), "node", "program-by-path"),
        ("/usr/bin/python3.12 .venv/bin/python a.py".to_owned(), "python3", "program"),
        ("/usr/bin/python3.12 .venv/bin/python a.py".to_owned(), "", "unlisted-program"),
        // Somebody could change these, or they are something else.
        ("/home/kid/other/python3.12 .venv/bin/python a.py".to_owned(), "python3", "program-by-path"),
        ("/w/python3.12 python3 a.py".to_owned(), "python3", "program-by-path"),
        ("/home/kid/.pyenv/cache/python3.12 python3 a.py".to_owned(), "python3", "program-by-path"),
        ("/tmp/python3 python3 a.py".to_owned(), "python3", "program-by-path"),
        ("/home/kid/.pyenv/python3-evil python3 a.py".to_owned(), "python3", "program-by-path"),
        ("/home/kid/.pyenv/bin/node python3 a.py".to_owned(), "python3", "program-by-path"),
    ] {
        assert_eq!(check(Line, &text, &[], &policy(allowed)), expected, "{text}, {allowed}");
    }
}

/// `ldd` starts the loader with a variable that makes it only list the libraries of a program.
#[test]
fn the_loader_may_list_the_libraries_of_any_program() {
    let lists = [("LD_TRACE_LOADED_OBJECTS", "1")];
    for (text, variables, expected) in [
        ("/usr/lib/ld-linux-x86-64.so.2 ld.so ./app", &lists[..], "program"),
        ("/usr/lib/ld-linux-x86-64.so.2 ld.so /usr/bin/rm", &lists, "program"),
        ("/usr/lib/ld-linux-x86-64.so.2 ld.so ./app", &[], "program-by-path"),
        // The loader of musl doesn't know the variable, and a copy may be another program.
        ("/lib/ld-musl-x86_64.so.1 ld.so ./app", &lists, "program-by-path"),
        ("/w/copied-loader ld.so /usr/bin/rm", &lists, "program-by-path"),
        ("/w/ld-linux-copy x", &lists, "forbidden-command"),
    ] {
        assert_eq!(check(Program, text, variables, &policy("")), expected, "{text}");
    }
}

/// The private temporary folder of a line is in that of the system if the workspace is there.
#[test]
fn a_python_in_the_temporary_folder_is_no_other_version_of_the_listed_one() {
    let policy = GatePolicy { workspace: "/tmp/w".into(), ..policy("python3") };
    for (program, expected) in
        [("/tmp/private/python3.12", "program-by-path"), ("/home/kid/.pyenv/bin/python3.12", "program")]
    {
        let found = check(Line, &format!("{program} python3 /tmp/w/a.py"), &[], &policy);
        assert_eq!(found, expected, "{program}");
    }
}
