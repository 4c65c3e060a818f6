//! Runs the examples of the gateway documentation.

use std::process::Command;

use super::support::TestGateway;
use crate::docs::{blocks, document};
use crate::support::agent_output;

#[test]
fn the_examples_of_the_guide_work() {
    let gateway = TestGateway::new();
    std::fs::write(gateway.test_agent.workspace().join("notes.txt"), "").unwrap();
    let script = blocks(&document("docs/collieclaw-gateway.md"), "sh gateway").concat();
    let script = script.replace("127.0.0.1:8477", &format!("127.0.0.1:{}", gateway.port));
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", &script])
        .env("HOME", gateway.test_agent.path())
        .current_dir(gateway.test_agent.path());
    let done = agent_output(bash.output().expect("bash, curl and jq are needed: run `cargo xtask setup`"));
    assert_eq!(done.code, 0, "{done:?}");
    for shown in [
        "{\"ok\":true}",
        "<title>CollieClaw</title>",
        "/approvals/{id}",
        "shell again: done",
        "memory_search",
        "file_list: done, receipt-",
        "event: tool",
        "event: done",
        "shell (medium): {\"command\":\"ls\"}",
        "\"approved\":true",
        "\"valid\": true",
        "{\"active\":true,\"was_active\":false}",
        "collieclaw_receipt_chain_valid 1",
    ] {
        assert!(done.out.contains(shown), "{shown} in {}", done.out);
    }
    let script = blocks(&document("docs/collieclaw-gateway.md"), "sh gateway").concat();
    let described = gateway.get("/openapi.json").json();
    // A browser loads the other files of the page.
    let of_the_page = ["/page.css", "/page.js"];
    let paths = described["paths"].as_object().unwrap().keys();
    for path in paths.filter(|path| !of_the_page.contains(&path.as_str())) {
        let path = path.split('{').next().unwrap();
        assert!(script.contains(&format!("127.0.0.1:8477{path}")), "no example asks for {path}");
    }
    assert!(done.out.lines().any(|line| line == "done"), "the call that was approved: {}", done.out);
}
