//! Everyday tools that must work inside of the sandbox.

use std::fs;
use std::process::Command;

use ward_process::sandbox::Sandbox;
use ward_process::{Containment, ProcessExit, ProcessSpec, Supervisor, probe};

use super::{ProgramOutput, SandboxFixture, run, spawn, wait_for_output};

fn check(fixture: &SandboxFixture, script: &str, expected: &str) {
    check_spec(fixture.shell(script), script, expected);
}

fn check_spec(spec: ProcessSpec, what: &str, expected: &str) {
    let outcome = run(spec);
    let succeeded =
        ProgramOutput { exit: ProcessExit::Code(0), stdout: expected.into(), stderr: String::new() };
    assert_eq!(outcome, succeeded, "{what}; if a program is missing: cargo xtask setup");
}

#[test]
fn a_shell_and_its_tools_work_in_the_workspace() {
    let fixture = SandboxFixture::new();
    fs::write(fixture.path("workspace/notes"), "pear\napple\n").unwrap();
    check(&fixture, "sort notes | head -n 1", "apple\n");
    check(&fixture, "ls; grep -c . notes", "notes\n2\n");
    check(&fixture, "mkdir -p a/b && echo x > a/b/c && mv a/b/c a/d && cat a/d && rm -r a", "x\n");
    check(&fixture, "ln notes other && ln -s notes link && cat link | wc -l && rm other link", "2\n");
    check(&fixture, "printf '#!/bin/sh\\necho ran' > run && chmod +x run && ./run && rm run", "ran\n");
    check(&fixture, "mkfifo pipe; echo through > pipe & cat pipe; wait; rm pipe", "through\n");
    check(&fixture, "touch notes && chmod 600 notes && stat -c %a notes", "600\n");
    check(&fixture, "cat > heir <<END\ntext\nEND\ncat heir", "text\n");
    check(&fixture, "nice -n 5 true && timeout 5 echo on time", "on time\n");
}

#[test]
fn devices_that_store_nothing_are_available() {
    let fixture = SandboxFixture::new();
    check(&fixture, "echo gone > /dev/null; cat /dev/null; head -c 4 /dev/urandom | wc -c", "4\n");
    check(&fixture, "head -c 3 /dev/zero | wc -c; echo all >> /dev/stdout", "3\nall\n");
}

#[test]
fn facts_about_the_machine_can_be_read_in_every_containment() {
    let fixture = SandboxFixture::new();
    let script = "head -c 1 /proc/cpuinfo /proc/meminfo /proc/stat /proc/sys/kernel/random/uuid | wc -c";
    for containment in probe().available() {
        let outcome = wait_for_output(spawn(containment, fixture.shell(script)));
        assert_eq!(outcome.stderr, "", "{containment}");
        // The processes of the sandbox itself stay hidden from each other.
        let outcome =
            wait_for_output(spawn(containment, fixture.shell("cat /proc/1/cmdline /proc/self/environ")));
        assert_eq!((outcome.exit, outcome.stdout.as_str()), (ProcessExit::Code(1), ""), "{containment}");
    }
}

#[test]
fn temporary_files_go_to_the_private_folder() {
    let fixture = SandboxFixture::new();
    let script = "file=$(mktemp) && echo kept > $file && cat $file && test $HOME = $TMPDIR && pwd -P";
    let workspace = fs::canonicalize(fixture.workspace()).unwrap();
    check(&fixture, script, &format!("kept\n{}\n", workspace.display()));
}

#[test]
fn the_home_can_be_another_folder() {
    let fixture = SandboxFixture::new();
    let script = "echo $HOME; test $HOME != $TMPDIR && echo own";
    let sandbox = Sandbox { home: Some(fixture.workspace()), ..fixture.sandbox() };
    let spec = fixture.shell(script).sandbox(sandbox);
    check_spec(spec, script, &format!("{}\nown\n", fixture.workspace().display()));
}

#[test]
fn git_works_in_the_workspace() {
    let fixture = SandboxFixture::new();
    let script = "git init -q . && git config user.name n && git config user.email e@example.org \
                  && echo 1 > file && git add file && git commit -qm first && git mv file moved \
                  && git commit -qm second && git log --format=%s && git status --short";
    check(&fixture, script, "second\nfirst\n");
}

#[test]
fn user_and_group_names_are_the_same_as_outside() {
    let fixture = SandboxFixture::new();
    for script in ["whoami", "id -gn", "id -u root", "getent passwd 0 && getent group 0"] {
        let outside = Command::new("/bin/sh").args(["-c", script]).env("LC_ALL", "C").output().unwrap();
        let inside = run(fixture.shell(script));
        assert_eq!(inside.stdout, String::from_utf8(outside.stdout).unwrap(), "{script}: {inside:?}");
    }
}

#[test]
fn python_starts_threads_and_programs() {
    let fixture = SandboxFixture::new();
    let program = "
import os, subprocess, tempfile, threading
said = []
threads = [threading.Thread(target=said.append, args=(n,)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
with tempfile.TemporaryDirectory() as d: open(os.path.join(d, 'f'), 'w').write('x')
print(sorted(said), subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout.strip(), len(os.urandom(8)))
";
    let spec = fixture.spec("/usr/bin/python3").args(["-c", program]).sandbox(fixture.sandbox());
    check_spec(spec, "python3", "[0, 1, 2, 3] child 8\n");
}

#[test]
fn a_compiler_builds_and_its_result_runs() {
    let fixture = SandboxFixture::new();
    fs::write(fixture.path("workspace/p.c"), "#include <stdio.h>\nint main(){puts(\"built\");}\n").unwrap();
    check(&fixture, "cc p.c -o p && ./p", "built\n");
}

#[test]
fn a_file_can_be_followed_without_notifications() {
    let fixture = SandboxFixture::new();
    let script = "echo one > log; (sleep 0.3; echo two >> log; sleep 1.5; echo > done) & \
                  timeout 3 tail -f -n +1 log 2> said; cat said >&2; wait";
    let outcome = run(fixture.shell(script));
    assert_eq!(outcome.stdout, "one\ntwo\n", "{outcome:?}");
}

#[test]
fn sockets_between_a_program_and_its_child_work() {
    let fixture = SandboxFixture::new();
    let outcome = run(fixture.attack(&["socketpair".into()]));
    assert_eq!(outcome.exit, ProcessExit::Code(0), "{outcome:?}");
}

#[test]
fn the_sandbox_works_in_every_available_containment() {
    for containment in probe().available().collect::<Vec<Containment>>() {
        let fixture = SandboxFixture::new();
        let script = format!(
            "echo in > file; cat file; cat {} 2>/dev/null || echo closed",
            fixture.secret().display()
        );
        let outcome = wait_for_output(spawn(containment, fixture.shell(&script)));
        let expected = ProgramOutput {
            exit: ProcessExit::Code(0),
            stdout: "in\nclosed\n".into(),
            stderr: String::new(),
        };
        assert_eq!(outcome, expected, "{containment}");
    }
    assert!(Supervisor::new().is_ok());
}
