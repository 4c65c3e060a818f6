//! Third-party programs: two servers from two registries, and an independent client.

use serde_json::{Value, json};

use super::server_fixture::installed_peers;
use crate::support::{TestAgent, agent_output, program};

fn with_peer(name: &str, command: &str, args: &[&str]) -> TestAgent {
    with_peer_settings(TestAgent::new().with_full_autonomy(), name, command, args, "")
}

fn with_peer_settings(
    test_agent: TestAgent,
    name: &str,
    command: &str,
    args: &[&str],
    more: &str,
) -> TestAgent {
    let folder = installed_peers();
    let settings = format!(
        "command = {command:?}\nargs = {args:?}\nprograms = [{folder:?}]\nrisk = \"low\"\n{more}",
        folder = folder.to_str().unwrap()
    );
    test_agent.with_server_settings(name, &settings).with_approved_server(name)
}

/// Returns the paths of Node.js and of a server that was installed with npm.
fn node_server(name: &str) -> [String; 2] {
    let folder = installed_peers().join("node_modules/.bin");
    ["node", name].map(|name| folder.join(name).to_str().unwrap().to_owned())
}

#[test]
fn the_filesystem_server_reads_and_writes_the_workspace_if_it_is_opened() {
    let [node, server] = node_server("mcp-server-filesystem");
    for (access, writes) in [("write", true), ("read", false)] {
        let test_agent = TestAgent::new().with_full_autonomy();
        let workspace = test_agent.workspace();
        std::fs::write(workspace.join("note.txt"), "a note").unwrap();
        let args = [server.as_str(), workspace.to_str().unwrap()];
        let more = format!("workspace = {access:?}");
        let test_agent = with_peer_settings(test_agent, "files", &node, &args, &more);
        let at = |name: &str| json!({ "path": workspace.join(name) }).to_string();
        assert!(test_agent.call_output("files__read_text_file", &at("note.txt")).contains("a note"));
        assert!(test_agent.call_output("files__list_directory", &at(".")).contains("note.txt"));
        let text = json!({ "path": workspace.join("new.txt"), "content": "written" }).to_string();
        let written = test_agent.call_tool("files__write_file", &text);
        assert_eq!(written.code == 0, writes, "{access}: {written:?}");
        assert_eq!(
            std::fs::read_to_string(workspace.join("new.txt")).is_ok_and(|text| text == "written"),
            writes
        );
        // The server allows only its own folder, and the sandbox hides everything else from it.
        let outside = test_agent.call_tool(
            "files__read_text_file",
            &json!({ "path": test_agent.home().join("config.toml") }).to_string(),
        );
        assert_ne!(outside.code, 0, "{outside:?}");
    }
}

#[test]
fn the_memory_server_keeps_its_state_in_a_folder_of_its_own() {
    let [node, server] = node_server("mcp-server-memory");
    let test_agent = TestAgent::new().with_full_autonomy();
    let state = test_agent.home().join("mcp-state/graph");
    let file = format!("MEMORY_FILE_PATH={}", state.join("memory.jsonl").display());
    let test_agent = with_peer_settings(test_agent, "graph", "env", &[&file, &node, &server], "");
    let entity = r#"{"entities": [{"name": "Aardvark", "entityType": "animal", "observations": ["digs"]}]}"#;
    test_agent.call_output("graph__create_entities", entity);
    // Another process of the server finds the state again.
    assert!(test_agent.call_output("graph__read_graph", "{}").contains("Aardvark"));
    assert!(std::fs::read_to_string(state.join("memory.jsonl")).unwrap().contains("digs"));
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&state).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o700);
    // Neither another server nor a tool reaches the folder.
    let read = json!({ "path": state.join("memory.jsonl") }).to_string();
    assert_ne!(test_agent.call_tool("file_read", &read).code, 0);
    let line = json!({ "command": format!("cat {}", state.join("memory.jsonl").display()) }).to_string();
    assert_ne!(test_agent.call_tool("shell", &line).code, 0);
}

#[test]
fn a_server_of_the_python_library_starts_without_a_network() {
    let python = installed_peers().join("python/bin/python3");
    let program = "
import socket
try:
    from mcp.server.fastmcp import FastMCP as Server
except ImportError:
    from mcp.server import MCPServer as Server
server = Server('demo')

@server.tool()
def reach(host: str) -> str:
    \"\"\"Connects to a host.\"\"\"
    try:
        socket.create_connection((host, 80), timeout=5).close()
        return 'reached'
    except OSError:
        return 'closed'

server.run()
";
    let test_agent = with_peer("library", python.to_str().unwrap(), &["-c", program]);
    for host in ["192.0.2.1", "127.0.0.1", "example.org"] {
        let arguments = json!({ "host": host }).to_string();
        assert!(test_agent.call_output("library__reach", &arguments).contains("closed"), "{host}");
    }
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
    let [node, server] = node_server("mcp-server-everything");
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
