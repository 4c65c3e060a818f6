//! Programs that the workspace itself builds run in the sandbox, under the judge of executed programs (C16, C17).

use collieclaw_gate::{AutonomyLevel, CommandNetwork, ProjectPrograms};

use crate::test_workspace::{SECRET, TestCallResult, TestWorkspace};

/// A workspace at the level `supervised` in which the programs of the project are allowed.
fn open_workspace(allowed: &str) -> TestWorkspace {
    let mut test_workspace = TestWorkspace::new();
    test_workspace.policy.allowed_commands.extend(allowed.split_whitespace().map(str::to_owned));
    test_workspace.policy.project_programs = ProjectPrograms::Allowed;
    test_workspace
}

fn run(test_workspace: &TestWorkspace, line: &str) -> TestCallResult {
    test_workspace.gateway().shell(line)
}

fn check(test_workspace: &TestWorkspace, line: &str, expected: &str) {
    let outcome = run(test_workspace, line);
    assert_eq!((outcome.status, outcome.output()), ("done", expected), "{line}: {outcome:?}");
}

/// Prints its arguments, then tries to leave the sandbox: reads, writes, connects, and executes `rm`.
const INTRUDER: &str = r#"
#include <stdio.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <sys/wait.h>
int main(int argc, char **argv) {
    char text[64] = {0};
    FILE *secret = fopen("../secret", "r");
    printf("read %d\n", secret && fgets(text, 64, secret) != 0);
    printf("written %d\n", fopen("../new", "w") != 0);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = inet_addr("192.0.2.1")};
    printf("connected %d\n", connect(s, (struct sockaddr *)&to, sizeof to) == 0);
    fflush(stdout);
    if (fork() == 0) execl("/bin/rm", "rm", "victim", (char *)0);
    wait(0);
    printf("over\n");
}
"#;

#[test]
fn a_program_that_was_just_built_runs() {
    let test_workspace = open_workspace("gcc make");
    test_workspace.write(
        "hello.c",
        "#include <stdio.h>\nint main(int c, char **v) { printf(\"hello %s\\n\", c > 1 ? v[1] : \"all\"); }\n",
    );
    check(&test_workspace, "gcc hello.c -o hello && ./hello world", "hello world\n");
    check(&test_workspace, "mkdir -p build && cd build && gcc ../hello.c -o app && ./app", "hello all\n");
    check(&test_workspace, "for n in 1 2; do ./hello $n; done | sort -r", "hello 2\nhello 1\n");
    check(&test_workspace, "timeout 20 ./hello && build/app 'two words'", "hello all\nhello two words\n");
    test_workspace.write("Makefile", "hello2: hello.c\n\tgcc -o $@ $<\n");
    check(&test_workspace, "make -s hello2 && x=$(./hello2 made) && echo \"$x\"", "hello made\n");
}

#[test]
fn scripts_and_virtual_environments_of_the_project_run() {
    let test_workspace = open_workspace("python python3 chmod bash");
    test_workspace.write("run.sh", "#!/bin/sh\necho \"ran $1\"\nuname -s\n");
    test_workspace.write("tool.py", "#!/usr/bin/env python3\nimport sys\nprint(sys.argv[1:])\n");
    check(
        &test_workspace,
        "chmod +x run.sh tool.py && ./run.sh x && ./tool.py a b",
        "ran x\nLinux\n['a', 'b']\n",
    );
    check(
        &test_workspace,
        "python3 -m venv --without-pip .venv && .venv/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'",
        "True\n",
    );
    check(&test_workspace, "source .venv/bin/activate && python -c 'print(1)'", "1\n");
}

#[test]
fn a_program_of_the_project_stays_in_the_sandbox() {
    for autonomy in [AutonomyLevel::Supervised, AutonomyLevel::Full] {
        let mut test_workspace = open_workspace("gcc");
        test_workspace.policy.autonomy = autonomy;
        test_workspace.write("intruder.c", INTRUDER);
        test_workspace.write("victim", "alive\n");
        let outcome = run(&test_workspace, "gcc intruder.c -o intruder && ./intruder");
        let expected = "read 0\nwritten 0\nconnected 0\nover\n";
        assert!(outcome.output().starts_with(expected), "{outcome:?}");
        assert!(outcome.output().contains("refused to run `rm victim`"), "{outcome:?}");
        assert!(test_workspace.path.join("victim").exists() && !test_workspace.home.join("new").exists());
        assert_eq!(std::fs::read_to_string(test_workspace.home.join("secret")).unwrap(), SECRET);
    }
}

#[test]
fn without_the_permission_such_programs_are_refused() {
    let mut test_workspace = open_workspace("gcc bash chmod");
    test_workspace.policy.project_programs = ProjectPrograms::Refused;
    test_workspace.write("hello.c", "int main(void) { return 0; }\n");
    let denied = run(&test_workspace, "gcc hello.c -o hello && ./hello");
    assert_eq!(denied.status, "denied", "{denied:?}");
    assert!(denied.text.contains("collieclaw allow --project-programs"), "{denied:?}");
    // A computed name is refused where it is executed.
    let refused = run(&test_workspace, "gcc hello.c -o hello; p=./hello; $p; echo went-on");
    assert_eq!(refused.status, "failed", "{refused:?}");
    assert!(!refused.output().contains("went-on"), "{refused:?}");
    test_workspace.policy.project_programs = ProjectPrograms::Allowed;
    test_workspace.policy.autonomy = AutonomyLevel::ReadOnly;
    assert_eq!(run(&test_workspace, "./hello").status, "denied");
}

/// `ls` means the system's program, whatever `PATH` says.
#[test]
fn a_program_of_the_project_does_not_take_the_place_of_a_known_one() {
    let test_workspace = open_workspace("gcc");
    test_workspace.write("fake.c", "#include <stdio.h>\nint main(void) { puts(\"fake\"); }\n");
    let refused = run(&test_workspace, "gcc fake.c -o ls; PATH=$PWD:$PATH; ls");
    assert_eq!(refused.status, "failed", "{refused:?}");
    assert!(!refused.output().contains("fake"), "{refused:?}");
    check(&test_workspace, "./ls", "fake\n");
}

#[test]
fn commands_read_files_that_describe_the_system() {
    let test_workspace = open_workspace("");
    for (line, expected) in [
        ("grep -c ^processor /proc/cpuinfo", None),
        ("grep MemTotal /proc/meminfo | wc -l", Some("1\n")),
        ("head -c 16 /dev/urandom | wc -c", Some("16\n")),
        ("head -c 8 < /dev/zero | wc -c", Some("8\n")),
        ("ls -d /usr/include /usr/share/doc", Some("/usr/include\n/usr/share/doc\n")),
        ("cd /usr/share && pwd", Some("/usr/share\n")),
        ("wc -l < /usr/lib/os-release", None),
    ] {
        let outcome = run(&test_workspace, line);
        assert_eq!((outcome.status, outcome.exit_code()), ("done", 0), "{line}: {outcome:?}");
        assert!(expected.is_none_or(|expected| outcome.output() == expected), "{line}: {outcome:?}");
    }
    for line in [
        "cat /etc/os-release",
        "cat /proc/self/environ",
        "f=/proc/1/environ; cat $f",
        "ls /root",
        "x=/usr/x; touch $x",
    ] {
        let outcome = run(&test_workspace, line);
        assert_ne!(outcome.status, "done", "{line}: {outcome:?}");
    }
}

/// A line that starts a server in the background and asks it for a page.
const OWN_SERVER: &str = "python3 -m http.server --bind 127.0.0.1 8000 > /dev/null 2>&1 & \
    curl -s --retry 60 --retry-connrefused --retry-delay 1 localhost:8000/page.txt; kill %1";

#[test]
fn a_line_reaches_its_own_server_and_no_server_of_the_machine() {
    for network in [CommandNetwork::None, CommandNetwork::Listed] {
        let mut test_workspace = open_workspace("python3 curl");
        test_workspace.policy.command_network = network;
        test_workspace.policy.allowed_domains = vec!["example.org".to_owned()];
        test_workspace.write("page.txt", "served inside");
        check(&test_workspace, OWN_SERVER, "served inside");
        let outside = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        outside.set_nonblocking(true).unwrap();
        let port = outside.local_addr().unwrap().port();
        for line in [
            format!("curl -sS -m 10 http://127.0.0.1:{port}/"),
            format!("curl -sS -m 10 localhost:{port}"),
            // Through the proxy, which refuses it.
            format!("no_proxy= NO_PROXY= curl -sS -m 10 -f http://127.0.0.1:{port}/"),
            format!("x={port}; no_proxy=x NO_PROXY=x curl -sS -m 10 -f http://localhost:$x/"),
        ] {
            let outcome = run(&test_workspace, &line);
            assert!(outcome.status != "done" || outcome.exit_code() != 0, "{line}: {outcome:?}");
            assert!(outside.accept().is_err(), "a connection arrived: {line}");
        }
    }
}

/// The names are known only when the line runs, and a shell finds the program in `PATH`.
#[test]
fn a_file_that_the_line_has_downloaded_does_not_run() {
    let test_workspace = open_workspace("python3 curl chmod");
    test_workspace.write("page.sh", "#!/bin/sh\necho ran\n");
    test_workspace.write("bin/own", "#!/bin/sh\necho own\n");
    let line = |last: &str| {
        format!(
            "python3 -m http.server --bind 127.0.0.1 8000 > /dev/null 2>&1 & d=bin; curl -s --retry 60 \
             --retry-connrefused --retry-delay 1 -o $d/tool localhost:8000/page.sh; chmod +x bin/*; \
             PATH=$PWD/bin:$PATH; t=tool; {last}; kill %1"
        )
    };
    for last in ["$t", "$d/$t", "sh $d/$t"] {
        let refused = run(&test_workspace, &line(last));
        assert_eq!(refused.status, "failed", "{last}: {refused:?}");
        assert!(refused.text.contains("downloads"), "{last}: {refused:?}");
        assert!(!refused.output().contains("ran"), "{last}: {refused:?}");
    }
    check(&test_workspace, &line("tail -1 $d/$t; own; ./bin/own"), "echo ran\nown\nown\n");
}

/// A file counts as downloaded if it is the output of `curl`, whatever leads there, also if the server can't be reached.
#[test]
fn a_redirected_download_does_not_run_and_may_be_read() {
    let test_workspace = open_workspace("python3 curl bash make timeout");
    test_workspace.write("app.py", "import sys; print(open(sys.argv[1]).read())\n");
    test_workspace.write("show.py", "#!/usr/bin/env python3\nimport sys\nprint('show', sys.argv[1])\n");
    test_workspace.write("Makefile", "run:\n\t@sh ./x.sh\nread:\n\t@python3 show.py ./x.sh\n");
    let fetch = "curl -s localhost:1/x.sh";
    let echo = "echo 'echo ran' > x.sh";
    for line in [
        format!("timeout 5 {fetch} > x.sh; bash x.sh"),
        format!("f=x.sh; timeout 5 {fetch} > $f; {echo}; bash $f"),
        format!("{{ {fetch}; }} &> x.sh; f=x.sh; {echo}; bash +e $f"),
        format!("exec 3> x.sh; {fetch} >&3; f=./x.sh; {echo}; sh $f"),
        format!("{fetch} -o x.sh; {echo}; make run"),
        format!("f=x.sh; {fetch} > $f; {echo}; make run"),
    ] {
        let refused = run(&test_workspace, &line);
        assert!(refused.text.contains("it runs code that it downloads"), "{line}: {refused:?}");
        assert!(!refused.text.contains("ran\n"), "{line}: {refused:?}");
    }
    for (last, expected) in [
        ("make read", "show ./x.sh\n"),
        ("python3 app.py x.sh", "\n"),
        ("cat x.sh; bash -c 'make -s read'", "show ./x.sh\n"),
    ] {
        check(&test_workspace, &format!("f=x.sh; {fetch} > $f; {last}"), expected);
    }
    check(&test_workspace, &format!("{fetch} > /dev/null; bash /dev/null; x=1; echo on"), "on\n");
}

#[test]
fn the_line_of_a_second_shell_runs_with_its_builtins_and_the_home_of_commands() {
    let mut test_workspace = open_workspace("bash sh env make");
    let cache = test_workspace.home.join(".tool");
    let home = cache.join("home");
    std::fs::create_dir_all(&home).unwrap();
    test_workspace.policy.command_cache = Some(cache.clone());
    test_workspace.toolchain.write = vec![cache];
    test_workspace.toolchain.environment = vec![("HOME".to_owned(), home.clone().into())];
    test_workspace.write("src/a.txt", "a\n");
    test_workspace.write("Makefile", "all:\n\t@echo $$HOME\n");
    std::fs::write(home.join("own.txt"), "own\n").unwrap();
    check(&test_workspace, "bash -c 'cd src && ls'", "a.txt\n");
    check(&test_workspace, "sh -c 'export A=1; set -e; ls src'", "a.txt\n");
    for line in ["ls ~", "cd ~ && ls", "bash -c 'cd ~; ls'", "x='ls ~'; sh -c \"$x\""] {
        check(&test_workspace, line, "own.txt\n");
    }
    check(&test_workspace, "cp ~/own.txt ~/copy; cat < ~/copy", "own\n");
    let home = format!("{}\n", home.display());
    check(&test_workspace, "env -i HOME=\"$HOME\" PATH=\"$PATH\" make", &home);
    for line in
        ["ls ~/../../other", "bash -c 'cat ~/../../secret'", "HOME=/etc; cat ~/passwd", "HOME=$PWD make"]
    {
        let refused = run(&test_workspace, line);
        assert_eq!(refused.status, "failed", "{line}: {refused:?}");
        assert!(refused.text.contains("refused to run"), "{line}: {refused:?}");
    }
    assert_eq!(run(&test_workspace, "cat ~/.ssh/id").status, "denied");
}

#[test]
fn a_script_gets_the_libraries_of_the_project() {
    let test_workspace = open_workspace("python3 chmod");
    test_workspace.write("run.sh", "#!/bin/sh -e\necho \"$LD_LIBRARY_PATH\"\n");
    test_workspace
        .write("run.py", "#!/usr/bin/env python3\nimport os\nprint(os.environ['LD_LIBRARY_PATH'])\n");
    check(&test_workspace, "chmod +x run.sh run.py; LD_LIBRARY_PATH=lib ./run.sh", "lib\n");
    check(
        &test_workspace,
        "env LD_LIBRARY_PATH=lib ./run.sh && LD_LIBRARY_PATH=$PWD/lib:lib2 ./run.sh | wc -l",
        "lib\n1\n",
    );
    check(&test_workspace, "LD_LIBRARY_PATH=lib ./run.py; env LD_LIBRARY_PATH=lib ./run.py", "lib\nlib\n");
    for line in [
        "export LD_LIBRARY_PATH=lib; ls",
        "export LD_LIBRARY_PATH=lib; sh -c ls",
        "export LD_LIBRARY_PATH=/; ./run.sh",
    ] {
        let refused = run(&test_workspace, line);
        assert_eq!(refused.status, "failed", "{line}: {refused:?}");
        assert!(refused.text.contains("LD_LIBRARY_PATH"), "{line}: {refused:?}");
    }
}

/// Only a shell that looks for the name can mistake the script for the program of the system.
#[test]
fn a_script_with_a_known_name_may_be_named_by_its_path() {
    let test_workspace = open_workspace("chmod");
    for name in ["ls", "cat"] {
        test_workspace.write(&format!("bin/{name}"), "#!/bin/sh\necho project\n");
    }
    let path = "chmod +x bin/*; export PATH=\"$PWD/bin:$PATH\"";
    check(
        &test_workspace,
        &format!("{path}; bin/ls; sh bin/cat; head -1 bin/ls"),
        "project\nproject\n#!/bin/sh\n",
    );
    for name in ["ls", "env ls", "echo x | cat", "command ls", "find bin -name ls -exec cat {} \\;"] {
        let refused = run(&test_workspace, &format!("{path}; {name}"));
        assert_eq!(refused.status, "failed", "{name}: {refused:?}");
        assert!(!refused.output().contains("project"), "{name}: {refused:?}");
    }
}

#[test]
fn the_values_of_a_shells_flags_are_no_scripts() {
    let test_workspace = open_workspace("bash");
    for shell in ["bash -o errexit", "bash -oe pipefail", "bash +e", "bash -o pipefail -es", "sh -o errexit"]
    {
        let refused = run(&test_workspace, &format!("printf 'gcc -v\\n' | {shell}"));
        assert_eq!(refused.status, "failed", "{shell}: {refused:?}");
        assert!(refused.text.contains("on the list"), "{shell}: {refused:?}");
    }
    test_workspace.write("own.sh", "uname -s; echo $1\n");
    check(&test_workspace, "bash -o errexit own.sh -s; bash -oe pipefail own.sh", "Linux\n-s\nLinux\n\n");
}

/// Without its variable, `git` would obey settings that the line has written into the home of commands.
#[test]
fn git_obeys_no_settings_of_the_commands_home() {
    let mut test_workspace = open_workspace("git chmod");
    let home = test_workspace.home.join(".tool/home");
    let settings = test_workspace.home.join(".tool/settings");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(&settings, "").unwrap();
    test_workspace.toolchain.read = vec![settings.clone()];
    test_workspace.toolchain.write = vec![home.clone()];
    test_workspace.toolchain.environment =
        vec![("HOME".to_owned(), home.clone().into()), ("GIT_CONFIG_GLOBAL".to_owned(), settings.into())];
    let init =
        std::process::Command::new("git").args(["init", "-q"]).current_dir(&test_workspace.path).status();
    assert!(init.unwrap().success());
    check(&test_workspace, "printf '[core]\\n\\tfsmonitor = ./x\\n' > \"$HOME/.gitconfig\"", "");
    test_workspace.write("x", "#!/bin/sh\ntouch obeyed\n");
    check(&test_workspace, "chmod +x x", "");
    let obeyed = test_workspace.path.join("obeyed");
    for line in [
        "unset GIT_CONFIG_GLOBAL; git status",
        "v=GIT_CONFIG_GLOBAL; env -u $v git status",
        "env -i HOME=\"$HOME\" git status",
        "env -u GIT_CONFIG_GLOBAL git status",
    ] {
        let refused = run(&test_workspace, line);
        assert_ne!(refused.status, "done", "{line}: {refused:?}");
        assert!(refused.text.contains("the variable `"), "{line}: {refused:?}");
        assert!(!obeyed.exists(), "{line}");
    }
    check(&test_workspace, "unset FOO GIT_CONFIG_GLOBAL; ls; echo on", "x\non\n");
    check(&test_workspace, "unset HOME GIT_CONFIG_GLOBAL; git status --short -uno; echo on", "on\n");
    check(&test_workspace, "git status --short -uno; echo on", "on\n");
    assert!(!obeyed.exists());
    // Outside of CollieClaw, `git` obeys the settings.
    let mut git = std::process::Command::new("git");
    git.args(["status", "-uno"]).current_dir(&test_workspace.path);
    let status =
        git.env("HOME", &home).env_remove("GIT_CONFIG_GLOBAL").env_remove("XDG_CONFIG_HOME").output();
    assert!(status.unwrap().status.success());
    assert!(obeyed.exists());
}

#[test]
fn lines_use_the_description_of_the_system_and_any_index() {
    let test_workspace = open_workspace("");
    check(&test_workspace, ". /etc/os-release && echo \"$ID\" | wc -l", "1\n");
    let line = "n=3; i=1; arr[(i+1)%n]=x; line='a|b'; declare -A m; m[${line%%|*}]=y; hist[16>>4]+=1; \
                bits[i&3]=z; echo \"${arr[2]} ${m[a]} ${hist[1]} ${bits[1]}\"";
    check(&test_workspace, line, "x y 1 z\n");
}
