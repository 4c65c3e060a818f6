//! Third-party programs: two servers from two registries, and an independent client.

use serde_json::{Value, json};

use super::server_fixture::installed_peers;
use crate::support::{TestAgent, agent_output, program};

fn with_peer(name: &str, command: &str, args: &[&str]) -> TestAgent {
    let test_agent = TestAgent::new().with_full_autonomy();
    let folder = installed_peers();
    let settings = format!(
        "command = {command:?}\nargs = {args:?}\nprograms = [{folder:?}]\nrisk = \"low\"",
        folder = folder.to_str().unwrap()
    );
    test_agent.with_server_settings(name, &settings).with_approved_server(name)
}

#[test]
fn a_time_server_in_python_works_in_the_sandbox() {
    let python = installed_peers().join("python/bin/python3");
    let test_agent = with_peer(
        "time",
        python.to_str().unwrap(),
        &["-m", "mcp_server_time", "--local-timezone", "Europe/Berlin"],
    );
    let actual = test_agent.call_output(
        "time__convert_time",
        r#"{"source_timezone": "Europe/Berlin", "time": "16:30", "target_timezone": "Asia/Tokyo"}"#,
    );
    let actual: Value = serde_json::from_str(&actual).unwrap_or_else(|error| panic!("{error}: {actual}"));
    assert_eq!(actual["target"]["timezone"], "Asia/Tokyo", "{actual}");
    // We check the schema that the server sent.
    let bad = test_agent.call_tool("time__convert_time", r#"{"time": "16:30"}"#);
    assert_eq!(test_agent.last_receipt()["reason_code"], "bad-arguments", "{bad:?}");
    // An error of the server's own validation is a result as well.
    let wrong = test_agent.call_tool("time__get_current_time", r#"{"timezone": "Mars/Olympus"}"#);
    assert_eq!(wrong.code, 1, "{wrong:?}");
}

#[test]
fn the_everything_server_in_node_works_in_the_sandbox() {
    let folder = installed_peers().join("node_modules/.bin");
    let [node, server] =
        ["node", "mcp-server-everything"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    let test_agent = with_peer("every", &node, &[&server, "stdio"]);
    assert!(test_agent.call_output("every__echo", r#"{"message": "hello"}"#).contains("hello"));
    assert!(test_agent.call_output("every__get-sum", r#"{"a": 4, "b": 38}"#).contains("42"));
    let image = test_agent.call_output("every__get-tiny-image", "{}");
    assert!(image.contains("[image omitted: image/png, "), "{image}");
    let tools = test_agent.run(&["mcp", "tools", "every", "--output", "json"]).json();
    assert!(tools.as_array().unwrap().len() >= 8, "{tools}");
}

#[test]
fn a_client_in_python_uses_our_tools() {
    let test_agent = TestAgent::new();
    std::fs::write(test_agent.workspace().join("note.txt"), "a note").unwrap();
    let script = r#"
import asyncio, json, os, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    server = StdioServerParameters(command=sys.argv[1], args=["mcp", "serve"], env=dict(os.environ))
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write) as session:
            hello = await session.initialize()
            tools = await session.list_tools()
            note = await session.call_tool("file_read", {"path": "note.txt"})
            denied = await session.call_tool("file_read", {"path": "/etc/passwd"})
    def plain(result):
        told = result.model_dump(by_alias=True)
        return [told["isError"], told["content"][0]["text"]]
    print(json.dumps({"tools": [tool.name for tool in tools.tools], "note": plain(note), "denied": plain(denied)}))

asyncio.run(main())
"#;
    let mut command = test_agent.command(&[]);
    let mut python = std::process::Command::new(installed_peers().join("python/bin/python3"));
    python.args(["-c", script]).arg(program()).stdin(std::process::Stdio::null());
    python.env_clear().envs(
        command
            .stdin(std::process::Stdio::null())
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let done = agent_output(python.output().unwrap());
    assert_eq!(done.code, 0, "{done:?}");
    let actual = done.json();
    assert!(actual["tools"].as_array().unwrap().contains(&json!("file_read")), "{actual}");
    assert_eq!(actual["note"][0], false);
    assert!(actual["note"][1].as_str().unwrap().contains("a note"), "{actual}");
    assert_eq!(actual["denied"][0], true, "{actual}");
    assert_eq!(test_agent.receipt_summaries().len(), 2);
}
