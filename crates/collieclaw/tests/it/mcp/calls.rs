//! Calls to an honest server.

use super::server_fixture::{FAKE_CALL, echo_tool};
use crate::gateway::support::TestGateway;
use crate::support::{
    TestAgent, agent_output, is_sleep_running, unique_sleep_seconds, wait_for_end_of_sleep, wait_until,
};

#[test]
fn arguments_are_checked_and_answers_returned() {
    let test_agent = TestAgent::new().with_fake_server("mixed", "").with_approved_server("fake");
    let bad = test_agent.call_tool("fake__echo", r#"{"words": 7}"#);
    assert_eq!(bad.code, 1, "{bad:?}");
    assert_eq!(test_agent.last_receipt()["reason_code"], "bad-arguments");
    let actual = test_agent.call_output("fake__echo", r#"{"words": "x"}"#);
    assert_eq!(
        actual,
        "a text\n[image omitted: image/png, 4 bytes of base64]\n[file:///x]\na file\n[y at file:///y]"
    );
    let receipt = test_agent.last_receipt();
    assert_eq!((receipt["tool"].as_str(), receipt["status"].as_str()), (Some("fake__echo"), Some("allowed")));
    assert_ne!(receipt["sandbox"], "none");
}

#[test]
fn an_error_of_the_server_is_a_failed_call() {
    let test_agent = TestAgent::new().with_fake_server("fails", "").with_approved_server("fake");
    let done = test_agent.call_tool("fake__echo", "{}");
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.err.contains("no such city"), "{}", done.err);
}

#[test]
fn the_risk_is_medium_unless_configured() {
    let supervised = |more: &str| {
        TestAgent::new()
            .with_fake_server("plain", more)
            .with_config_change("autonomy = \"full\"", "autonomy = \"supervised\"")
            .with_approved_server("fake")
    };
    assert_eq!(supervised("").call_tool("fake__echo", "{}").code, 5);
    assert_eq!(supervised("risk = \"low\"").call_tool("fake__echo", "{}").code, 0);
    assert_eq!(supervised("risk = \"high\"").call_tool("fake__echo", "{}").code, 4);
    assert_eq!(
        supervised("risk = \"high\"\nrisks = { echo = \"low\" }").call_tool("fake__echo", "{}").code,
        0
    );
    let none = supervised("tools = [\"other\"]");
    assert_eq!(none.call_tool("fake__echo", "{}").code, 4, "it is not taken");
}

#[test]
fn a_server_stays_for_the_turn_and_one_that_left_is_started_again() {
    // The model thinks long enough for an exiting server to be gone. A call to a server that is about to exit would fail,
    // because nobody knows whether the server received it.
    let call = "[[round]]\ndraft = [\"Let me\", \" see.\"]\npause = \"700ms\"\n[[round.call]]\ntool = \"fake__echo\"\n\
                args = { words = \"x\" }\n\n";
    let script = format!("{call}{call}{call}[[round]]\ntext = \"{{tool_result}}\"\n");
    for (mode, expected) in [("plain", "call 3"), ("leaves", "call 1")] {
        let test_agent = TestAgent::new()
            .with_fake_server(mode, "")
            .with_approved_server("fake")
            .with_config_change("tools_allow = [", "tools_allow = [\"fake__echo\", ")
            .with_mock_fixture(&script);
        let done = test_agent.run(&["agent", "-m", "say it"]);
        assert_eq!(done.code, 0, "{done:?}");
        assert!(done.out.contains(expected), "{mode}: {done:?}");
        assert_eq!(test_agent.receipt_summaries().len(), 3);
    }
}

/// A server is started once for all turns of a gateway, and ends with it; a server that died is started again.
#[test]
fn a_server_stays_from_turn_to_turn_of_a_gateway() {
    let sleep = unique_sleep_seconds();
    let gateway = |mode: &str| {
        let test_agent = TestAgent::new()
            .with_fake_server(mode, "")
            .with_approved_server("fake")
            .with_config_change(
                "port = 8477\ntools_allow = [",
                "port = 8477\ntools_allow = [\"fake__echo\", ",
            )
            .with_mock_fixture(&FAKE_CALL.replace("WORDS", &sleep));
        TestGateway::start_in(test_agent)
    };
    let call = |gateway: &TestGateway| {
        let turn = gateway.post("/chat", &serde_json::json!({ "message": "say it" })).json();
        turn["tool_calls"][0]["output"].as_str().unwrap_or_else(|| panic!("{turn}")).to_owned()
    };
    let mut stays = gateway("company");
    for number in 1..=3 {
        assert!(call(&stays).contains(&format!("call {number}")), "turn {number}");
    }
    // The passing of time is what is tested: every two seconds, the gateway ends servers that may not run on.
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert!(is_sleep_running(&sleep), "it runs between two turns");
    assert!(call(&stays).contains("call 4"));
    // The emergency stop ends the idle server, and the next call starts a new one.
    assert_eq!(stays.post("/estop", &serde_json::json!({})).status, 200);
    wait_for_end_of_sleep(&sleep);
    assert_eq!(stays.delete("/estop").status, 200);
    assert!(call(&stays).contains("call 1"));
    // After a new approval, the tools are compared again.
    let mut tools = echo_tool();
    tools[0]["description"] = "Says it once more.".into();
    stays.test_agent.set_server_tools(&tools);
    assert!(call(&stays).contains("call 2"), "it was compared when it was started");
    assert_eq!(stays.test_agent.run(&["mcp", "approve", "--yes", "fake"]).code, 0);
    assert!(call(&stays).contains("call 1"));
    assert_eq!(stays.terminate(), 0);
    assert!(!is_sleep_running(&sleep), "it ends with the gateway");

    let leaves = gateway("leaves");
    for _ in 0..2 {
        assert!(call(&leaves).contains("call 1"));
        wait_until("the server has ended", || !is_running(&leaves.test_agent.path().join("server/fake.py")));
    }
    assert_eq!(leaves.test_agent.receipt_summaries().len(), 2);
}

/// Returns whether any process was started with this file.
fn is_running(file: &std::path::Path) -> bool {
    let file = file.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines =
        processes.filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok());
    lines.any(|line| line.split('\0').any(|word| word == file))
}

#[test]
fn a_server_reaches_only_what_the_configuration_allows() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let check = |more: &str, expected: &[&str]| {
        let test_agent = TestAgent::new().with_fake_server("reach", more);
        test_agent
            .set_server_tools(&serde_json::json!([{ "name": "look", "inputSchema": { "type": "object" } }]));
        let test_agent = test_agent.with_approved_server("fake");
        std::fs::write(test_agent.path().join("diary"), "private").unwrap();
        let paths = [
            test_agent.path().join("diary"),
            test_agent.home().join("config.toml"),
            test_agent.home().join("mcp/fake.json"),
            "/etc/shells".into(),
        ];
        let arguments =
            serde_json::json!({ "paths": paths, "workspace": test_agent.workspace(), "port": port });
        let mut command =
            test_agent.command(&["tool", "run", "fake__look", "--json", &arguments.to_string()]);
        let actual = agent_output(command.env("SHARED", "1").env("UNSHARED", "1").output().unwrap());
        assert_eq!(
            (actual.code, actual.out.trim()),
            (0, serde_json::json!(expected).to_string().replace(',', ", ").as_str()),
            "{more}: {actual:?}"
        );
    };
    check("", &[]);
    check("workspace = \"read\"", &[]);
    check("workspace = \"write\"", &["wrote"]);
    check("network = true\nenv = [\"SHARED\"]", &["connected", "SHARED"]);
}

#[test]
fn a_folder_that_is_opened_stays_closed_where_a_rule_closes_it() {
    let test_agent = TestAgent::new().with_fake_server("reach", "");
    test_agent
        .set_server_tools(&serde_json::json!([{ "name": "look", "inputSchema": { "type": "object" } }]));
    let folder = test_agent.path().join("server");
    let test_agent = test_agent
        .with_config_change(&format!("programs = [\"{}\"]", folder.display()), "programs = [\"~\"]")
        .with_approved_server("fake");
    std::fs::create_dir(test_agent.path().join(".ssh")).unwrap();
    for secret in ["diary", ".ssh/id"] {
        std::fs::write(test_agent.path().join(secret), "private").unwrap();
    }
    let paths = ["diary", ".ssh/id", ".collieclaw/config.toml"].map(|path| test_agent.path().join(path));
    let arguments = serde_json::json!({ "paths": paths, "workspace": "/nowhere", "port": 1 }).to_string();
    let expected = serde_json::json!([test_agent.path().join("diary")]).to_string();
    assert_eq!(test_agent.call_output("fake__look", &arguments), expected);
}

/// C7.4: files that the agent writes into its workspace never become the code of an approved server.
#[test]
fn code_in_the_workspace_never_becomes_the_servers() {
    let test_agent = TestAgent::new().with_fake_server("fails", "");
    let folder = test_agent.path().join("server");
    let settings = format!(
        "command = \"python3\"\nargs = [\"-m\", \"fake\", \"fails\", \"{folder}/tools.json\"]\nenv = [\"PYTHONPATH\"]\n\
         programs = [\"{folder}\"]\nworkspace = \"read\"",
        folder = folder.display()
    );
    let test_agent = test_agent.with_server_settings("module", &settings);
    let run = |arguments: &[&str]| {
        agent_output(test_agent.command(arguments).env("PYTHONPATH", &folder).output().unwrap())
    };
    let approved = run(&["mcp", "approve", "--yes", "module"]);
    assert_eq!(approved.code, 0, "{approved:?}");
    std::fs::write(test_agent.workspace().join("fake.py"), "import sys\nsys.exit('code of the agent')\n")
        .unwrap();
    let called = run(&["tool", "run", "module__echo", "--json", "{}"]);
    assert!(called.err.contains("no such city") && !called.err.contains("code of the agent"), "{called:?}");
}

/// C3.2: a server that repeats its key doesn't get it shown.
#[test]
fn a_key_that_a_server_repeats_is_hidden() {
    let test_agent = TestAgent::new().with_fake_server("environment", "env = [\"FAKE_API_KEY\"]");
    let run = |arguments: &[&str]| {
        agent_output(test_agent.command(arguments).env("FAKE_API_KEY", "sk-canary-fake").output().unwrap())
    };
    assert_eq!(run(&["mcp", "approve", "--yes", "fake"]).code, 0);
    let called = run(&["tool", "run", "fake__echo", "--json", "{}"]);
    assert!(called.out.contains("the key is ***") && !format!("{called:?}").contains("canary"), "{called:?}");
}
