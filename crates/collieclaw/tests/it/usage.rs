//! Usage of models is counted and limited (issue 6): across processes, also those that are killed.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::http_server::{ServerAction, TestServer};
use crate::support::{TestAgent, wait_until};

const COUNTED: &str =
    "[[round]]\ntext = \"one\"\nusage = { prompt_tokens = 1000, completion_tokens = 200 }\n";

/// Creates an agent with prices, a script and limits.
fn test_agent(limits: &str) -> TestAgent {
    let test_agent = TestAgent::new().with_mock_fixture(COUNTED);
    let prices = "price_prompt = 0.5\nprice_completion = 2\n";
    fs::write(
        test_agent.home().join("config.toml"),
        format!("[providers]\ncurrency = \"EUR\"\n[providers.models.local]\n{prices}[limits]\n{limits}"),
    )
    .unwrap();
    test_agent
}

fn ask(test_agent: &TestAgent, conversation: &str) -> i32 {
    test_agent.run(&["agent", "-m", "hi", "--conversation", conversation]).code
}

fn total(test_agent: &TestAgent, arguments: &[&str]) -> Value {
    test_agent.run(&[&["usage", "--output", "json"], arguments].concat()).json()["total"].clone()
}

#[test]
fn calls_tokens_and_cost_are_counted_by_day_conversation_and_model() {
    let test_agent = test_agent("");
    assert_eq!([ask(&test_agent, "a"), ask(&test_agent, "b"), ask(&test_agent, "b")], [0, 0, 0]);
    let all = total(&test_agent, &[]);
    let expected =
        [("calls", 3), ("failed", 0), ("prompt_tokens", 3000), ("completion_tokens", 600), ("estimated", 0)];
    for (name, number) in expected {
        assert_eq!(all[name], number, "{name} in {all}");
    }
    // 3000 tokens at 0.5 and 600 at 2 per million.
    assert!((all["cost"].as_f64().unwrap() - 0.0027).abs() < 1e-9, "{all}");
    assert_eq!(total(&test_agent, &["--conversation", "b"])["calls"], 2);
    let nobody = test_agent.run(&["usage", "--conversation", "nobody"]);
    assert!(nobody.code == 2 && nobody.err.contains("usage --by conversation"), "{nobody:?}");

    let shown = test_agent.run(&["usage"]).out;
    let heads: Vec<&str> = shown.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(heads, ["DAY", "CALLS", "FAILED", "INPUT", "OUTPUT", "TIME", "COST", "(EUR)"]);
    let day: Vec<&str> = shown.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!([day[1], day[2], day[3], day[4]], ["3", "0", "3,000", "600"], "{shown}");
    let by = test_agent.run(&["usage", "--by", "conversation"]).out;
    assert!(by.lines().nth(1).unwrap().starts_with("b ") && by.contains("\ntotal "), "{by}");
    assert!(test_agent.run(&["usage", "--by", "model"]).out.contains("\nlocal mock "), "{by}");

    // The conversation is deleted; its usage is kept, without any of its text.
    assert_eq!(test_agent.run(&["memory", "clear", "--yes"]).code, 0);
    assert_eq!(total(&test_agent, &[]), all);
}

#[test]
fn tokens_without_a_server_count_are_marked_as_estimates() {
    let test_agent = TestAgent::new()
        .with_mock_fixture("[[round]]\ntext = \"twelve bytes\"\n[[round]]\nerror = \"network\"\n");
    assert_eq!(test_agent.run(&["agent", "-m", "hi"]).code, 0);
    let counted = total(&test_agent, &[]);
    assert_eq!((&counted["estimated"], &counted["completion_tokens"]), (&json!(1), &json!(3)));
    assert!(counted["prompt_tokens"].as_u64().unwrap() > 50, "the system prompt counts: {counted}");
    let shown = test_agent.run(&["usage"]).out;
    assert!(shown.contains('~') && shown.contains("estimate"), "{shown}");
    // A server that was never reached causes no usage.
    fs::write(test_agent.path().join("fixture.toml"), "[[round]]\nerror = \"network\"\n").unwrap();
    assert_eq!(test_agent.run(&["agent", "-m", "hi"]).code, 6);
    let after = total(&test_agent, &[]);
    assert_eq!([&after["calls"], &after["failed"]], [&json!(2), &json!(1)]);
    assert_eq!(after["prompt_tokens"], counted["prompt_tokens"]);
}

/// A server that reports no usage must not bypass the limit.
#[test]
fn tokens_that_a_server_counts_as_zero_are_estimated() {
    let test_agent = TestAgent::new().with_mock_fixture(
        "[[round]]\ntext = \"one\"\nusage = { prompt_tokens = 0, completion_tokens = 0 }\n",
    );
    assert_eq!(test_agent.run(&["agent", "-m", "hi"]).code, 0);
    let counted = total(&test_agent, &[]);
    assert!(counted["estimated"] == 1 && counted["prompt_tokens"].as_u64().unwrap() > 50, "{counted}");
}

#[test]
fn a_limit_that_is_reached_is_an_error_of_its_own_and_says_when_there_is_more() {
    for (limit, asked) in [
        ("calls_per_day = 2", 2),
        ("tokens_per_day = 1201", 2),
        ("tokens_per_conversation = 1201", 2),
        ("cost_per_day = 0.001", 2),
        ("calls_per_day = 0", 0),
        ("minutes_per_day = 0", 0),
    ] {
        let test_agent = test_agent(limit);
        for _ in 0..asked {
            assert_eq!(ask(&test_agent, "a"), 0, "{limit}");
        }
        let refused = test_agent.run(&["agent", "-m", "hi", "--conversation", "a"]);
        let key = limit.split(' ').next().unwrap();
        assert_eq!((refused.code, refused.out.as_str()), (7, ""), "{limit}: {}", refused.err);
        assert!(refused.err.contains(&format!("(`limits.{key}`)")), "{}", refused.err);
        let again =
            if key == "tokens_per_conversation" { "a new conversation" } else { "resets at midnight, in " };
        assert!(refused.err.contains(again), "{}", refused.err);
        assert_eq!(total(&test_agent, &[])["calls"], asked, "what was refused was not asked");
        // Another conversation has its own limit.
        assert_eq!(ask(&test_agent, "b"), if key == "tokens_per_conversation" { 0 } else { 7 }, "{limit}");
        let of_a: &[&str] = if asked > 0 { &["usage", "--conversation", "a"] } else { &["usage"] };
        let shown = test_agent.run(of_a).out;
        assert!(shown.contains(&format!("{key}: ")), "{shown}");
    }
    // The limit also applies in the middle of a turn, and no other provider is asked instead.
    let test_agent = test_agent("calls_per_day = 1")
        .with_mock_fixture("[[round]]\n[[round.call]]\ntool = \"time\"\n[[round]]\ntext = \"late\"\n");
    assert_eq!(ask(&test_agent, "a"), 7);
    assert_eq!(test_agent.receipts().len(), 1);
}

#[test]
fn processes_share_a_limit_and_never_go_beyond_it_together() {
    let test_agent = test_agent("calls_per_day = 5");
    let children: Vec<_> = (0..10)
        .map(|number| {
            test_agent.command(&["agent", "-m", "hi", "--conversation", &number.to_string()]).spawn().unwrap()
        })
        .collect();
    let mut codes: Vec<i32> =
        children.into_iter().map(|child| child.wait_with_output().unwrap().status.code().unwrap()).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 0, 0, 0, 0, 7, 7, 7, 7, 7]);
    assert_eq!(total(&test_agent, &[])["calls"], 5);
}

#[test]
fn a_call_whose_process_is_killed_has_been_counted() {
    let server = TestServer::start(vec![ServerAction::Hang(String::new())]);
    let test_agent = TestAgent::new();
    let config = format!(
        "default_provider = \"openai_compatible\"\n[providers.models.openai_compatible]\n\
         base_url = \"http://127.0.0.1:{}/v1\"\nprice_prompt = 1\n[limits]\ncalls_per_day = 3\n",
        server.port()
    );
    fs::write(test_agent.home().join("config.toml"), config).unwrap();
    for killed in 1..=3 {
        let mut agent = test_agent
            .command(&["agent", "-m", "hi"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("the server has the request", || server.received().len() == killed);
        agent.kill().unwrap();
        agent.wait().unwrap();
    }
    let counted = total(&test_agent, &[]);
    assert_eq!(
        [&counted["calls"], &counted["failed"], &counted["estimated"]],
        [&json!(3), &json!(3), &json!(3)]
    );
    assert!(counted["prompt_tokens"].as_u64().unwrap() > 100 && counted["cost"].as_f64().unwrap() > 0.0);
    assert_eq!(test_agent.run(&["agent", "-m", "hi"]).code, 7);
}

#[test]
fn unwritable_usage_records_stop_only_providers_with_a_limit() {
    let limited = test_agent("calls_per_day = 5");
    let free = test_agent("");
    for test_agent in [&limited, &free] {
        fs::write(
            test_agent.home().join("usage.db"),
            "this is no database, and it is long enough to be none".repeat(40),
        )
        .unwrap();
    }
    let refused = limited.run(&["agent", "-m", "hi"]);
    assert_eq!(refused.code, 7, "{}", refused.err);
    assert!(
        refused.err.contains("usage could not be recorded") && refused.err.contains("move it away"),
        "{}",
        refused.err
    );
    let answered = free.run(&["agent", "-m", "hi"]);
    assert_eq!((answered.code, answered.out.as_str()), (0, "one\n"));
    assert!(answered.err.contains("warning: ") && answered.err.contains("usage.db"), "{}", answered.err);
    assert_eq!(free.run(&["usage"]).code, 1);
}

#[test]
fn limits_and_prices_are_checked_in_the_configuration() {
    let test_agent = test_agent("tokens_per_day = -1\ncost_per_day = \"much\"\ncalls_per_dya = 5\n");
    let actual = test_agent.run(&["config", "validate"]);
    assert_eq!(actual.code, 3);
    for what in ["tokens_per_day", "cost_per_day", "did you mean `calls_per_day`"] {
        assert!(actual.err.contains(what), "{}", actual.err);
    }
}
