//! The emergency stop (C11): takes effect at once, in every process of the home.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{TestAgent, agent_output, wait_for_exit};

const SLEEPS: &str = "[[round]]\n[[round.call]]\ntool = \"shell\"\nargs = { command = \"sleep 30\" }\n\n\
                      [[round]]\nexpect = { tool_result_contains = \"stop\" }\ntext = \"Tools are stopped.\"\n";

fn full() -> TestAgent {
    // `sleep` is not in the list of allowed commands; `full` runs it.
    TestAgent::new().with_config_change("autonomy = \"supervised\"", "autonomy = \"full\"")
}

#[test]
fn running_commands_of_every_process_end_at_once_and_the_agents_still_answer() {
    let house = full()
        .with_config_change("shell_timeout = \"15s\"", "shell_timeout = \"29s\"")
        .with_mock_fixture(SLEEPS);
    let mut agents: Vec<_> =
        (0..3).map(|_| house.command(&["agent", "-m", "wait"]).spawn().unwrap()).collect();
    let patience = Instant::now() + Duration::from_secs(25);
    let begun = || std::fs::read_dir(house.home().join("intents")).map(Iterator::count).unwrap_or(0);
    while begun() < 3 {
        assert!(Instant::now() < patience, "they never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    let stopped = Instant::now();
    assert_eq!(house.run(&["estop"]).code, 0);
    for agent in &mut agents {
        assert_eq!(wait_for_exit(agent), 8);
    }
    // Far shorter than the sleep; the benchmark measures the exact time.
    assert!(stopped.elapsed() < Duration::from_secs(10), "{:?}", stopped.elapsed());
    assert_eq!(house.receipt_summaries(), [["shell", "failed", "estop"]; 3]);
}

#[test]
fn while_it_is_active_nothing_runs_and_nobody_is_asked() {
    let house = TestAgent::new().with_mock_fixture(
        "[[round]]\n[[round.call]]\ntool = \"file_write\"\nargs = { path = \"x\", content = \"\" }\n\
         [[round.call]]\ntool = \"time\"\n[[round]]\n\
         expect = { tools_exclude = [\"time\"], system_prompt_contains = \"emergency stop\" }\ntext = \"stopped\"\n",
    );
    assert_eq!(house.run(&["estop"]).code, 0);
    assert_eq!(house.run(&["estop"]).code, 0, "twice is no fault");
    let agent = house.at_terminal(&["agent", "-m", "write"], &[]);
    assert_eq!((agent.code, agent.out.as_str()), (8, "stopped\n"), "{agent:?}");
    assert!(!agent.err.contains("Approve?"));
    assert_eq!(house.run(&["policy", "explain", "time"]).code, 0, "looking is no tool");

    assert_eq!(house.run(&["estop", "--clear"]).code, 0);
    assert_eq!(house.run(&["tool", "run", "time"]).code, 0);
}

#[test]
fn anything_at_that_place_stops() {
    let house = TestAgent::new();
    let place = house.home().join("ESTOP");
    std::fs::create_dir(&place).unwrap();
    assert_eq!(house.run(&["tool", "run", "time"]).code, 8);
    std::fs::write(place.join("notes"), "mine").unwrap();
    assert_eq!(house.run(&["estop", "--clear"]).code, 1, "what somebody keeps there is not thrown away");
    assert_eq!(house.run(&["tool", "run", "time"]).code, 8);
    std::fs::remove_file(place.join("notes")).unwrap();
    assert_eq!(house.run(&["estop", "--clear"]).code, 0);
    assert_eq!(house.run(&["tool", "run", "time"]).code, 0);
    std::os::unix::fs::symlink("/nowhere", &place).unwrap();
    assert_eq!(house.run(&["tool", "run", "time"]).code, 8);
    assert_eq!(house.run(&["estop", "--clear"]).code, 0);
    assert_eq!(house.run(&["tool", "run", "time"]).code, 0);
}

/// C14: the log shows who set and cleared the stop, and which calls it refused.
#[test]
fn every_stop_is_told_and_kept() {
    let house = TestAgent::new();
    let told = |arguments: &[&str]| {
        let mut command = house.command(arguments);
        let done = agent_output(command.env("COLLIECLAW_LOG", "json").output().unwrap());
        let events = done.err.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.map(|event| event["event"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(told(&["estop"]), ["estop_triggered"]);
    assert!(told(&["tool", "run", "time"]).contains(&"estop_triggered".to_owned()));
    assert_eq!(told(&["estop", "--clear"]), ["estop_cleared"]);
    let audit = std::fs::read_to_string(house.home().join("audit.log")).unwrap();
    let kept: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let about = kept.iter().filter(|event| event["event"].as_str().unwrap().starts_with("estop"));
    let whose: Vec<_> = about.map(|event| [&event["event"], &event["channel"], &event["tool"]]).collect();
    let null = &Value::Null;
    assert_eq!(
        whose,
        [
            [&json!("estop_triggered"), &json!("cli"), null],
            [&json!("estop_triggered"), null, &json!("time")],
            [&json!("estop_cleared"), &json!("cli"), null],
        ]
    );
    // An unreadable configuration must not delay the emergency stop.
    std::fs::write(house.home().join("config.toml"), "nonsense").unwrap();
    assert_eq!(house.run(&["estop"]).code, 0);
    assert!(house.home().join("ESTOP").exists());
}

/// A stop that is cleared at once has still ended the running tools.
#[test]
fn a_stop_that_is_cleared_at_once_was_a_stop() {
    let house = full().with_mock_fixture(SLEEPS);
    let mut agent = house.command(&["agent", "-m", "wait"]).spawn().unwrap();
    let patience = Instant::now() + Duration::from_secs(25);
    while !std::fs::read_dir(house.home().join("intents")).is_ok_and(|mut intents| intents.next().is_some()) {
        assert!(Instant::now() < patience, "it never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    // The intent is written a moment before the stop is watched.
    std::thread::sleep(Duration::from_millis(200));
    let home = collieclaw_agent::home::AgentHome::new(house.home());
    collieclaw_agent::estop::set(&home).unwrap();
    assert!(collieclaw_agent::estop::clear(&home).unwrap());
    assert_eq!(wait_for_exit(&mut agent), 8);
}
