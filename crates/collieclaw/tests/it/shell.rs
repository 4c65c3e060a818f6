//! C7.3b: the planned command line is the one that runs, and it runs as in a shell.

use std::time::{Duration, Instant};

use collieclaw_gate::AutonomyLevel;
use collieclaw_providers::cancel::CancelReason;
use serde_json::{Value, json};

use crate::test_workspace::TestWorkspace;

#[test]
fn lists_pipelines_and_redirections_do_what_they_say() {
    let workshop = TestWorkspace::new();
    workshop.write("a.txt", "one\ntwo\nthree\n");
    workshop.write("src/b.txt", "b\n");
    let desk = workshop.gateway();
    for (line, output, code) in [
        ("echo hello", "hello\n", 0),
        ("pwd", &format!("{}\n", workshop.path.display()), 0),
        ("cat a.txt | grep t | wc -l", "2\n", 0),
        ("true && echo yes || echo no", "yes\n", 0),
        ("false && echo yes || echo no", "no\n", 0),
        ("false", "", 1),
        ("! false", "", 0),
        ("false | true", "", 0),
        ("true | false", "", 1),
        ("! true | false; echo after", "after\n", 0),
        ("cd src && cat b.txt && pwd", &format!("b\n{}/src\n", workshop.path.display()), 0),
        ("cd src | pwd", &format!("{}\n", workshop.path.display()), 0),
        ("echo one > new.txt; echo two >> new.txt; cat < new.txt", "one\ntwo\n", 0),
        ("cat nowhere 2> errors.txt; wc -l < errors.txt", "1\n", 0),
        ("cat nowhere > both.txt 2>&1; wc -l < both.txt", "1\n", 0),
        ("cat nowhere 2>&1 > file.txt", "cat: nowhere: No such file or directory\n", 1),
        ("echo gone > /dev/null", "", 0),
        ("cat <<'END'\n$HOME `x`\nEND\n", "$HOME `x`\n", 0),
        ("cat <<A; cat <<B\nfirst\nA\nsecond\nB\n", "first\nsecond\n", 0),
        ("printf '%s\\n' *.txt | head -2", "a.txt\nboth.txt\n", 0),
        ("TZ=UTC date -d @0 +%H", "00\n", 0),
        (": > empty.txt; stat -c %s empty.txt", "0\n", 0),
        ("seq 100000 | head -1", "1\n", 0),
    ] {
        let came = desk.shell(line);
        assert_eq!((came.output(), came.exit_code()), (output, code), "{line}: {came:?}");
    }
}

#[test]
fn the_two_streams_are_told_apart() {
    let workshop = TestWorkspace::new();
    let came = workshop.gateway().shell("echo out; cat nowhere; echo more");
    assert_eq!(came.output(), "out\nmore\n[stderr]\ncat: nowhere: No such file or directory\n");
    assert_eq!((came.metadata("stdout_bytes"), came.metadata("stderr_bytes")), (json!(9), json!(40)));
}

#[test]
fn what_can_not_be_opened_fails_its_command_and_no_other() {
    let workshop = TestWorkspace::new();
    let came = workshop.gateway().shell("cat < missing; echo next; echo x > no/file || echo failed");
    assert_eq!(came.exit_code(), 0);
    let (stdout, stderr) = came.output().split_once("[stderr]\n").unwrap();
    assert_eq!(stdout, "next\nfailed\n");
    assert_eq!(stderr, "collieclaw: `missing` does not exist\ncollieclaw: `no/file` does not exist\n");
}

#[test]
fn the_environment_holds_nothing_of_ours() {
    let mut workshop = TestWorkspace::new();
    workshop.policy.autonomy = AutonomyLevel::Full;
    let came = workshop.gateway().shell("env");
    let mut names: Vec<_> = came.output().lines().filter_map(|line| line.split_once('=')).collect();
    names.sort_unstable();
    let only: Vec<_> = names.iter().map(|(name, _)| *name).filter(|name| *name != "TZ").collect();
    let told = [
        "GIT_CONFIG_NOSYSTEM",
        "HOME",
        "LANG",
        "LC_ALL",
        "PATH",
        "PWD",
        "TEMP",
        "TERM",
        "TMP",
        "TMPDIR",
        "WARD_TREE",
    ];
    assert_eq!(only, told);
    assert!(!came.output().contains(workshop.home.join(".ssh").to_str().unwrap()));
}

#[test]
fn a_line_beyond_the_plan_is_run_by_a_real_shell_in_full_only() {
    let mut workshop = TestWorkspace::new();
    let line = "for i in 1 2 3; do echo \"n$i\"; done; x=$(echo sub); echo $x";
    assert_eq!(workshop.gateway().shell(line).status, "denied");
    workshop.policy.autonomy = AutonomyLevel::Full;
    let came = workshop.gateway().shell(line);
    assert_eq!((came.output(), came.exit_code()), ("n1\nn2\nn3\nsub\n", 0), "{came:?}");
}

#[test]
fn the_time_is_for_the_whole_line_and_what_was_printed_before_is_told() {
    let mut workshop = TestWorkspace::new();
    workshop.policy.autonomy = AutonomyLevel::Full;
    let started = Instant::now();
    let desk = workshop.gateway_with_shell_limits(Duration::from_millis(700), 1 << 20);
    let came = desk.shell("echo begun; sleep 0.3; sleep 0.3; sleep 0.3; sleep 60; echo never");
    assert_eq!((came.status, came.output()), ("failed", "begun\n"), "{came:?}");
    assert_eq!(came.metadata("timed_out"), json!(true));
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn cancelling_ends_everything() {
    let mut workshop = TestWorkspace::new();
    workshop.policy.autonomy = AutonomyLevel::Full;
    let desk = workshop.gateway();
    let cancel = desk.cancel.clone();
    let raise = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        cancel.raise(CancelReason::Operator);
    });
    let started = Instant::now();
    let came = desk.shell("sleep 61 | sleep 62; echo never");
    raise.join().unwrap();
    assert_eq!(came.status, "cancelled", "{came:?}");
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn a_signal_is_told_as_one() {
    let mut workshop = TestWorkspace::new();
    workshop.policy.autonomy = AutonomyLevel::Full;
    let desk = workshop.gateway();
    let came = desk.shell("bash -c 'kill -SEGV $$'");
    assert_eq!((came.metadata("signal"), came.metadata("exit_code")), (json!(11), Value::Null), "{came:?}");
    assert_eq!(desk.shell("bash -c 'kill -TERM $$' || echo after").output(), "after\n");
}

#[test]
fn file_tools_work_through_the_door() {
    let workshop = TestWorkspace::new();
    let desk = workshop.gateway();
    // C15.6, approved.
    let came = desk.call("file_write", &json!({"path": "notes/a.txt", "content": "grüße\n"}));
    assert_eq!((came.status, came.output()), ("done", "created `notes/a.txt`, 8 bytes"));
    let came = desk.call("file_read", &json!({"path": "notes/a.txt", "offset": 2, "limit": 2}));
    assert_eq!(
        (came.output(), came.metadata("next_offset"), came.metadata("bytes_left")),
        ("ü", json!(4), json!(4))
    );
    // C15.4.
    let came = desk.call("file_list", &json!({"path": ".", "recursive": true}));
    assert_eq!(came.output(), "notes/\nnotes/a.txt\t8\n");
    // C15.5.
    let came = desk.call("file_read", &json!({"path": "/etc/passwd"}));
    assert_eq!((came.status, came.result.is_none()), ("denied", true));
    for (tool, arguments) in [
        ("file_read", json!({"path": "a", "encoding": "latin1"})),
        ("file_write", json!({"path": "a"})),
        ("file_list", json!({"path": 7})),
        ("shell", json!({})),
    ] {
        let came = desk.call(tool, &arguments);
        assert!(came.status == "failed" && came.result.is_none(), "{tool}: {came:?}");
    }
    std::fs::write(workshop.path.join("bytes"), b"ab\xff").unwrap();
    let came = desk.call("file_read", &json!({"path": "bytes"}));
    assert!(came.text.contains("`bytes` is not UTF-8 text (byte 2)"), "{came:?}");
}

/// C7.3b, C7.4: a command is checked against the files that exist when it runs, not when the line started.
#[test]
fn what_a_line_has_moved_or_linked_is_judged_again() {
    let lines = [
        "mv d n; cp a.txt n/h",
        "mv d n && cp a.txt k",
        "mv d l/n && cp a.txt sub/n/h",
        "mv l/deep t && mv d sub/deep && cp a.txt sub/deep/h",
        "mv y z && mv d y && cp h y",
        "mv d n && find src -name h -exec cp {} n ';'",
        "cp -P ln o && cp a.txt o",
        "mv d n; cp a.txt n/h > h",
    ];
    for line in lines {
        let workshop = TestWorkspace::new();
        let outside = workshop.path.parent().unwrap().join("outside.txt");
        std::fs::write(&outside, "theirs").unwrap();
        for folder in ["d", "sub/deep", "src"] {
            std::fs::create_dir_all(workshop.path.join(folder)).unwrap();
        }
        std::fs::hard_link(&outside, workshop.path.join("d/h")).unwrap();
        for file in ["a.txt", "y", "h", "src/h"] {
            workshop.write(file, "ours");
        }
        workshop.link("sub", "l");
        workshop.link("n/h", "k");
        workshop.link("d/h", "ln");
        let came = workshop.gateway().shell(line);
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), "theirs", "{line}: {came:?}");
        assert_ne!(came.status, "done", "{line}: {came:?}");
        assert_eq!(workshop.text("h"), "ours", "{line}: nothing is opened for it");
    }
    let workshop = TestWorkspace::new();
    workshop.write("a.txt", "ours");
    let came =
        workshop.gateway().shell("mkdir -p new old && mv old new/ && cp a.txt new/old/ && mv new done");
    assert_eq!((came.status, came.exit_code()), ("done", 0), "{came:?}");
    assert_eq!(workshop.text("done/old/a.txt"), "ours");
}
