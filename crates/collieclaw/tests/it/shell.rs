//! C7.3b: the planned command line is the one that runs, and it runs as in a shell.

use std::time::Duration;

use collieclaw_gate::AutonomyLevel;
use collieclaw_providers::cancel::CancelReason;
use serde_json::{Value, json};

use crate::support::{count_sleeps, is_sleep_running, unique_sleep_seconds, wait_until};
use crate::test_workspace::TestWorkspace;

#[test]
fn lists_pipelines_and_redirections_work() {
    let test_workspace = TestWorkspace::new();
    test_workspace.write("a.txt", "one\ntwo\nthree\n");
    test_workspace.write("src/b.txt", "b\n");
    let gateway = test_workspace.gateway();
    for (line, output, code) in [
        ("echo hello", "hello\n", 0),
        ("pwd", &format!("{}\n", test_workspace.path.display()), 0),
        ("cat a.txt | grep t | wc -l", "2\n", 0),
        ("true && echo yes || echo no", "yes\n", 0),
        ("false && echo yes || echo no", "no\n", 0),
        ("false", "", 1),
        ("! false", "", 0),
        ("false | true", "", 0),
        ("true | false", "", 1),
        ("! true | false; echo after", "after\n", 0),
        ("cd src && cat b.txt && pwd", &format!("b\n{}/src\n", test_workspace.path.display()), 0),
        ("cd src | pwd", &format!("{}\n", test_workspace.path.display()), 0),
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
        let outcome = gateway.shell(line);
        assert_eq!((outcome.output(), outcome.exit_code()), (output, code), "{line}: {outcome:?}");
    }
}

#[test]
fn standard_output_and_error_are_distinguished() {
    let test_workspace = TestWorkspace::new();
    let outcome = test_workspace.gateway().shell("echo out; cat nowhere; echo more");
    assert_eq!(outcome.output(), "out\nmore\n[stderr]\ncat: nowhere: No such file or directory\n");
    assert_eq!((outcome.metadata("stdout_bytes"), outcome.metadata("stderr_bytes")), (json!(9), json!(40)));
}

#[test]
fn a_failed_redirection_fails_only_its_command() {
    let test_workspace = TestWorkspace::new();
    let outcome = test_workspace.gateway().shell("cat < missing; echo next; echo x > no/file || echo failed");
    assert_eq!(outcome.exit_code(), 0);
    let (stdout, stderr) = outcome.output().split_once("[stderr]\n").unwrap();
    assert_eq!(stdout, "next\nfailed\n");
    assert_eq!(stderr, "collieclaw: `missing` does not exist\ncollieclaw: `no/file` does not exist\n");
}

#[test]
fn the_environment_holds_nothing_of_ours() {
    let mut test_workspace = TestWorkspace::new();
    test_workspace.policy.autonomy = AutonomyLevel::Full;
    let outcome = test_workspace.gateway().shell("env");
    let mut names: Vec<_> = outcome.output().lines().filter_map(|line| line.split_once('=')).collect();
    names.sort_unstable();
    let only: Vec<_> = names.iter().map(|(name, _)| *name).filter(|name| *name != "TZ").collect();
    let actual = [
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
    assert_eq!(only, actual);
    assert!(!outcome.output().contains(test_workspace.home.join(".ssh").to_str().unwrap()));
}

#[test]
fn a_line_beyond_the_plan_is_run_by_a_real_shell() {
    let mut test_workspace = TestWorkspace::new();
    let line = "for i in 1 2 3; do echo \"n$i\"; done; x=$(echo sub); echo $x";
    for autonomy in [AutonomyLevel::Supervised, AutonomyLevel::Full] {
        test_workspace.policy.autonomy = autonomy;
        let outcome = test_workspace.gateway().shell(line);
        assert_eq!((outcome.output(), outcome.exit_code()), ("n1\nn2\nn3\nsub\n", 0), "{outcome:?}");
    }
    test_workspace.policy.autonomy = AutonomyLevel::ReadOnly;
    assert_eq!(test_workspace.gateway().shell(line).status, "denied");
}

#[test]
fn the_timeout_is_for_the_whole_line_and_earlier_output_is_kept() {
    let mut test_workspace = TestWorkspace::new();
    test_workspace.policy.autonomy = AutonomyLevel::Full;
    let gateway = test_workspace.gateway_with_shell_limits(Duration::from_millis(1500), 1 << 20);
    // Each command alone would be fast enough.
    let outcome = gateway.shell("echo begun; sleep 0.6; sleep 0.6; sleep 0.6; echo never");
    assert_eq!((outcome.status, outcome.output()), ("failed", "begun\n"), "{outcome:?}");
    assert_eq!(outcome.metadata("timed_out"), json!(true));
}

#[test]
fn cancelling_ends_everything() {
    let mut test_workspace = TestWorkspace::new();
    test_workspace.policy.autonomy = AutonomyLevel::Full;
    let gateway = test_workspace.gateway();
    let (cancel, seconds) = (gateway.cancel.clone(), unique_sleep_seconds());
    let line = format!("sleep {seconds} | sleep {seconds}; echo never");
    let raise = std::thread::spawn(move || {
        wait_until("both sleeps run", || count_sleeps(&seconds) == 2);
        cancel.raise(CancelReason::Operator);
        seconds
    });
    let outcome = gateway.shell(&line);
    let seconds = raise.join().unwrap();
    assert_eq!(outcome.status, "cancelled", "{outcome:?}");
    assert!(!is_sleep_running(&seconds));
}

#[test]
fn a_signal_is_reported_as_one() {
    let mut test_workspace = TestWorkspace::new();
    test_workspace.policy.autonomy = AutonomyLevel::Full;
    let gateway = test_workspace.gateway();
    let outcome = gateway.shell("bash -c 'kill -SEGV $$'");
    assert_eq!(
        (outcome.metadata("signal"), outcome.metadata("exit_code")),
        (json!(11), Value::Null),
        "{outcome:?}"
    );
    assert_eq!(gateway.shell("bash -c 'kill -TERM $$' || echo after").output(), "after\n");
}

#[test]
fn file_tools_work_through_the_door() {
    let test_workspace = TestWorkspace::new();
    let gateway = test_workspace.gateway();
    // C15.6, approved.
    let outcome = gateway.call("file_write", &json!({"path": "notes/a.txt", "content": "grüße\n"}));
    assert_eq!((outcome.status, outcome.output()), ("done", "created `notes/a.txt`, 8 bytes"));
    let outcome = gateway.call("file_read", &json!({"path": "notes/a.txt", "offset": 2, "limit": 2}));
    assert_eq!(
        (outcome.output(), outcome.metadata("next_offset"), outcome.metadata("bytes_left")),
        ("ü", json!(4), json!(4))
    );
    // C15.4.
    let outcome = gateway.call("file_list", &json!({"path": ".", "recursive": true}));
    assert_eq!(outcome.output(), "notes/\nnotes/a.txt\t8\n");
    // C15.5.
    let outcome = gateway.call("file_read", &json!({"path": "/etc/passwd"}));
    assert_eq!((outcome.status, outcome.result.is_none()), ("denied", true));
    for (tool, arguments) in [
        ("file_read", json!({"path": "a", "encoding": "latin1"})),
        ("file_write", json!({"path": "a"})),
        ("file_list", json!({"path": 7})),
        ("shell", json!({})),
    ] {
        let outcome = gateway.call(tool, &arguments);
        assert!(outcome.status == "failed" && outcome.result.is_none(), "{tool}: {outcome:?}");
    }
    std::fs::write(test_workspace.path.join("bytes"), b"ab\xff").unwrap();
    let outcome = gateway.call("file_read", &json!({"path": "bytes"}));
    assert!(outcome.text.contains("`bytes` is not UTF-8 text (byte 2)"), "{outcome:?}");
}

/// C7.3b, C7.4: a command is checked against the files that exist when it runs, not when the line started.
#[test]
fn paths_that_a_line_moved_or_linked_are_judged_again() {
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
        let test_workspace = TestWorkspace::new();
        let outside = test_workspace.path.parent().unwrap().join("outside.txt");
        std::fs::write(&outside, "theirs").unwrap();
        for folder in ["d", "sub/deep", "src"] {
            std::fs::create_dir_all(test_workspace.path.join(folder)).unwrap();
        }
        std::fs::hard_link(&outside, test_workspace.path.join("d/h")).unwrap();
        for file in ["a.txt", "y", "h", "src/h"] {
            test_workspace.write(file, "ours");
        }
        test_workspace.link("sub", "l");
        test_workspace.link("n/h", "k");
        test_workspace.link("d/h", "ln");
        let outcome = test_workspace.gateway().shell(line);
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), "theirs", "{line}: {outcome:?}");
        assert_ne!(outcome.status, "done", "{line}: {outcome:?}");
        assert_eq!(test_workspace.text("h"), "ours", "{line}: nothing is opened for it");
    }
    let test_workspace = TestWorkspace::new();
    test_workspace.write("a.txt", "ours");
    let outcome =
        test_workspace.gateway().shell("mkdir -p new old && mv old new/ && cp a.txt new/old/ && mv new done");
    assert_eq!((outcome.status, outcome.exit_code()), ("done", 0), "{outcome:?}");
    assert_eq!(test_workspace.text("done/old/a.txt"), "ours");
}

/// The model has to see how far a line got, within the size of a result (C9, C19.2).
#[test]
fn a_line_that_is_stopped_keeps_the_output_of_its_earlier_commands() {
    const MAX_BYTES: usize = 4096;
    for (stop, seconds, reason) in [
        // The target has become another name of a file elsewhere.
        ("mv d n; cp a.txt n/h", 60, "could not run `cp a.txt n/h`"),
        ("a=rm; $a a.txt", 60, "refused to run `rm a.txt`"),
        ("n=600; sleep $n", 3, "took longer than 3 s"),
    ] {
        let mut test_workspace = TestWorkspace::new();
        test_workspace.policy.allowed_commands.insert("sleep".to_owned());
        let outside = test_workspace.path.parent().unwrap().join("outside.txt");
        std::fs::write(&outside, "theirs").unwrap();
        std::fs::create_dir(test_workspace.path.join("d")).unwrap();
        std::fs::hard_link(&outside, test_workspace.path.join("d/h")).unwrap();
        test_workspace.write("a.txt", "ours");
        let gateway = test_workspace.gateway_with_shell_limits(Duration::from_secs(seconds), MAX_BYTES);
        let outcome = gateway.shell(&format!("echo before; seq 100000; echo last; {stop}"));
        assert_eq!(outcome.status, "failed", "{stop}: {outcome:?}");
        assert!(outcome.text.contains(reason), "{stop}: {outcome:?}");
        let output = outcome.output();
        assert!(output.starts_with("before\n1\n") && output.contains("\nlast\n"), "{stop}: {outcome:?}");
        assert!(output.len() <= MAX_BYTES, "{stop}: {}", output.len());
        assert_eq!(outcome.metadata("truncated"), json!(true), "{stop}");
    }
}
