//! An agent with an MCP server.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::TestAgent;

const FAKE_SERVER: &str = include_str!("fake.py");

/// A script for the mock: one call with these arguments.
pub(crate) const FAKE_CALL: &str = "[[round]]\n[[round.call]]\ntool = \"fake__echo\"\nargs = { words = \"WORDS\" }\n[[round]]\ntext = \"so\"\n";

pub(crate) fn echo_tool() -> Value {
    json!([{ "name": "echo", "description": "Says it again.",
        "inputSchema": { "type": "object", "properties": { "words": { "type": "string" } } } }])
}

impl TestAgent {
    /// Adds a fake server with this behaviour and these settings, at `full`.
    pub(crate) fn with_fake_server(self, mode: &str, more: &str) -> Self {
        let test_agent = self.with_full_autonomy();
        let folder = test_agent.path().join("server");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("fake.py"), FAKE_SERVER).unwrap();
        test_agent.set_server_tools(&echo_tool());
        let settings = format!(
            "command = \"python3\"\nargs = [\"{folder}/fake.py\", \"{mode}\", \"{folder}/tools.json\"]\n\
             programs = [\"{folder}\"]\n{more}",
            folder = folder.display()
        );
        test_agent.with_server_settings("fake", &settings)
    }

    pub(crate) fn with_server_settings(self, name: &str, settings: &str) -> Self {
        let config = self.home().join("config.toml");
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, format!("{text}\n[mcp.servers.{name}]\n{settings}\n")).unwrap();
        self
    }

    /// Sets the tools that the server lists from now on.
    pub(crate) fn set_server_tools(&self, tools: &Value) {
        std::fs::write(self.path().join("server/tools.json"), tools.to_string()).unwrap();
    }

    pub(crate) fn with_approved_server(self, server: &str) -> Self {
        let done = self.run(&["mcp", "approve", "--yes", server]);
        assert_eq!(done.code, 0, "{done:?}");
        self
    }
}

/// Returns where `cargo xtask setup` installs third-party programs: for all users, or for one.
pub(crate) fn installed_peers() -> PathBuf {
    let own = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local"));
    let places = own.into_iter().chain([PathBuf::from("/usr/local")]);
    let needed = [
        "node_modules/.bin/mcp-server-everything",
        "node_modules/.bin/mcp-server-filesystem",
        "node_modules/.bin/mcp-server-memory",
        "node_modules/.bin/conformance",
        "python/bin/mcp-server-time",
    ];
    places
        .map(|place| place.join("lib/collieclaw-peers"))
        .find(|folder| needed.iter().all(|program| folder.join(program).exists()))
        .expect("the test needs MCP servers and clients of others: run `cargo xtask setup`")
}
