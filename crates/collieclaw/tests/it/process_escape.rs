//! Attempts of a command to escape from the program, or to outlive it.

use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::sandbox::{living_processes, token};
use crate::support::{TEST_TIMEOUT, TestAgent};

fn house() -> TestAgent {
    TestAgent::new().with_config_change("autonomy = \"supervised\"", "autonomy = \"full\"")
}

fn shell(line: &str) -> [String; 5] {
    ["tool", "run", "shell", "--json", &json!({ "command": line }).to_string()].map(str::to_owned)
}

/// Starts a command line and waits until this many of its sleeps are running.
fn start_line(house: &TestAgent, line: &str, token: &str, count: usize) -> Child {
    let arguments = shell(line);
    let child = house.command(&arguments.each_ref().map(String::as_str)).spawn().unwrap();
    wait_until("its sleeps", || count_sleeps(token) >= count);
    child
}

/// Counts the sleeps themselves, not the program that has them in its arguments.
fn count_sleeps(token: &str) -> usize {
    living_processes(token).iter().filter(|line| line.starts_with("sleep")).count()
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < TEST_TIMEOUT, "still no {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn nothing_outlives_the_program_even_if_it_is_killed() {
    let house = house();
    let token = token();
    let line = format!("sleep {token} | bash -c 'setsid sleep {token} & setsid nohup sleep {token} & wait'");
    let mut program = start_line(&house, &line, &token, 3);
    program.kill().unwrap();
    assert_eq!(program.wait().unwrap().signal(), Some(9));
    wait_until("end of all sleeps", || living_processes(&token).is_empty());
}

#[test]
fn an_emergency_stop_ends_a_running_line_of_another_process() {
    let house = house();
    let token = token();
    let line = format!("bash -c 'trap \"\" TERM INT; setsid sleep {token} & sleep {token}'; echo never");
    let program = start_line(&house, &line, &token, 2);
    let stopped = Instant::now();
    assert_eq!(house.run(&["estop"]).code, 0);
    wait_until("end of all sleeps", || count_sleeps(&token) == 0);
    // C11 demands an immediate stop; a busy machine gets a little more time.
    assert!(stopped.elapsed() < Duration::from_secs(10), "{:?}", stopped.elapsed());
    let output = program.wait_with_output().unwrap();
    assert!(!output.status.success());
    assert!(!String::from_utf8_lossy(&output.stdout).contains("never"));
}

#[test]
fn no_key_of_the_program_is_seen_by_a_command() {
    const CANARY: &str = "canary-9d1f6c";
    let house = house();
    let script = "env; cat /proc/*/environ; tr '\\0' '\\n' < /proc/$PPID/environ; set; ps eww; echo finished";
    std::fs::write(house.workspace().join("attack.sh"), script).unwrap();
    let arguments = shell("bash attack.sh");
    let output = house
        .command(&arguments.each_ref().map(String::as_str))
        .envs([("OPENAI_API_KEY", CANARY), ("HTTPS_PROXY", CANARY), ("LD_LIBRARY_PATH", CANARY)])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("finished"), "{told} {}", String::from_utf8_lossy(&output.stderr));
    assert!(!told.contains(CANARY), "{told}");
}
