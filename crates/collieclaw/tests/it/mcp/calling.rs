//! Calls of a server that means well.

use super::house::{FAKE_CALL, echo};
use crate::gateway::support::Gateway;
use crate::support::{House, done, own_sleep, sleeps};

#[test]
fn arguments_are_checked_and_answers_told() {
    let house = House::new().with_server("mixed", "").approved("fake");
    let bad = house.call("fake__echo", r#"{"words": 7}"#);
    assert_eq!(bad.code, 1, "{bad:?}");
    assert_eq!(house.last_receipt()["reason_code"], "bad-arguments");
    let told = house.output("fake__echo", r#"{"words": "x"}"#);
    assert_eq!(
        told,
        "a text\n[image, image/png, 4 letters of base64: not shown]\n[file:///x]\na file\n[y at file:///y]"
    );
    let receipt = house.last_receipt();
    assert_eq!((receipt["tool"].as_str(), receipt["status"].as_str()), (Some("fake__echo"), Some("allowed")));
    assert_ne!(receipt["sandbox"], "none");
}

#[test]
fn what_did_not_work_at_the_server_is_a_failed_call() {
    let house = House::new().with_server("fails", "").approved("fake");
    let done = house.call("fake__echo", "{}");
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.err.contains("no such city"), "{}", done.err);
}

#[test]
fn risk_is_what_the_configuration_says_medium_by_default() {
    let supervised = |more: &str| {
        House::new()
            .with_server("plain", more)
            .with("autonomy = \"full\"", "autonomy = \"supervised\"")
            .approved("fake")
    };
    assert_eq!(supervised("").call("fake__echo", "{}").code, 5);
    assert_eq!(supervised("risk = \"low\"").call("fake__echo", "{}").code, 0);
    assert_eq!(supervised("risk = \"high\"").call("fake__echo", "{}").code, 4);
    assert_eq!(supervised("risk = \"high\"\nrisks = { echo = \"low\" }").call("fake__echo", "{}").code, 0);
    let none = supervised("tools = [\"other\"]");
    assert_eq!(none.call("fake__echo", "{}").code, 4, "it is not taken");
}

#[test]
fn a_server_stays_for_the_turn_and_one_that_left_is_started_again() {
    // The model thinks long enough for a server that leaves to be gone: whether one that is about to go has heard a call
    // nobody knows, so that call fails.
    let call = "[[round]]\ndraft = [\"Let me\", \" see.\"]\npause = \"700ms\"\n[[round.call]]\ntool = \"fake__echo\"\n\
                args = { words = \"x\" }\n\n";
    let script = format!("{call}{call}{call}[[round]]\ntext = \"{{tool_result}}\"\n");
    for (mode, expected) in [("plain", "call 3"), ("leaves", "call 1")] {
        let house = House::new()
            .with_server(mode, "")
            .approved("fake")
            .with("tools_allow = [", "tools_allow = [\"fake__echo\", ")
            .says(&script);
        let done = house.run(&["agent", "-m", "say it"]);
        assert_eq!(done.code, 0, "{done:?}");
        assert!(done.out.contains(expected), "{mode}: {done:?}");
        assert_eq!(house.receipt_words().len(), 3);
    }
}

/// A server is started once for all turns of a gateway, and ends with it; one that died is started again.
#[test]
fn a_server_stays_from_turn_to_turn_of_a_gateway() {
    let sleep = own_sleep(7);
    let gateway = |mode: &str| {
        let house = House::new()
            .with_server(mode, "")
            .approved("fake")
            .with("port = 8477\ntools_allow = [", "port = 8477\ntools_allow = [\"fake__echo\", ")
            .says(&FAKE_CALL.replace("WORDS", &sleep));
        Gateway::of(house)
    };
    let call = |gateway: &Gateway| {
        let turn = gateway.post("/chat", &serde_json::json!({ "message": "say it" })).json();
        turn["tool_calls"][0]["output"].as_str().unwrap_or_else(|| panic!("{turn}")).to_owned()
    };
    let mut stays = gateway("company");
    for number in 1..=3 {
        assert!(call(&stays).contains(&format!("call {number}")), "turn {number}");
    }
    // Long enough for somebody to look whether it may.
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert!(sleeps(&sleep), "it runs between two turns");
    assert!(call(&stays).contains("call 4"));
    // The stop ends it, though nobody asks it anything, and afterwards it is another.
    assert_eq!(stays.post("/estop", &serde_json::json!({})).status, 200);
    stays.until("the server is ended", |_| !sleeps(&sleep));
    assert_eq!(stays.delete("/estop").status, 200);
    assert!(call(&stays).contains("call 1"));
    // What somebody approves anew is compared anew.
    let mut tools = echo();
    tools[0]["description"] = "Says it once more.".into();
    stays.house.lists(&tools);
    assert!(call(&stays).contains("call 2"), "it was compared when it was started");
    assert_eq!(stays.house.run(&["mcp", "approve", "--yes", "fake"]).code, 0);
    assert!(call(&stays).contains("call 1"));
    assert_eq!(stays.end(), 0);
    assert!(!sleeps(&sleep), "it ends with the gateway");

    let leaves = gateway("leaves");
    for _ in 0..2 {
        assert!(call(&leaves).contains("call 1"));
        leaves.until("the server has left", |gateway| !runs(&gateway.house.path().join("server/fake.py")));
    }
    assert_eq!(leaves.house.receipt_words().len(), 2);
}

/// Whether a process anywhere was started with this file.
fn runs(file: &std::path::Path) -> bool {
    let file = file.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines =
        processes.filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok());
    lines.any(|line| line.split('\0').any(|word| word == file))
}

#[test]
fn it_reaches_what_the_configuration_opens_and_nothing_else() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let check = |more: &str, expected: &[&str]| {
        let house = House::new().with_server("reach", more);
        house.lists(&serde_json::json!([{ "name": "look", "inputSchema": { "type": "object" } }]));
        let house = house.approved("fake");
        std::fs::write(house.path().join("diary"), "private").unwrap();
        let paths = [
            house.path().join("diary"),
            house.home().join("config.toml"),
            house.home().join("mcp/fake.json"),
            "/etc/passwd".into(),
        ];
        let arguments = serde_json::json!({ "paths": paths, "workspace": house.workspace(), "port": port });
        let mut command = house.command(&["tool", "run", "fake__look", "--json", &arguments.to_string()]);
        let told = done(command.env("SHARED", "1").env("UNSHARED", "1").output().unwrap());
        assert_eq!(
            (told.code, told.out.trim()),
            (0, serde_json::json!(expected).to_string().replace(',', ", ").as_str()),
            "{more}: {told:?}"
        );
    };
    check("", &[]);
    check("workspace = \"read\"", &[]);
    check("workspace = \"write\"", &["wrote"]);
    check("network = true\nenv = [\"SHARED\"]", &["connected", "SHARED"]);
}

#[test]
fn a_folder_that_is_opened_stays_closed_where_a_rule_closes_it() {
    let house = House::new().with_server("reach", "");
    house.lists(&serde_json::json!([{ "name": "look", "inputSchema": { "type": "object" } }]));
    let folder = house.path().join("server");
    let house =
        house.with(&format!("programs = [\"{}\"]", folder.display()), "programs = [\"~\"]").approved("fake");
    std::fs::create_dir(house.path().join(".ssh")).unwrap();
    for secret in ["diary", ".ssh/id"] {
        std::fs::write(house.path().join(secret), "private").unwrap();
    }
    let paths = ["diary", ".ssh/id", ".collieclaw/config.toml"].map(|path| house.path().join(path));
    let arguments = serde_json::json!({ "paths": paths, "workspace": "/nowhere", "port": 1 }).to_string();
    let expected = serde_json::json!([house.path().join("diary")]).to_string();
    assert_eq!(house.output("fake__look", &arguments), expected);
}

/// C7.4: what the agent writes into its workspace is never the code of a server that was approved.
#[test]
fn code_in_the_workspace_never_becomes_the_servers() {
    let house = House::new().with_server("fails", "");
    let folder = house.path().join("server");
    let settings = format!(
        "command = \"python3\"\nargs = [\"-m\", \"fake\", \"fails\", \"{folder}/tools.json\"]\nenv = [\"PYTHONPATH\"]\n\
         programs = [\"{folder}\"]\nworkspace = \"read\"",
        folder = folder.display()
    );
    let house = house.configured("module", &settings);
    let run =
        |arguments: &[&str]| done(house.command(arguments).env("PYTHONPATH", &folder).output().unwrap());
    let approved = run(&["mcp", "approve", "--yes", "module"]);
    assert_eq!(approved.code, 0, "{approved:?}");
    std::fs::write(house.workspace().join("fake.py"), "import sys\nsys.exit('code of the agent')\n").unwrap();
    let called = run(&["tool", "run", "module__echo", "--json", "{}"]);
    assert!(called.err.contains("no such city") && !called.err.contains("code of the agent"), "{called:?}");
}

/// C3.2: a server that repeats its key does not get it shown.
#[test]
fn a_key_that_a_server_repeats_is_hidden() {
    let house = House::new().with_server("environment", "env = [\"FAKE_API_KEY\"]");
    let run = |arguments: &[&str]| {
        done(house.command(arguments).env("FAKE_API_KEY", "sk-canary-fake").output().unwrap())
    };
    assert_eq!(run(&["mcp", "approve", "--yes", "fake"]).code, 0);
    let called = run(&["tool", "run", "fake__echo", "--json", "{}"]);
    assert!(called.out.contains("the key is ***") && !format!("{called:?}").contains("canary"), "{called:?}");
}
