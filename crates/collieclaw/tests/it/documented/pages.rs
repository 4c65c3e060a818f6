//! One test for each page, with the files and servers that it needs.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::time::Duration;

use serde_json::json;

use super::block::{blocks, parse_commands};
use super::page::DocPage;
use crate::docs::document;
use crate::http_server::{ServerAction, TestServer, http_reply};
use crate::support::TestAgent;

/// Every page about the agent, and the test that runs it.
const PAGES: [(&str, fn()); 14] = [
    ("collieclaw.md", the_guide_is_right),
    ("collieclaw-config.md", the_configurations_are_valid),
    ("collieclaw-fixtures.md", the_fixtures_play),
    ("collieclaw-gateway.md", the_gateway_listens),
    ("collieclaw-mcp.md", the_servers_and_clients_of_mcp_work),
    ("collieclaw-memory.md", the_memory_is_searched_and_cleared),
    ("collieclaw-plugins.md", the_plugin_counts_words),
    ("collieclaw-providers.md", the_providers_answer),
    ("collieclaw-receipts.md", the_receipts_are_checked),
    ("collieclaw-security.md", the_approvals_are_kept_and_revoked),
    ("collieclaw-service.md", the_service_says_that_there_is_no_manager),
    ("collieclaw-sop.md", the_procedure_is_carried_out),
    ("collieclaw-tools.md", the_documented_tools_work),
    ("collieclaw-workspaces.md", the_folders_and_programs_are_allowed),
];

fn with_notes(test_agent: TestAgent) -> TestAgent {
    fs::write(test_agent.workspace().join("notes.txt"), "buy hay today\n").unwrap();
    test_agent
}

/// Returns a port that nobody listens on at the moment.
fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

fn json_reply(body: &serde_json::Value) -> ServerAction {
    ServerAction::Send(http_reply("200 OK", "application/json", &body.to_string()))
}

/// Runs a model server that streams this answer.
fn streamed_reply(bits: &[&str]) -> ServerAction {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_owned();
    let bit = |text: &&str| format!("data: {}\n\n", json!({ "choices": [{ "delta": { "content": text } }] }));
    let end =
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n".to_owned();
    let pieces = std::iter::once(head).chain(bits.iter().map(bit)).chain([end]);
    ServerAction::Pieces(pieces.map(String::into_bytes).collect(), Duration::from_millis(20))
}

#[test]
fn the_tour_matches_the_documentation() {
    let test_agent = TestAgent::empty();
    assert_eq!(test_agent.run(&["onboard", "--allow-writing"]).code, 0);
    let test_agent = DocPage::new(test_agent).run("../README.md");
    assert_eq!(fs::read_to_string(test_agent.workspace().join("notes.txt")).unwrap(), "buy hay");
}

#[test]
fn the_guide_is_right() {
    DocPage::new(TestAgent::empty()).run("collieclaw.md");
}

#[test]
fn the_configurations_are_valid() {
    let test_agent = TestAgent::new();
    // The workspace that one of the configurations names.
    fs::create_dir_all(test_agent.path().join("documents/taxes")).unwrap();
    DocPage::new(test_agent).run("collieclaw-config.md");
}

#[test]
fn the_fixtures_play() {
    DocPage::new(with_notes(TestAgent::new())).run("collieclaw-fixtures.md");
}

#[test]
fn the_gateway_listens() {
    let port = free_port();
    let test_agent = TestAgent::new().with_config_change("port = 8477", &format!("port = {port}"));
    DocPage::new(test_agent).with("8477", &port).run("collieclaw-gateway.md");
}

#[test]
fn the_servers_and_clients_of_mcp_work() {
    let test_agent = with_notes(TestAgent::new());
    // `cargo xtask setup` has already installed what the page installs.
    symlink(crate::mcp::installed_peers().join("python"), test_agent.path().join("mcp")).unwrap();
    let test_agent = DocPage::new(test_agent)
        .with("8765", &free_port())
        .with("8766", &free_port())
        .run("collieclaw-mcp.md");
    // The same client, for a home in another place.
    let elsewhere = test_agent.path().join("elsewhere");
    fs::rename(test_agent.home(), &elsewhere).unwrap();
    let mut client = std::process::Command::new(test_agent.path().join("mcp/bin/python3"));
    client.arg(test_agent.path().join("client.py")).env_clear().env("HOME", test_agent.path());
    client.env("COLLIECLAW_HOME", elsewhere).env("PATH", test_agent.path().join("bin"));
    let actual = crate::support::agent_output(client.output().unwrap());
    assert!(actual.code == 0 && actual.out.contains("buy hay today"), "{actual:?}");
}

#[test]
fn the_memory_is_searched_and_cleared() {
    DocPage::new(TestAgent::new()).run("collieclaw-memory.md");
}

#[test]
fn the_plugin_counts_words() {
    DocPage::new(with_notes(TestAgent::new())).run("collieclaw-plugins.md");
}

#[test]
fn the_providers_answer() {
    let test = json_reply(&json!({ "model": "smol", "choices": [{ "message": { "content": "ready" } }] }));
    let small = TestServer::start(vec![
        test,
        streamed_reply(&["Grass, mostly, ", "and hay in winter."]),
        streamed_reply(&["I am the small one."]),
    ]);
    let large = TestServer::start(vec![streamed_reply(&["I am the large one."])]);
    DocPage::new(TestAgent::new())
        .with("localhost:8080", &format!("localhost:{}", small.port()))
        .with("localhost:8081", &format!("localhost:{}", large.port()))
        .with("localhost:8082", &format!("localhost:{}", free_port()))
        .run("collieclaw-providers.md");
}

#[test]
fn the_receipts_are_checked() {
    DocPage::new(TestAgent::new()).run("collieclaw-receipts.md");
}

#[test]
fn the_approvals_are_kept_and_revoked() {
    DocPage::new(with_notes(TestAgent::new())).run("collieclaw-security.md");
}

#[test]
fn the_service_says_that_there_is_no_manager() {
    DocPage::new(TestAgent::new()).run("collieclaw-service.md");
}

#[test]
fn the_procedure_is_carried_out() {
    let test_agent = DocPage::new(with_notes(TestAgent::new())).run("collieclaw-sop.md");
    assert!(test_agent.workspace().join("summary.txt").exists());
}

#[test]
fn the_documented_tools_work() {
    let found = json!({ "results": [
        { "title": "Sheep of the world", "url": "https://sheep.example/", "content": "About a billion." },
        { "title": "Goats, too", "url": "https://goats.example/", "content": "Fewer." },
    ] });
    let service = TestServer::start(vec![json_reply(&found)]);
    let test_agent = TestAgent::new();
    fs::write(test_agent.workspace().join("flock.pdf"), crate::pdf_extract::flock()).unwrap();
    DocPage::new(test_agent)
        .with("localhost:8888", &format!("localhost:{}", service.port()))
        .run("collieclaw-tools.md");
}

#[test]
fn the_folders_and_programs_are_allowed() {
    DocPage::new(TestAgent::new()).run("collieclaw-workspaces.md");
}

#[test]
fn no_page_and_no_command_is_left_out() {
    let here = document_names();
    let listed: Vec<String> = PAGES.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut sorted = listed.clone();
    sorted.sort();
    assert_eq!(here, sorted);
    let mut typed_lines = String::new();
    for name in &listed {
        for block in blocks(&document(&format!("docs/{name}"))) {
            if block.info.starts_with("console") {
                typed_lines
                    .extend(parse_commands(&block.text).iter().map(|typed| format!("{} \n", typed.command)));
            }
        }
    }
    for command in commands() {
        assert!(typed_lines.contains(&format!("{command} ")), "no page shows how to use `{command}`");
    }
}

fn document_names() -> Vec<String> {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let folder = std::path::PathBuf::from(root).join("../../docs");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("collieclaw")).collect();
    names.sort();
    names
}

/// Lists every command without subcommands, by its manual page.
fn commands() -> Vec<String> {
    let test_agent = TestAgent::empty();
    let folder = test_agent.path().join("man");
    assert_eq!(test_agent.run(&["man", "--dir", folder.to_str().unwrap()]).code, 0);
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.filter_map(|name| Some(name.strip_suffix(".1")?.to_owned())).collect();
    let is_leaf = |name: &&String| !names.iter().any(|other| other.starts_with(&format!("{name}-")));
    let leaves = names.iter().filter(|name| !name.contains("-help")).filter(is_leaf);
    leaves.map(|name| name.replace('-', " ")).collect()
}
