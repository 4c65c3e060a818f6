//! Start, shutdown and crash of the gateway: no half turn, no call without a receipt (C8.4, C10, C11).

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::support::TestGateway;
use crate::support::{ChildGuard, TestAgent, wait_for_exit, wait_until};

const SLEEPS: &str = "[[round]]\n[[round.call]]\ntool = \"shell\"\nargs = { command = \"sleep 28\" }\n[[round]]\ntext = \"so\"\n";

const WRITES: &str = "[[round]]\n[[round.call]]\ntool = \"file_write\"\nargs = { path = \"x\", content = \"\" }\n[[round]]\ntext = \"so\"\n";

fn sleeping_agent() -> TestAgent {
    // `sleep` is not in the list of allowed commands; `full` runs it.
    TestAgent::new()
        .with_full_autonomy()
        .with_config_change("shell_timeout = \"15s\"", "shell_timeout = \"29s\"")
        .with_mock_fixture(SLEEPS)
}

#[test]
fn a_gateway_that_is_killed_in_the_middle_of_a_call_leaves_a_receipt_and_no_half_turn() {
    let mut gateway = TestGateway::start_in(sleeping_agent());
    let mut events = gateway.stream_chat(&json!({ "message": "wait", "conversation_id": "mine" }));
    assert_eq!(events.wait_for("tool")["phase"], "begins");
    gateway.child.kill().unwrap();
    wait_for_exit(&mut gateway.child);
    assert_eq!(gateway.test_agent.receipts().len(), 0);
    gateway.restart();
    assert_eq!(gateway.test_agent.receipt_summaries(), [["shell", "failed", "interrupted"]]);
    assert_eq!(gateway.test_agent.run(&["memory", "list", "--output", "json"]).json(), json!([]));
    assert_eq!(gateway.get("/receipts").json()["chain"]["valid"], true);
    assert_eq!(gateway.get("/status").json()["turns"]["open"], 0);
}

#[test]
fn a_shutdown_cancels_open_turns_and_records_them_as_cancelled() {
    let mut gateway = TestGateway::start_in(sleeping_agent());
    let mut events = gateway.stream_chat(&json!({ "message": "wait", "conversation_id": "mine" }));
    assert_eq!(events.wait_for("tool")["phase"], "begins");
    assert_eq!(gateway.terminate(), 0);
    assert_eq!(events.wait_for("error")["code"], "cancelled");
    assert_eq!(gateway.test_agent.receipt_summaries(), [["shell", "failed", "cancelled"]]);
    let turns = gateway.test_agent.run(&["memory", "show", "mine", "--output", "json"]).json();
    assert!(
        turns.as_array().unwrap().last().unwrap()["content"].as_str().unwrap().contains("cancelled"),
        "{turns}"
    );
}

#[test]
fn two_gateways_share_a_home_but_not_a_port() {
    let first = TestGateway::start_in(
        TestAgent::new()
            .with_mock_fixture("[[round]]\n[[round.call]]\ntool = \"time\"\n[[round]]\ntext = \"so\"\n"),
    );
    let port = first.port.to_string();
    let same = first.test_agent.run(&["gateway", "--port", &port]);
    assert_eq!(same.code, 1, "{same:?}");
    assert!(same.err.contains("another program has the port"), "{same:?}");

    let second = first.test_agent.command(&["gateway", "--port", "0"]).spawn().unwrap();
    let mut second = ChildGuard(second);
    let mut line = String::new();
    let out = second.0.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
    let address = line.trim().rsplit(' ').next().unwrap().to_owned();
    let say = |address: &str| {
        let request = super::support::http_agent()
            .post(format!("{address}chat"))
            .header("Authorization", first.bearer());
        let body = json!({ "message": "hi" }).to_string();
        super::support::read_reply(request.header("Content-Type", "application/json").send(body)).status
    };
    std::thread::scope(|scope| {
        for address in [first.url("/"), address] {
            scope.spawn(move || assert_eq!([say(&address), say(&address), say(&address)], [200; 3]));
        }
    });
    assert_eq!(first.test_agent.receipts().len(), 6);
    assert_eq!(first.test_agent.run(&["receipt", "verify"]).code, 0);
}

#[test]
fn the_printed_link_leads_to_the_running_gateway_or_is_refused() {
    let test_agent = TestAgent::new();
    let (token, note) = (test_agent.home().join("gateway.token"), test_agent.home().join("gateway.run"));
    let refused = |test_agent: &TestAgent| {
        let refused = test_agent.run(&["gateway", "--link"]);
        assert_eq!((refused.code, &*refused.out), (2, ""), "{refused:?}");
        assert!(refused.err.contains("no gateway of this home is running"), "{refused:?}");
        assert!(refused.err.contains("start one with `collieclaw gateway`"), "{refused:?}");
    };
    refused(&test_agent);
    assert!(!token.exists(), "a token that nobody takes");

    // The port differs from the configured one.
    let mut gateway = TestGateway::start_in(test_agent);
    let link = gateway.test_agent.run(&["gateway", "--link"]);
    let expected = format!("{}#token={}", gateway.url("/"), gateway.token);
    assert_eq!((link.code, link.out.trim()), (0, &*expected), "{link:?}");
    assert_eq!(note.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let kept = std::fs::read(&token).unwrap();
    std::fs::remove_file(&token).unwrap();
    let gone = gateway.test_agent.run(&["gateway", "--link"]);
    assert_eq!((gone.code, &*gone.out, token.exists()), (1, "", false), "{gone:?}");
    std::fs::write(&token, kept).unwrap();
    std::fs::set_permissions(&token, PermissionsExt::from_mode(0o600)).unwrap();

    gateway.child.kill().unwrap();
    wait_for_exit(&mut gateway.child);
    // The port is in use again, by us or by another program.
    let _other = std::net::TcpListener::bind(("127.0.0.1", gateway.port));
    assert!(note.exists());
    refused(&gateway.test_agent);
    gateway.restart();
    assert_eq!(gateway.test_agent.run(&["gateway", "--link"]).code, 0);
    assert_eq!(gateway.terminate(), 0);
    assert!(!note.exists());
    refused(&gateway.test_agent);
}

#[test]
fn it_starts_for_this_machine_alone_with_a_token_of_its_owner_alone() {
    let test_agent = TestAgent::new();
    for address in ["0.0.0.0", "192.168.1.1", "::", "localhost", "127.0.0.2"] {
        let config = std::fs::read_to_string(test_agent.home().join("config.toml")).unwrap();
        let wrong = config.replace("address = \"127.0.0.1\"", &format!("address = \"{address}\""));
        std::fs::write(test_agent.home().join("config.toml"), wrong).unwrap();
        let refused = test_agent.run(&["gateway", "--port", "0"]);
        assert_eq!(refused.code, 3, "{address}: {refused:?}");
        assert!(refused.err.contains("on this machine only"), "{refused:?}");
        std::fs::write(test_agent.home().join("config.toml"), config).unwrap();
    }
    let token = test_agent.home().join("gateway.token");
    std::fs::write(&token, "a".repeat(64)).unwrap();
    std::fs::set_permissions(&token, PermissionsExt::from_mode(0o644)).unwrap();
    let refused = test_agent.run(&["gateway", "--port", "0"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.err.contains("can be read or changed by others"), "{refused:?}");

    let off = TestAgent::new().with_config_change("enabled = true\naddress", "enabled = false\naddress");
    assert_eq!(off.run(&["gateway", "--port", "0"]).code, 3);
}

/// An edited configuration applies from the next turn on, and an invalid one changes nothing.
#[test]
fn a_configuration_that_was_changed_is_taken_when_it_is_valid_and_settled() {
    let gateway = TestGateway::start_in(TestAgent::new().with_mock_fixture(WRITES));
    let path = gateway.test_agent.home().join("config.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    let put = |text: &str, age: u64| {
        std::fs::write(&path, text).unwrap();
        let then = std::time::SystemTime::now() - std::time::Duration::from_secs(age);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(then).unwrap();
    };
    let state = || {
        let status = gateway.get("/status").json();
        (
            status["autonomy"].as_str().unwrap().to_owned(),
            status["config_changed"] == true,
            status["config_fault"].clone(),
        )
    };
    let outcome =
        || gateway.post("/chat", &json!({ "message": "write" })).json()["tool_calls"][0]["outcome"].clone();
    assert_eq!(state(), ("supervised".to_owned(), false, json!(null)));

    let readonly = config.replace("autonomy = \"supervised\"", "autonomy = \"readonly\"");
    put(&readonly.replace("readonly", "godmode"), 60);
    let (level, changed, fault) = state();
    assert_eq!((&*level, changed), ("supervised", true));
    assert!(
        fault.as_str().unwrap().contains("godmode") && fault.as_str().unwrap().contains("help: "),
        "{fault}"
    );
    put(&readonly.replace("~/collieclaw-workspace", "~/nowhere"), 40);
    let (level, changed, fault) = state();
    assert_eq!((&*level, changed), ("supervised", true));
    assert!(fault.as_str().unwrap().contains("nowhere"), "{fault}");
    put(&readonly, 30);
    assert_eq!(state(), ("readonly".to_owned(), false, json!(null)));
    assert_eq!(outcome(), "denied");

    let full = config.replace("autonomy = \"supervised\"", "autonomy = \"full\"");
    put(&full.replace("tools_allow = [", "tools_allow = [\"file_write\", "), 20);
    assert_eq!(outcome(), "done");
    let tools = gateway.get("/tools").json();
    let write = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "file_write").unwrap();
    assert_eq!(write["offered"], true);

    // Server settings need a restart, and the status says so.
    put(&config.replace("max_chats = 4", "max_chats = 5"), 10);
    assert_eq!(state(), ("supervised".to_owned(), true, json!(null)));
    assert_eq!(gateway.get("/status").json()["turns"]["most"], 4);
    // A file that was written just now may be incomplete, so it is not loaded yet; a busy machine may be past that
    // moment.
    put(&readonly, 0);
    let (level, changed, fault) = state();
    assert_eq!((changed, fault), (level == "supervised", json!(null)));
    wait_until("the last policy is in force", || state() == ("readonly".to_owned(), false, json!(null)));
}
