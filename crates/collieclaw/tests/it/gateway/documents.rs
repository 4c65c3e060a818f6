//! The examples of the documentation, run as they stand there.

use std::process::Command;

use super::support::Gateway;
use crate::docs::{blocks, document, words};
use crate::support::{House, done};

#[test]
fn the_examples_of_the_guide_work() {
    let gateway = Gateway::new();
    std::fs::write(gateway.house.workspace().join("notes.txt"), "").unwrap();
    let script = blocks(&document("docs/collieclaw-gateway.md"), "sh gateway").concat();
    let script = script.replace("127.0.0.1:8477", &format!("127.0.0.1:{}", gateway.port));
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", &script])
        .env("HOME", gateway.house.path())
        .current_dir(gateway.house.path());
    let done = done(bash.output().expect("bash, curl and jq are needed: run `cargo xtask setup`"));
    assert_eq!(done.code, 0, "{done:?}");
    for shown in [
        "{\"ok\":true}",
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
    assert!(done.out.lines().any(|line| line == "done"), "the call that was approved: {}", done.out);
}

#[test]
fn the_commands_of_the_guides_exist() {
    let house = House::empty();
    let mut seen = 0;
    for guide in ["docs/collieclaw-gateway.md", "docs/collieclaw-service.md"] {
        for line in blocks(&document(guide), "console").iter().flat_map(|block| block.lines()) {
            let line = line.strip_prefix("$ collieclaw ").unwrap().split(" #").next().unwrap();
            let mut arguments = words(line);
            arguments.push("--help".to_owned());
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            assert_eq!(house.run(&arguments).code, 0, "{line}");
            seen += 1;
        }
    }
    assert_eq!(seen, 8);
}
