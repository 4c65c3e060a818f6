//! Runs that die at any moment, again and again: no step is finished twice, none is lost.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use super::interrupted_runs::{STEPS, marking_steps, marks, steps_begun};
use super::{agent_with_sop, run_command_on_run, single_run};
use crate::support::{TestAgent, wait_for_value, wait_until};

fn kill_after(test_agent: &TestAgent, arguments: &[&str], milliseconds: u64) {
    let mut command = test_agent.command(arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // A kill at any moment.
    std::thread::sleep(Duration::from_millis(milliseconds));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Kills the run some milliseconds after one more step has started, however slow the machine is, or lets it finish.
fn kill_in_step(test_agent: &TestAgent, arguments: &[&str], milliseconds: u64) {
    let before = steps_begun(test_agent);
    let mut command = test_agent.command(arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("one more step has begun", || {
        steps_begun(test_agent) > before || child.try_wait().unwrap().is_some()
    });
    // A kill at any moment of the step.
    std::thread::sleep(Duration::from_millis(milliseconds));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Waits until no process carries out the run: a command that was just being started takes a moment to end. Returns
/// the run.
fn wait_for_idle_run(test_agent: &TestAgent) -> Value {
    wait_for_value("no process carries out the run", || {
        Some(single_run(test_agent)).filter(|run| run["state"] != "running")
    })
}

#[test]
fn a_run_that_is_killed_repeatedly_finishes_and_repeats_only_confirmed_steps() {
    let mut interrupted = 0;
    for round in 0_u64.. {
        // Some kills come at any moment. The others may come late; a slow machine gets more of them.
        if round >= 10 && interrupted > 0 {
            break;
        }
        assert!(round < 60, "none of the kills came inside a step");
        let test_agent = agent_with_sop("mark", &marking_steps("echo"));
        match round % 3 {
            0 => kill_after(&test_agent, &["sop", "run", "mark"], 20 + round * 23 % 160),
            _ => kill_in_step(&test_agent, &["sop", "run", "mark"], round * 7 % 20),
        }
        if test_agent.run(&["sop", "status", "--output", "json"]).json() == serde_json::json!([]) {
            continue;
        }
        let mut decided = Vec::new();
        for attempt in 0.. {
            assert!(attempt < 500, "it does not come to its end: {}", single_run(&test_agent));
            let state = wait_for_idle_run(&test_agent);
            match state["state"].as_str().unwrap() {
                "finished" => break,
                "ready" => assert_eq!(run_command_on_run(&test_agent, &["resume"]).code, 0),
                "interrupted" => {
                    interrupted += 1;
                    let before = marks(&test_agent);
                    let asked = run_command_on_run(&test_agent, &["resume"]);
                    assert!(asked.code == 1 && asked.err.contains("--rerun-interrupted"), "{asked:?}");
                    assert_eq!(marks(&test_agent), before, "not without a decision");
                    decided.push(state["step"].as_str().unwrap().to_owned());
                    if attempt < 3 {
                        let run = state["run"].as_str().unwrap().to_owned();
                        let resume = ["sop", "resume", &run, "--rerun-interrupted"];
                        match attempt {
                            1 => kill_after(&test_agent, &resume, 20 + round * 37 % 140),
                            _ => kill_in_step(&test_agent, &resume, (round + attempt) * 7 % 20),
                        }
                    } else {
                        assert_eq!(
                            run_command_on_run(&test_agent, &["resume", "--rerun-interrupted"]).code,
                            0
                        );
                    }
                }
                other => panic!("{other}: {state}"),
            }
        }
        check_marks(&test_agent, &decided);
    }
}

/// Checks that every step has run once, in order; interrupted steps ran at most once more for each decision of the
/// operator.
fn check_marks(test_agent: &TestAgent, decided: &[String]) {
    let marks = marks(test_agent);
    let mut once = marks.clone();
    once.dedup();
    let all: Vec<String> = (0..STEPS).map(|number| format!("s{number}")).collect();
    assert_eq!(once, all, "in order, none lost: {marks:?}");
    for step in &all {
        let ran = marks.iter().filter(|mark| *mark == step).count();
        let more = decided.iter().filter(|one| *one == step).count();
        assert!(ran <= 1 + more, "{step} ran {ran} times, {decided:?}");
    }
    assert_eq!(test_agent.run(&["receipt", "verify"]).code, 0);
    let list = test_agent.run(&["receipt", "list", "--limit", "1000", "--output", "json"]).json();
    let done = |receipt: &&Value| receipt["status"] == "allowed";
    for step in &all {
        let its = list.as_array().unwrap().iter().filter(|receipt| receipt["step_id"] == step.as_str());
        assert!(its.filter(done).count() >= 1, "{step} has its receipt");
    }
}

/// Questions and approvals among calls: after any kill, journal and receipts agree.
#[test]
fn a_run_of_every_kind_of_step_that_is_killed_again_and_again_agrees_with_its_receipts() {
    let kinds: String = (0..2)
        .map(|number| {
            format!(
                "[[steps]]\nid = \"s{number}\"\nkind = \"tool\"\ntool = \"shell\"\nargs = {{ command = \"echo s{number} >> marks\" }}\n\
                 [[steps]]\nid = \"a{number}\"\nkind = \"agent\"\nprompt = \"Well?\"\n\
                 [[steps]]\nid = \"o{number}\"\nkind = \"approval\"\nprompt = \"Go on?\"\n"
            )
        })
        .collect();
    for round in 0..4_u64 {
        let test_agent = agent_with_sop("mixed", &kinds)
            .with_mock_fixture("[[round]]\n[[round.call]]\ntool = \"time\"\n[[round]]\ntext = \"so\"\n");
        kill_in_step(&test_agent, &["sop", "run", "mixed"], round * 53 % 200);
        for attempt in 0_u64.. {
            assert!(attempt < 500, "it does not come to its end: {}", single_run(&test_agent));
            let state = wait_for_idle_run(&test_agent);
            let run = state["run"].as_str().unwrap();
            let next = match state["state"].as_str().unwrap() {
                "finished" => break,
                "ready" => vec!["sop", "resume", run],
                "waiting" => vec!["sop", "approve", run],
                "interrupted" => vec!["sop", "resume", run, "--rerun-interrupted"],
                other => panic!("{other}: {state}"),
            };
            if attempt < 8 {
                kill_after(&test_agent, &next, 30 + (round * 37 + attempt * 61) % 250);
                continue;
            }
            let done = test_agent.run(&next);
            assert!([0, 5].contains(&done.code), "{done:?}");
        }
        let mut once = marks(&test_agent);
        once.dedup();
        assert_eq!(once, ["s0", "s1"], "in order, none lost");
        assert_eq!(test_agent.run(&["receipt", "verify"]).code, 0);
    }
}
