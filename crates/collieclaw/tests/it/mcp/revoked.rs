//! A server that a gateway keeps between two turns ends with what it was kept under, also if no turn comes any more.

use super::house::FAKE_CALL;
use crate::gateway::support::Gateway;
use crate::support::{House, own_sleep, sleeps};

/// After a turn in which a server has begun a `sleep` of this length.
fn after_a_turn(more: &str, sleep: &str) -> Gateway {
    let house = House::new()
        .with_server("company", more)
        .approved("fake")
        .with("port = 8477\ntools_allow = [", "port = 8477\ntools_allow = [\"fake__echo\", ")
        .says(&FAKE_CALL.replace("WORDS", sleep));
    let gateway = Gateway::of(house);
    let turn = gateway.post("/chat", &serde_json::json!({ "message": "say it" })).json();
    let told = turn["tool_calls"][0]["output"].as_str().unwrap_or_else(|| panic!("{turn}"));
    assert!(told.contains("call 1"), "{turn}");
    gateway
}

fn rewrite(house: &House, change: impl FnOnce(String) -> String) {
    let config = house.home().join("config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let changed = change(text.clone());
    assert_ne!(text, changed);
    std::fs::write(&config, changed).unwrap();
}

type Change<'c> = &'c dyn Fn(&House);

/// C7.4: what was taken back runs no more.
#[test]
fn a_server_ends_with_its_approval_and_with_its_rules() {
    let deleted = |text: String| text.split("[mcp.servers.fake]").next().unwrap().to_owned();
    let cases: [(&str, Change<'_>); 5] = [
        ("removed", &|house| assert_eq!(house.run(&["mcp", "remove", "fake"]).code, 0)),
        ("deleted", &|house| rewrite(house, deleted)),
        ("another risk", &|house| rewrite(house, |text| text.replace("risk = \"low\"", "risk = \"high\""))),
        ("another level", &|house| {
            rewrite(house, |text| text.replace("autonomy = \"full\"", "autonomy = \"readonly\""));
        }),
        ("not to be read", &|house| rewrite(house, |text| text + "\n[[\n")),
    ];
    for (number, (what, change)) in (1..).zip(cases) {
        let sleep = own_sleep(number);
        let gateway = after_a_turn("risk = \"low\"", &sleep);
        assert!(sleeps(&sleep), "{what}: it runs between two turns");
        change(&gateway.house);
        gateway.until(what, |_| !sleeps(&sleep));
    }
}

/// What may write in the workspace does so while a call has its receipt, and not between two turns.
#[test]
fn a_server_that_may_write_is_not_kept() {
    let sleep = own_sleep(6);
    let gateway = after_a_turn("workspace = \"write\"", &sleep);
    gateway.until("it ends with its turn", |_| !sleeps(&sleep));
}
