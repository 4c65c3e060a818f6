//! The catalog of all tools: built-in, from plugins, and from MCP servers.

use std::collections::{BTreeMap, BTreeSet};

use collieclaw_agent::config::Config;
use collieclaw_agent::home::AgentHome;
use collieclaw_agent::plugins::PluginRegistry;
use collieclaw_agent::tools::{Tool, built_in_tools};
use collieclaw_mcp::{
    ApprovedServer, McpServerSet, McpSessionPool, PinnedServer, ToolPinError, offered_name,
};
use serde_json::Value;

/// The plugins and approved MCP tools in the home. Read once, because the configuration is checked against their names
/// before the tools themselves are built.
pub(crate) struct ForeignToolSources {
    home: AgentHome,
    plugins: PluginRegistry,
    pinned: BTreeMap<String, Result<PinnedServer, ToolPinError>>,
}

/// All tools that exist.
pub(crate) struct ToolCatalog {
    /// The tools, built-in tools first. Names are unique.
    pub(crate) tools: Vec<Box<dyn Tool>>,
    /// Warnings about tools that exist but can't be used.
    pub(crate) warnings: Vec<String>,
    /// The versions of the external tools. The policy hash includes them, so that a new version of a tool ends permanent
    /// approvals.
    pub(crate) fingerprints: Vec<Value>,
    pub(crate) servers: Vec<ApprovedServer>,
}

impl ForeignToolSources {
    /// Reads plugins and approved MCP tools from the home. Nothing is started.
    #[must_use]
    pub(crate) fn load(home: &AgentHome) -> Self {
        let read = |server: String| Some((server.clone(), PinnedServer::load(home, &server).transpose()?));
        let pinned = PinnedServer::pinned_servers(home).into_iter().filter_map(read).collect();
        Self { home: home.clone(), plugins: PluginRegistry::load(home), pinned }
    }

    /// Returns the names of all tools that a configuration may list.
    #[must_use]
    pub(crate) fn tool_names(&self) -> Vec<String> {
        let mut names: Vec<String> = built_in_tools().iter().map(|tool| tool.name().to_owned()).collect();
        for plugin in &self.plugins.installed {
            names.extend(plugin.manifest.tools.iter().map(|tool| tool.name.clone()));
        }
        for (server, pinned) in &self.pinned {
            let tools = pinned.iter().flat_map(|pinned| &pinned.tools);
            names.extend(tools.map(|tool| offered_name(server, &tool.name)));
        }
        names
    }

    /// Builds all tools with their settings. Nothing is started. `variables` is our environment; servers that already run
    /// are found in `sessions`.
    #[must_use]
    pub(crate) fn collect_tools(
        &self,
        config: &Config,
        variables: &BTreeMap<String, String>,
        sessions: &McpSessionPool,
    ) -> ToolCatalog {
        let mut servers = McpServerSet::new(&self.home, variables, sessions);
        for (name, settings) in &config.mcp.servers {
            servers.add(name, settings, self.pinned.get(name));
        }
        let plugins = &self.plugins;
        let settings = |name: &str| config.plugins.get(name).cloned().unwrap_or_default();
        let waiting = plugins.waiting.iter().map(|plugin| {
            let name = &plugin.manifest.name;
            format!("the plugin `{name}` waits for your approval: run `collieclaw plugin install {name}`")
        });
        let troubles = plugins.problems.iter().cloned().chain(waiting).chain(servers.problems()).collect();
        let marks = plugins
            .installed
            .iter()
            .map(|plugin| plugin.fingerprint())
            .chain(servers.fingerprints())
            .collect();
        let mut gathered = ToolCatalog {
            tools: built_in_tools(),
            warnings: troubles,
            fingerprints: marks,
            servers: servers.approved(),
        };
        gathered.add_tools(plugins.tools(settings));
        gathered.add_tools(servers.tools());
        gathered
    }
}

impl ToolCatalog {
    /// Adds a tool unless its name is taken. Built-in tools come first, so nothing can replace them.
    fn add_tools(&mut self, more: Vec<Box<dyn Tool>>) {
        let mut taken: BTreeSet<String> = self.tools.iter().map(|tool| tool.name().to_owned()).collect();
        for tool in more {
            if taken.insert(tool.name().to_owned()) {
                self.tools.push(tool);
            } else {
                self.warnings.push(format!(
                    "another tool is already called `{}`, so this one is not used",
                    tool.name()
                ));
            }
        }
    }
}
