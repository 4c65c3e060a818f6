//! The output of a shell line: bounded, with every omission marked.

use std::fs;
use std::time::Duration;

use serde_json::json;

use crate::test_workspace::{TestCallResult, TestWorkspace};

const BOUND: usize = 1024;

fn run_and_print(bytes: &[u8], line: &str) -> TestCallResult {
    let test_workspace = TestWorkspace::new();
    fs::write(test_workspace.path.join("file"), bytes).unwrap();
    test_workspace.gateway_with_shell_limits(Duration::from_secs(30), BOUND).shell(line)
}

#[test]
fn output_within_the_limit_is_shown_whole() {
    for length in [0, 1, 895, 896, 897, 1023, BOUND] {
        let text = "x".repeat(length);
        let outcome = run_and_print(text.as_bytes(), "cat file");
        assert_eq!(
            (outcome.output(), outcome.metadata("truncated")),
            (text.as_str(), json!(false)),
            "{length}"
        );
    }
}

#[test]
fn omitted_output_is_counted_in_bytes() {
    for (bytes, shown) in [
        (vec![b'x'; 1025], 'x'),
        (vec![b'x'; 5000], 'x'),
        (vec![0xff; 600], '\u{fffd}'),
        ("€".repeat(400).into_bytes(), '€'),
    ] {
        let outcome = run_and_print(&bytes, "cat file");
        let output = outcome.output();
        assert!(output.len() <= BOUND, "{}", output.len());
        assert_eq!(outcome.metadata("truncated"), json!(true), "{outcome:?}");
        let (head, rest) = output.split_once("\n[").unwrap();
        let (note, tail) = rest.split_once("]\n").unwrap();
        assert!(head.chars().chain(tail.chars()).all(|letter| letter == shown), "{output}");
        assert!(tail.len() > BOUND / 8, "{output}");
        let each = if shown == '€' { 3 } else { 1 };
        let missing = bytes.len() - each * (head.chars().count() + tail.chars().count());
        assert_eq!(note, format!("{missing} more bytes are not shown"));
    }
}

#[test]
fn the_end_of_a_long_log_is_kept_with_its_last_lines() {
    // More than the beginning and the end that are captured together.
    let log: String = (0..60_000).map(|number| format!("line {number}\n")).collect();
    let outcome = run_and_print(format!("{log}test result: FAILED\n").as_bytes(), "cat file");
    let output = outcome.output();
    assert!(output.len() <= BOUND, "{}", output.len());
    assert!(output.starts_with("line 0\nline 1\n"), "{output}");
    assert!(output.ends_with("line 59998\nline 59999\ntest result: FAILED\n"), "{output}");
    assert!(output.lines().all(|line| line.starts_with(['l', 't', '[']) || line.is_empty()), "{output}");
    let note = output.lines().find(|line| line.starts_with('[')).unwrap();
    let missing: usize = note[1..].split(' ').next().unwrap().parse().unwrap();
    let shown = output.len() - note.len() - "\n\n".len();
    assert_eq!(missing, log.len() + "test result: FAILED\n".len() - shown);
}

#[test]
fn errors_are_shown_beside_large_output_and_both_are_counted() {
    let outcome = run_and_print(&[b'x'; 3000], "cat file; cat nowhere");
    let (stdout, stderr) = outcome.output().split_once("[stderr]\n").unwrap();
    assert!(stdout.contains("more bytes are not shown]\nx"), "{stdout}");
    assert_eq!(stderr, "cat: nowhere: No such file or directory\n");
    assert_eq!(outcome.metadata("truncated"), json!(true));

    let outcome = run_and_print(&[b'x'; 3000], "cat file; cat file >&2");
    assert!(outcome.output().len() <= BOUND);
    assert_eq!(outcome.output().matches("more bytes are not shown]").count(), 2, "{outcome:?}");
}

// A shell has no limit on the length of a list, and file descriptors are few.
#[test]
fn a_line_of_three_hundred_commands_runs_to_its_end() {
    let test_workspace = TestWorkspace::new();
    let usual = rustix::process::Rlimit { current: Some(1024), ..limit() };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, usual).unwrap();
    let line = (0..300).map(|number| format!("echo {number}")).collect::<Vec<_>>().join("; ");
    let outcome = test_workspace.gateway_with_shell_limits(Duration::from_secs(120), 1 << 20).shell(&line);
    let numbers: Vec<String> = (0..300).map(|number| number.to_string()).collect();
    assert_eq!(outcome.output().lines().collect::<Vec<_>>(), numbers, "{outcome:?}");
}

fn limit() -> rustix::process::Rlimit {
    rustix::process::getrlimit(rustix::process::Resource::Nofile)
}
