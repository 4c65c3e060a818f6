//! Every program of a line is judged before its first instruction, however it is called (C17).
//!
//! The lines run for real. In each workspace there is a file `victim`; `rm` is forbidden, so `victim` must survive.

use std::path::Path;
use std::time::Duration;

use collieclaw_gate::{AutonomyLevel, ProjectPrograms};
use serde_json::json;

use crate::support::{count_sleeps, unique_sleep_seconds, wait_until};
use crate::test_workspace::{TestCallResult, TestWorkspace};

fn open_workspace(allowed: &str) -> TestWorkspace {
    let mut test_workspace = TestWorkspace::new();
    test_workspace.policy.allowed_commands.extend(allowed.split_whitespace().map(str::to_owned));
    test_workspace.write("victim", "alive\n");
    test_workspace
}

/// Runs a line and returns its result. `rm` must not have run.
fn run(test_workspace: &TestWorkspace, line: &str) -> TestCallResult {
    let outcome = test_workspace.gateway().shell(line);
    assert!(test_workspace.path.join("victim").exists(), "`{line}` has removed the file: {outcome:?}");
    outcome
}

/// Lines whose refused program belongs to the line itself: the line ends there.
const REFUSED_COMMANDS: &[(&str, &str)] = &[
    // Computed names.
    ("a=rm; $a -f victim", "forbidden"),
    ("a=r; b=m; $a$b victim", "forbidden"),
    ("$(echo rm) victim", "forbidden"),
    ("`printf 'r%s' m` victim", "forbidden"),
    ("x=(rm victim); \"${x[@]}\"", "forbidden"),
    ("r$'\\x6d' victim", "forbidden"),
    ("{r,}m victim", "forbidden"),
    ("eval \"$(printf 'r%s victim' m)\"", "forbidden"),
    ("p=/usr/bin/r; ${p}m victim", "forbidden"),
    ("f() { \"$@\"; }; f r\"m\" victim; f \"r${x}m\" victim", "forbidden"),
    ("IFS=:; c=rm:victim; $c", "forbidden"),
    ("set -- rm victim; \"$@\"", "forbidden"),
    ("read -r c <<< 'rm victim'; $c", "forbidden"),
    ("c=mr; $(echo $c | rev) victim", "forbidden"),
    ("for c in ls rm; do $c victim; done", "forbidden"),
    ("trap '$a victim' EXIT; a=rm", "forbidden"),
    ("a=rm; (\"$a\" victim)", "forbidden"),
    ("a=rm; \"$a\" victim | cat", "forbidden"),
    ("a=rm; exec $a victim", "forbidden"),
    ("a=rm; command $a victim; wait", "forbidden"),
    ("a=rm; exec -a ls $a victim", "forbidden"),
    ("a=rm; cat <($a victim)", "forbidden"),
    ("a=rm; while true; do $a victim; done", "forbidden"),
    ("PS4='$(${a}m victim)'; a=r; set -x; ls", "forbidden"),
    ("c='-f victim'; a=rm; if true; then $a $c; fi", "forbidden"),
    // Shells below the shell.
    ("printf 'r%s victim\\n' m | sh", "forbidden"),
    ("printf 'r%s victim\\n' m | bash", "forbidden"),
    ("a=rm; bash -c \"$a victim\"", "forbidden"),
    ("a=rm; bash -c '$0 victim' $a", "forbidden"),
    ("bash <<< \"r${x}m victim\"", "forbidden"),
    ("printf 'r%s victim\\n' m > s.sh; bash s.sh", "forbidden"),
    ("printf 'r%s victim\\n' m > s.sh; . ./s.sh", "forbidden"),
    ("printf 'r%s victim\\n' m > s.sh; source s.sh", "forbidden"),
    ("a=rm; sh -c \"sh -c 'sh -c \\\"$a victim\\\"'\"", "forbidden"),
    // Commands that run commands.
    ("a=rm; echo victim | xargs $a", "forbidden"),
    ("a=rm; env $a victim", "forbidden"),
    ("a=rm; env -i $a victim", "forbidden"),
    ("a=rm; timeout 5 $a victim", "forbidden"),
    ("a=rm; nice $a victim", "forbidden"),
    ("a=rm; nohup $a victim", "forbidden"),
    ("a=rm; find victim -exec $a {} \\;", "forbidden"),
    ("a=rm; find victim -exec env $a {} +", "forbidden"),
    ("a=rm; env env env nice $a victim", "forbidden"),
    // Programs that are not listed, or not the system's.
    ("a=gcc; $a --version", "on the list"),
    ("a=perl; $a -e 1", "on the list"),
    ("cp /usr/bin/true ./ls; a=./ls; $a", "is a path"),
    ("ln -s /usr/bin/env x; a=./x; $a", "on the list"),
    ("PATH=$PWD:$PATH; printf '#!/usr/bin/perl\\n' > t; chmod +x t; t", "on the list"),
    // Arguments that are known only when the command runs.
    ("f=/etc/passwd; cat $f", "forbidden path"),
    ("f=../secret; cat $f", "outside of the workspace"),
    ("cd /; f=etc/passwd; cat $f", "forbidden path"),
    ("s='1e id'; sed \"$s\" victim", "makes `sed`"),
    ("echo /etc/passwd | xargs cat", "forbidden path"),
    ("s='BEGIN { system(\"id\") }'; awk \"$s\"", "makes `awk`"),
    ("h=.git/hooks/x; cp victim $h", "can make `git`"),
    // Variables.
    ("export LD_PRELOAD=./x.so; ls", "LD_PRELOAD"),
    ("declare -x LD_LIBRARY_PATH=.; ls", "LD_LIBRARY_PATH"),
    ("n=LD_PRELOAD; export $n=./x.so; ls", "LD_PRELOAD"),
    ("export BASH_ENV=./x; bash -c ls", "BASH_ENV"),
    ("v=GIT_EXTERNAL_DIFF=./x; env $v ls", "GIT_EXTERNAL_DIFF"),
];

#[test]
fn a_refused_command_ends_its_line() {
    let test_workspace = open_workspace("chmod ln");
    for (line, reason) in REFUSED_COMMANDS {
        let outcome = run(&test_workspace, &format!("{line}; echo went-on"));
        // Some lines are recognised before they start, which is as good.
        if outcome.status == "denied" {
            assert!(outcome.result.is_none(), "{line}");
            continue;
        }
        assert_eq!(outcome.status, "failed", "{line}: {outcome:?}");
        assert!(outcome.text.contains(reason), "{line}: {outcome:?}");
        // The trap runs when the line has ended anyway.
        assert!(line.contains("EXIT") || !outcome.output().contains("went-on"), "{line}: {outcome:?}");
    }
}

/// Programs of a listed interpreter that call `rm`.
const CALLED_BY_PROGRAMS: &[(&str, &str)] = &[
    ("perl", "perl -e 'exec \"rm\", \"victim\"'"),
    ("perl", "perl -e 'system \"rm victim\"'"),
    ("perl", "perl -e 'system {\"/bin/rm\"} \"ls\", \"victim\"'"),
    ("perl", "perl -e 'fork || exec \"rm\", \"victim\"; wait'"),
    ("perl", "perl -e 'if (!fork) { if (!fork) { exec \"rm\", \"victim\" } exit } wait; sleep 1'"),
    ("perl", "perl -MPOSIX -e 'POSIX::setsid(); exec \"rm\", \"victim\"'"),
    ("perl", "perl -e 'print `rm victim`'"),
    ("perl", "perl -e '%ENV = (); exec \"/bin/rm\", \"victim\"'"),
    ("perl", "perl -e '$SIG{$_} = \"IGNORE\" for keys %SIG; exec \"rm\", \"victim\"'"),
    ("perl", "perl -e 'link \"/bin/rm\", \"hard\"; exec \"./hard\", \"victim\" or die'"),
    ("perl", "perl -e 'symlink \"/bin/rm\", \"soft\"; exec \"./soft\", \"victim\"'"),
    (
        "perl",
        "perl -e 'use File::Copy; copy \"/bin/rm\", \"other\"; chmod 0755, \"other\"; exec \"./other\", \"victim\"'",
    ),
    (
        "perl",
        "perl -e 'open F, \">\", \"chain\"; print F \"#!/bin/rm\\n\"; close F; chmod 0755, \"chain\"; exec \"./chain\", \"victim\"'",
    ),
    (
        "perl",
        "perl -e 'open F, \">\", \"deep\"; print F \"#!/usr/bin/env rm\\n\"; close F; chmod 0755, \"deep\"; exec \"./deep\", \"victim\"'",
    ),
    ("perl", "perl -e 'exec glob(\"/lib64/ld-linux*\"), \"/bin/rm\", \"victim\"'"),
    ("perl", "perl -e 'symlink \"/bin/rm\", \"l\"; exec glob(\"/lib64/ld-linux*\"), \"./l\", \"victim\"'"),
    ("perl", "perl -e 'exec glob(\"/lib64/ld-linux*\"), \"--argv0\", \"ls\", \"/bin/rm\", \"victim\"'"),
    (
        "perl",
        "perl -e 'exec glob(\"/lib64/ld-linux*\"), \"/bin/rm\", \"-f\", \"--\", \"victim\", \"--list\"'",
    ),
    (
        "perl",
        "perl -MFile::Copy=cp -e 'cp(glob(\"/lib64/ld-linux*\"), \"other\"); exec \"./other\", \"/bin/rm\", \"victim\"'",
    ),
    (
        "perl",
        "perl -e 'open F, \"<\", \"/bin/rm\"; $^F = 99; exec \"/proc/self/fd/\" . fileno(F), \"victim\" or die'",
    ),
    ("perl", "perl -e 'kill \"STOP\", fork || exec \"rm\", \"victim\"; sleep 1'"),
    (
        "perl",
        "perl -e '$p = fork || do { sleep 1; exec \"rm\", \"victim\" }; kill \"STOP\", $p; kill \"CONT\", $p; waitpid $p, 0'",
    ),
    // `clone` with `CLONE_UNTRACED`, by its number on x86-64.
    (
        "perl",
        "perl -e '$p = syscall 56, 0x800011, 0, 0, 0, 0; exec \"rm\", \"victim\" if $p == 0; exit $p < 0'",
    ),
    ("make", "printf 'all:\\n\\trm victim\\n' > Makefile && make"),
    ("make", "printf 'all:\\n\\t@sh -c \"r\"\"m victim\"\\n' > Makefile; make"),
    ("git", "git -c alias.x='!rm victim' x"),
    ("awk", "awk 'BEGIN { c = \"rm victim\"; system(c) }'"),
    ("python3", "python3 -c 'import subprocess; subprocess.run([\"rm\", \"victim\"])'"),
    ("python3", "python3 -c 'import os; os.posix_spawn(\"/bin/rm\", [\"ls\", \"victim\"], {})'"),
    ("python3", "python3 -c 'import os; os.execv(\"/bin/rm\", [\"\", \"victim\"])'"),
    (
        "python3",
        "python3 -c 'import threading, os; t = threading.Thread(target=lambda: os.execv(\"/bin/rm\", [\"x\", \"victim\"])); t.start(); t.join()'",
    ),
    (
        "python3",
        "python3 -c 'import os; f = os.open(\"/bin/rm\", os.O_RDONLY); os.execve(f, [\"x\", \"victim\"], {})'",
    ),
    (
        "python3",
        "python3 -c 'import os; f = os.memfd_create(\"x\"); os.write(f, open(\"/bin/rm\", \"rb\").read()); os.execve(f, [\"x\", \"victim\"], {})'",
    ),
    // The dynamic loader ignores a variable without `=`, so it runs the program instead of listing its libraries.
    (
        "python3",
        "python3 -c 'import ctypes, glob; t = ctypes.c_char_p; ctypes.CDLL(None).execve(glob.glob(b\"/lib64/ld-linux*\")[0], \
         (t * 4)(b\"x\", b\"/bin/rm\", b\"victim\", None), (t * 2)(b\"LD_TRACE_LOADED_OBJECTS\", None))'",
    ),
    ("busybox", "perl -e 'exec glob(\"/lib64/ld-linux*\"), \"/bin/busybox\", \"rm\", \"victim\"'"),
    ("busybox", "cp /bin/busybox ./other; ./other rm victim"),
    ("perl", "cp /bin/rm ./other; ./other victim"),
    ("perl", "cp /lib64/ld-linux-x86-64.so.2 ./other; ./other /bin/rm victim"),
    // A name of the dynamic loader, with an argument that looks like the program to load.
    ("perl", "cp /bin/rm ./ld-linux.so; ./ld-linux.so /usr/bin/ls victim"),
    ("perl", "cp /bin/rm ./ld-linux.so; LD_TRACE_LOADED_OBJECTS=1 ./ld-linux.so victim"),
    ("perl", "ln -s /bin/rm ./soft; ./soft victim"),
    ("perl", "printf '#!/bin/rm\\n' > chain; chmod +x chain; ./chain victim"),
    ("perl", "printf '#!/bin/sh\\nrm victim\\n' > chain; chmod +x chain; ./chain"),
    ("busybox", "busybox rm victim"),
    ("busybox", "busybox sh -c 'busybox rm victim'"),
    ("bash", "printf 'r%s victim\\n' m > s.sh; bash s.sh"),
];

#[test]
fn forbidden_commands_never_run_however_they_are_called() {
    for autonomy in [AutonomyLevel::Supervised, AutonomyLevel::Full] {
        let mut test_workspace = open_workspace("perl make python3 git busybox bash chmod ln");
        test_workspace.policy.autonomy = autonomy;
        // Programs of the workspace run, too, so that nothing but the ban is in the way.
        test_workspace.policy.project_programs = ProjectPrograms::Allowed;
        for (program, line) in CALLED_BY_PROGRAMS {
            let is_installed = |folder: &str| Path::new(folder).join(program).exists();
            assert!(
                ["/usr/bin", "/bin"].into_iter().any(is_installed),
                "{program} is missing: cargo xtask setup"
            );
            let outcome = run(&test_workspace, line);
            for made in ["hard", "soft", "other", "chain", "deep", "l", "s.sh", "Makefile", "ld-linux.so"] {
                let _ = std::fs::remove_file(test_workspace.path.join(made));
            }
            // A process that is stopped before it executes anything has nothing to tell.
            let told =
                outcome.text.contains("refused to run") || outcome.status != "done" || line.contains("STOP");
            // A call may also fail because the sandbox doesn't allow the trick at all.
            let failed = outcome
                .result
                .as_ref()
                .is_some_and(|result| result.metadata.get("exit_code") != Some(&json!(0)));
            assert!(told || failed, "{program}, {line}: {outcome:?}");
        }
    }
}

#[test]
fn programs_of_listed_programs_run_otherwise() {
    let test_workspace = open_workspace("make perl");
    test_workspace
        .write("Makefile", "all:\n\t@cp /usr/bin/true ./tool\n\t@./tool && uname -s && expr 1 + 1\n");
    let outcome = run(&test_workspace, "make");
    assert_eq!((outcome.output(), outcome.exit_code()), ("Linux\n2\n", 0), "{outcome:?}");
    let outcome = run(&test_workspace, "perl -e 'system \"rm\", \"victim\"; print $? & 127, \"\\n\"'");
    assert!(outcome.output().starts_with("9\n"), "{outcome:?}");
    assert!(outcome.output().contains("refused to run `rm victim`"), "{outcome:?}");
}

#[test]
fn many_processes_at_once_are_all_judged() {
    let test_workspace = open_workspace("perl");
    let line = "for i in $(seq 120); do (ls victim; : $(pwd)) & done | sort | uniq -c; wait";
    let outcome = run(&test_workspace, line);
    assert_eq!(outcome.output().trim(), "120 victim", "{outcome:?}");
    let line = "perl -e 'for (1..200) { fork || do { exec \"rm\", \"victim\"; } } 1 while wait > 0; print \"over\\n\"'";
    let outcome = run(&test_workspace, line);
    assert!(outcome.output().starts_with("over\n"), "{outcome:?}");
}

#[test]
fn signals_and_stops_work_as_without_a_judge() {
    let test_workspace = open_workspace("");
    for (line, output) in [
        ("trap 'echo caught' USR1; kill -USR1 $$; echo after", "caught\nafter\n"),
        (
            "(kill -STOP $BASHPID; echo woken) & p=$!; while kill -CONT $p 2> /dev/null; do :; done; wait; echo end",
            "woken\nend\n",
        ),
        ("(exit 3); echo $?; (kill -TERM $BASHPID); echo $?", "3\n143\n"),
        ("set -m; sort -R /dev/null & wait $!; echo $?", "0\n"),
        (
            "coproc cat; echo hi >&${COPROC[1]}; read -r x <&${COPROC[0]}; echo got $x; kill $COPROC_PID",
            "got hi\n",
        ),
        ("seq 100000 | head -1; echo ${PIPESTATUS[0]}", "1\n141\n"),
        ("echo $(trap 'echo bye' EXIT; exit 2)", "bye\n"),
    ] {
        let outcome = run(&test_workspace, line);
        assert!(outcome.output().starts_with(output), "{line}: {outcome:?}");
    }
}

#[test]
fn a_judged_line_obeys_its_time_limit_and_the_stop() {
    let mut test_workspace = open_workspace("");
    test_workspace.policy.allowed_commands.insert("sleep".to_owned());
    let gateway = test_workspace.gateway_with_shell_limits(Duration::from_millis(700), 1 << 20);
    for line in
        ["x=1; while :; do ls > /dev/null; done", "x=1; while :; do :; done", "x=9; (sleep 600 &); sleep 600"]
    {
        let outcome = gateway.shell(line);
        assert_eq!(outcome.metadata("timed_out"), json!(true), "{line}: {outcome:?}");
    }
    let gateway = test_workspace.gateway();
    let (cancel, seconds) = (gateway.cancel.clone(), unique_sleep_seconds());
    let line = format!("n={seconds}; (sleep $n &); sleep $n; echo never");
    let stop = std::thread::spawn(move || {
        wait_until("both sleeps run", || count_sleeps(&seconds) == 2);
        cancel.raise(collieclaw_providers::cancel::CancelReason::Operator);
        seconds
    });
    let outcome = gateway.shell(&line);
    assert_eq!(outcome.status, "cancelled", "{outcome:?}");
    assert_eq!(count_sleeps(&stop.join().unwrap()), 0);
}

#[test]
fn a_shell_can_not_change_what_steers_git() {
    let test_workspace = open_workspace("");
    test_workspace.write(".git/config", "[core]\n");
    test_workspace.write(".git/hooks/kept", "kept\n");
    for line in [
        "f=.git/config; echo x >> $f",
        "f=.git/config; echo x > $f",
        "f=.git/hooks/pre-commit; echo x > $f",
        "cd .git; f=config; echo x >> $f",
        "d=.git; mv $d gone; mkdir -p $d; echo x > $d/config",
    ] {
        run(&test_workspace, line);
        assert_eq!(test_workspace.text(".git/config"), "[core]\n", "{line}");
        assert!(!test_workspace.path.join(".git/hooks/pre-commit").exists(), "{line}");
    }
    let fresh = open_workspace("");
    std::fs::create_dir(fresh.path.join(".git")).unwrap();
    let outcome = run(&fresh, "d=.git; mkdir $d/hooks; echo x > $d/hooks/pre-commit; echo x > $d/config");
    assert!(
        !fresh.path.join(".git/hooks").exists() && !fresh.path.join(".git/config").exists(),
        "{outcome:?}"
    );
}

#[test]
fn settings_of_any_repository_that_run_commands_are_moved_aside() {
    let test_workspace = open_workspace("");
    test_workspace.write(".git/HEAD", "ref: refs/heads/main\n");
    test_workspace.write(".git/config", "[core]\n");
    test_workspace.write(".git/modules/sub/HEAD", "ref: refs/heads/main\n");
    test_workspace.write(".git/modules/sub/config", "[core]\n\tbare = false\n");
    for path in ["n/.git/kept", "b/.git/hooks/kept", "c/.git/kept", "g/.git/kept"] {
        test_workspace.write(path, "kept\n");
    }
    let head = "echo 'ref: refs/heads/x' > $d/HEAD";
    let config = "printf '[core]\\nfsmonitor = ./x\\n' >> $d/config";
    for (line, harmful) in [
        (format!("d=n/.git; {head}; {config}"), "n/.git/config"),
        // A folder that looks like a repository is one for `git`.
        (format!("d=.; mkdir objects refs; {head}; {config}"), "config"),
        (format!("d=.git/modules/sub; {config}"), ".git/modules/sub/config"),
        (format!("d=b/.git; {head}; echo x > $d/hooks/pre-commit"), "b/.git/hooks/pre-commit"),
        (format!("d=c/.git; {head}; echo ../../e > $d/commondir"), "c/.git/commondir"),
        // The settings come first, and the folder becomes a repository later.
        (format!("d=e; mkdir -p $d; {config}"), "none"),
        (format!("d=e; {head}"), "e/config"),
        ("d=f; mkdir $d; echo 'gitdir: ../../elsewhere' > $d/.git".to_owned(), "f/.git"),
    ] {
        let outcome = run(&test_workspace, &line);
        assert_eq!(outcome.status, "done", "{line}: {outcome:?}");
        assert!(!test_workspace.path.join(harmful).exists(), "{line}: {outcome:?}");
    }
    let plain = "d=g/.git; echo x > $d/HEAD; printf '[core]\\n\\tbare = false\\n' > $d/config; \
                 mkdir h; f=h/.git; echo 'gitdir: ../g/.git' > $f";
    let outcome = run(&test_workspace, plain);
    assert!(test_workspace.path.join("g/.git/config").exists(), "{outcome:?}");
    assert!(test_workspace.path.join("h/.git").exists(), "{outcome:?}");
}

#[test]
fn a_file_that_names_the_repository_can_not_be_changed() {
    let test_workspace = open_workspace("");
    test_workspace.write(".git", "gitdir: ../elsewhere\n");
    for line in ["f=.git; echo 'gitdir: e' > $f", "f=.git; mv $f gone; mkdir $f"] {
        let outcome = run(&test_workspace, line);
        assert_eq!(test_workspace.text(".git"), "gitdir: ../elsewhere\n", "{line}: {outcome:?}");
    }
}

#[test]
fn an_allowed_script_runs_with_the_accepted_content_only() {
    let mut test_workspace = open_workspace("");
    let text = "#!/bin/sh\nuname -s\n";
    let script = write_script(&test_workspace, text);
    assert_eq!(run(&test_workspace, "./run.sh").status, "denied");
    let hash = collieclaw_agent::receipts::hash_text(text);
    test_workspace.policy.allowed_scripts.insert(script, hash);
    let outcome = run(&test_workspace, "./run.sh");
    assert_eq!((outcome.output(), outcome.exit_code()), ("Linux\n", 0), "{outcome:?}");
    for line in ["x=1; echo 'expr 1' >> run.sh; ./run.sh", "s=./run.sh; echo 'uname' > $s; $s"] {
        let outcome = run(&test_workspace, line);
        assert_ne!(outcome.status, "done", "{line}: {outcome:?}");
        test_workspace.write("run.sh", text);
    }
}

/// The shell that forks the script needs a moment until it waits, and the judge has to let it get there.
#[test]
fn an_allowed_script_runs_every_time() {
    let mut test_workspace = open_workspace("");
    let text = "#!/bin/sh\nuname -s\n";
    let script = write_script(&test_workspace, text);
    test_workspace.policy.allowed_scripts.insert(script, collieclaw_agent::receipts::hash_text(text));
    let outcome = run(&test_workspace, "for i in $(seq 100); do ./run.sh; done");
    assert_eq!(outcome.output(), "Linux\n".repeat(100), "{outcome:?}");
}

/// Commands of a pipeline run at the same time, so one of them could swap the script after it was checked. Then the
/// commands in the script count as commands of the line, and `uname` is not listed.
#[test]
fn an_allowed_script_beside_a_command_that_could_swap_it_is_judged_command_by_command() {
    let mut test_workspace = open_workspace("tee");
    let text = "#!/bin/sh\nuname -s\n";
    let script = write_script(&test_workspace, text);
    test_workspace.policy.allowed_scripts.insert(script, collieclaw_agent::receipts::hash_text(text));
    for line in
        ["cat victim | ./run.sh", "./run.sh | tail -n 1", "./run.sh | tee out", "./run.sh | cat > out"]
    {
        let outcome = run(&test_workspace, line);
        assert_eq!(outcome.exit_code(), 0, "{line}: {outcome:?}");
    }
    for line in ["cp victim copy | ./run.sh", "./run.sh | tee run.sh", "cat victim >> run.sh | ./run.sh"] {
        let outcome = run(&test_workspace, line);
        // If `tee` empties the script before its shell reads it, no command of the script is there to be refused.
        let is_emptied = line.contains("tee") && outcome.output().is_empty();
        assert!(outcome.status == "failed" || is_emptied, "{line}: {outcome:?}");
        assert!(!outcome.output().contains("Linux"), "{line}: {outcome:?}");
        test_workspace.write("run.sh", text);
    }
}

/// Writes the script `run.sh`, which can be executed.
fn write_script(test_workspace: &TestWorkspace, text: &str) -> std::path::PathBuf {
    let script = test_workspace.write("run.sh", text);
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    script
}
