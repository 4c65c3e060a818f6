//! The page in a real browser, used by mouse and keyboard, on a screen and on a phone.

use std::path::PathBuf;
use std::process::Command;

use super::support::TestGateway;
use crate::support::{TestAgent, agent_output};

/// The script of every turn. The last text tries to inject markup.
const NOTE: &str = r#"
[[round]]
draft = ["I look around first, ", "then I write the note."]
[[round.call]]
tool = "file_list"
args = { path = "." }
[[round.call]]
tool = "file_write"
args = { path = "note.txt", content = "Milk, bread, apples.\nRight to left: \u202e and back." }
[[round]]
draft = ["The note is written. ", "<img src=x onerror=alert(1)><script>alert(2)</script>"]
"#;

/// Returns where `cargo xtask setup` installs the browser driver: for all users, or for one.
fn playwright_folder() -> PathBuf {
    let own = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local"));
    let places = own.into_iter().chain([PathBuf::from("/usr/local")]);
    let mut folders = places.map(|place| place.join("lib/collieclaw-peers/node_modules"));
    folders
        .find(|folder| folder.join("playwright-core").exists() && folder.join(".bin/node").exists())
        .expect("the test needs what drives a browser: run `cargo xtask setup`")
}

fn script_path() -> PathBuf {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    PathBuf::from(root).join("tests/it/gateway/page.mjs")
}

#[test]
fn a_person_chats_approves_denies_stops_and_sees_receipts_and_no_other_site_can() {
    let gateway = TestGateway::start_in(TestAgent::new().with_mock_fixture(NOTE));
    std::fs::write(gateway.test_agent.workspace().join("shopping.md"), "apples").unwrap();
    let installed = playwright_folder();
    let link = format!("{}#token={}", gateway.url("/"), gateway.token);
    // `COLLIECLAW_PICTURE=docs/images/collieclaw-gateway.png` updates the picture in the documentation.
    let picture = std::env::var("COLLIECLAW_PICTURE").unwrap_or_default();
    let output = Command::new(installed.join(".bin/node"))
        .arg(script_path())
        .arg(&installed)
        .args([&link, &picture])
        .output()
        .unwrap();
    let done = agent_output(output);
    assert_eq!((done.code, done.out.trim()), (0, "all well"), "{done:?}");
    assert_eq!(
        std::fs::read_to_string(gateway.test_agent.workspace().join("note.txt")).unwrap(),
        "Milk, bread, apples.\nRight to left: \u{202e} and back."
    );
}
