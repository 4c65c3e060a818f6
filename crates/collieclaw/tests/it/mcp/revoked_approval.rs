//! A server that a gateway keeps between turns ends when its approval does, even without another turn.

use super::server_fixture::FAKE_CALL;
use crate::gateway::support::TestGateway;
use crate::support::{
    TestAgent, is_sleep_running, unique_sleep_seconds, wait_for_end_of_sleep, wait_for_sleep, wait_until,
};

/// Runs a turn in which a server starts a `sleep` of this length.
fn gateway_after_turn(more: &str, sleep: &str) -> TestGateway {
    let test_agent = TestAgent::new()
        .with_fake_server("company", more)
        .with_approved_server("fake")
        .with_config_change("port = 8477\ntools_allow = [", "port = 8477\ntools_allow = [\"fake__echo\", ")
        .with_mock_fixture(&FAKE_CALL.replace("WORDS", sleep));
    let gateway = TestGateway::start_in(test_agent);
    let turn = gateway.post("/chat", &serde_json::json!({ "message": "say it" })).json();
    let actual = turn["tool_calls"][0]["output"].as_str().unwrap_or_else(|| panic!("{turn}"));
    assert!(actual.contains("call 1"), "{turn}");
    gateway
}

fn rewrite_config(test_agent: &TestAgent, change: impl FnOnce(String) -> String) {
    let config = test_agent.home().join("config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let changed = change(text.clone());
    assert_ne!(text, changed);
    std::fs::write(&config, changed).unwrap();
}

type ApprovalChange<'c> = &'c dyn Fn(&TestAgent);

/// C7.4: a server whose approval is removed is ended.
#[test]
fn a_server_ends_with_its_approval_and_with_its_rules() {
    let deleted = |text: String| text.split("[mcp.servers.fake]").next().unwrap().to_owned();
    let cases: [(&str, ApprovalChange<'_>); 5] = [
        ("removed", &|test_agent| assert_eq!(test_agent.run(&["mcp", "remove", "fake"]).code, 0)),
        ("deleted", &|test_agent| rewrite_config(test_agent, deleted)),
        ("another risk", &|test_agent| {
            rewrite_config(test_agent, |text| text.replace("risk = \"low\"", "risk = \"high\""));
        }),
        ("another level", &|test_agent| {
            rewrite_config(test_agent, |text| text.replace("autonomy = \"full\"", "autonomy = \"readonly\""));
        }),
        ("not to be read", &|test_agent| rewrite_config(test_agent, |text| text + "\n[[\n")),
    ];
    for (what, change) in cases {
        let sleep = unique_sleep_seconds();
        let gateway = gateway_after_turn("risk = \"low\"", &sleep);
        // The server runs between two turns.
        wait_for_sleep(&sleep);
        change(&gateway.test_agent);
        wait_until(&format!("the server has ended ({what})"), || !is_sleep_running(&sleep));
    }
}

/// A server with write access to the workspace runs only during calls with a receipt, never between turns.
#[test]
fn a_server_that_may_write_is_not_kept() {
    let sleep = unique_sleep_seconds();
    let _gateway = gateway_after_turn("workspace = \"write\"", &sleep);
    wait_for_end_of_sleep(&sleep);
}
