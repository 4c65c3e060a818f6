//! The emergency stop (C11): takes effect at once, in every process of the home.

use serde_json::{Value, json};

use crate::support::{
    TestAgent, agent_output, count_sleeps, unique_sleep_seconds, wait_for_exit, wait_for_sleep, wait_until,
};

#[test]
fn running_commands_of_every_process_end_at_once_and_the_agents_still_answer() {
    let seconds = unique_sleep_seconds();
    let test_agent = TestAgent::new().with_sleeping_model(&seconds);
    let mut agents: Vec<_> =
        (0..3).map(|_| test_agent.command(&["agent", "-m", "wait"]).spawn().unwrap()).collect();
    wait_until("all three commands run", || count_sleeps(&seconds) == 3);
    assert_eq!(test_agent.run(&["estop"]).code, 0);
    for agent in &mut agents {
        assert_eq!(wait_for_exit(agent), 8);
    }
    // The benchmark `estop` measures the time.
    assert_eq!(test_agent.receipt_summaries(), [["shell", "failed", "estop"]; 3]);
}

#[test]
fn an_active_stop_prevents_calls_and_questions() {
    let test_agent = TestAgent::new().with_mock_fixture(
        "[[round]]\n[[round.call]]\ntool = \"file_write\"\nargs = { path = \"x\", content = \"\" }\n\
         [[round.call]]\ntool = \"time\"\n[[round]]\n\
         expect = { tools_exclude = [\"time\"], system_prompt_contains = \"emergency stop\" }\ntext = \"stopped\"\n",
    );
    assert_eq!(test_agent.run(&["estop"]).code, 0);
    assert_eq!(test_agent.run(&["estop"]).code, 0, "twice is no fault");
    let agent = test_agent.at_terminal(&["agent", "-m", "write"], &[]);
    assert_eq!((agent.code, agent.out.as_str()), (8, "stopped\n"), "{agent:?}");
    assert!(!agent.err.contains("Approve?"));
    assert_eq!(test_agent.run(&["policy", "explain", "time"]).code, 0, "looking is no tool");

    assert_eq!(test_agent.run(&["estop", "--clear"]).code, 0);
    assert_eq!(test_agent.run(&["tool", "run", "time"]).code, 0);
}

#[test]
fn anything_at_that_place_stops() {
    let test_agent = TestAgent::new();
    let place = test_agent.home().join("ESTOP");
    std::fs::create_dir(&place).unwrap();
    assert_eq!(test_agent.run(&["tool", "run", "time"]).code, 8);
    std::fs::write(place.join("notes"), "mine").unwrap();
    assert_eq!(test_agent.run(&["estop", "--clear"]).code, 1, "what somebody keeps there is not thrown away");
    assert_eq!(test_agent.run(&["tool", "run", "time"]).code, 8);
    std::fs::remove_file(place.join("notes")).unwrap();
    assert_eq!(test_agent.run(&["estop", "--clear"]).code, 0);
    assert_eq!(test_agent.run(&["tool", "run", "time"]).code, 0);
    std::os::unix::fs::symlink("/nowhere", &place).unwrap();
    assert_eq!(test_agent.run(&["tool", "run", "time"]).code, 8);
    assert_eq!(test_agent.run(&["estop", "--clear"]).code, 0);
    assert_eq!(test_agent.run(&["tool", "run", "time"]).code, 0);
}

/// C14: the log shows who set and cleared the stop, and which calls it refused.
#[test]
fn every_stop_is_reported_and_recorded() {
    let test_agent = TestAgent::new();
    let actual = |arguments: &[&str]| {
        let mut command = test_agent.command(arguments);
        let done = agent_output(command.env("COLLIECLAW_LOG", "json").output().unwrap());
        let events = done.err.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.map(|event| event["event"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(actual(&["estop"]), ["estop_triggered"]);
    assert!(actual(&["tool", "run", "time"]).contains(&"estop_triggered".to_owned()));
    assert_eq!(actual(&["estop", "--clear"]), ["estop_cleared"]);
    let audit = std::fs::read_to_string(test_agent.home().join("audit.log")).unwrap();
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
    std::fs::write(test_agent.home().join("config.toml"), "nonsense").unwrap();
    assert_eq!(test_agent.run(&["estop"]).code, 0);
    assert!(test_agent.home().join("ESTOP").exists());
}

/// A stop that is cleared at once has still ended the running tools.
#[test]
fn a_stop_that_is_cleared_at_once_was_a_stop() {
    let seconds = unique_sleep_seconds();
    let test_agent = TestAgent::new().with_sleeping_model(&seconds);
    let mut agent = test_agent.command(&["agent", "-m", "wait"]).spawn().unwrap();
    // The stop is watched before the command is started.
    wait_for_sleep(&seconds);
    let home = collieclaw_agent::home::AgentHome::new(test_agent.home());
    collieclaw_agent::estop::set(&home).unwrap();
    assert!(collieclaw_agent::estop::clear(&home).unwrap());
    assert_eq!(wait_for_exit(&mut agent), 8);
}
