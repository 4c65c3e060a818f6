//! Attempts of a command to escape from the program, or to outlive it.

use std::os::unix::process::ExitStatusExt;
use std::process::Child;

use serde_json::json;

use crate::sandbox::living_processes;
use crate::support::{TestAgent, unique_sleep_seconds, wait_until};

fn test_agent() -> TestAgent {
    TestAgent::new().with_full_autonomy()
}

fn shell(line: &str) -> [String; 5] {
    ["tool", "run", "shell", "--json", &json!({ "command": line }).to_string()].map(str::to_owned)
}

/// Starts a command line and waits until this many of its sleeps are running.
fn start_line(test_agent: &TestAgent, line: &str, token: &str, count: usize) -> Child {
    let arguments = shell(line);
    let child = test_agent.command(&arguments.each_ref().map(String::as_str)).spawn().unwrap();
    wait_until("the sleeps of the line run", || count_sleeps(token) >= count);
    child
}

/// Counts the sleeps themselves, not the program that has them in its arguments.
fn count_sleeps(token: &str) -> usize {
    living_processes(token).iter().filter(|line| line.starts_with("sleep")).count()
}

#[test]
fn nothing_outlives_the_program_even_if_it_is_killed() {
    let test_agent = test_agent();
    let token = unique_sleep_seconds();
    let line = format!("sleep {token} | bash -c 'setsid sleep {token} & setsid nohup sleep {token} & wait'");
    let mut program = start_line(&test_agent, &line, &token, 3);
    program.kill().unwrap();
    assert_eq!(program.wait().unwrap().signal(), Some(9));
    wait_until("no process of the line is left", || living_processes(&token).is_empty());
}

#[test]
fn an_emergency_stop_ends_a_running_line_of_another_process() {
    let test_agent = test_agent();
    let token = unique_sleep_seconds();
    let line = format!("bash -c 'trap \"\" TERM INT; setsid sleep {token} & sleep {token}'; echo never");
    let program = start_line(&test_agent, &line, &token, 2);
    // C11 demands an immediate stop; the benchmark `estop` measures the time.
    assert_eq!(test_agent.run(&["estop"]).code, 0);
    wait_until("no sleep of the line is left", || count_sleeps(&token) == 0);
    let output = program.wait_with_output().unwrap();
    assert!(!output.status.success());
    assert!(!String::from_utf8_lossy(&output.stdout).contains("never"));
}

#[test]
fn no_key_of_the_program_is_seen_by_a_command() {
    const CANARY: &str = "canary-9d1f6c";
    let test_agent = test_agent();
    let script = "env; cat /proc/*/environ; tr '\\0' '\\n' < /proc/$PPID/environ; set; ps eww; echo finished";
    std::fs::write(test_agent.workspace().join("attack.sh"), script).unwrap();
    let arguments = shell("bash attack.sh");
    let output = test_agent
        .command(&arguments.each_ref().map(String::as_str))
        .envs([("OPENAI_API_KEY", CANARY), ("HTTPS_PROXY", CANARY), ("LD_LIBRARY_PATH", CANARY)])
        .output()
        .unwrap();
    let actual = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(actual.contains("finished"), "{actual} {}", String::from_utf8_lossy(&output.stderr));
    assert!(!actual.contains(CANARY), "{actual}");
}
