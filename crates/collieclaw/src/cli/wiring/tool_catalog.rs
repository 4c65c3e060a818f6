//! All tools there are: ours, those of plugins, and those of MCP servers.

use std::collections::{BTreeMap, BTreeSet};

use collieclaw_agent::config::Config;
use collieclaw_agent::home::AgentHome;
use collieclaw_agent::plugins::PluginRegistry;
use collieclaw_agent::tools::{Tool, built_in_tools};
use collieclaw_mcp::{
    ApprovedServer, McpServerSet, McpSessionPool, PinnedServer, ToolPinError, offered_name,
};
use serde_json::Value;

/// What the home holds of others: plugins, and the approved tools of MCP servers. Read once, for the configuration that
/// names their tools and for the tools themselves.
pub(crate) struct ForeignToolSources {
    home: AgentHome,
    plugins: PluginRegistry,
    pinned: BTreeMap<String, Result<PinnedServer, ToolPinError>>,
}

/// What there is.
pub(crate) struct ToolCatalog {
    /// Ours first. No two have the same name.
    pub(crate) tools: Vec<Box<dyn Tool>>,
    /// What is there and can't be used, in sentences.
    pub(crate) warnings: Vec<String>,
    /// What the tools of others are: a part of the rules, so that a yes that was given for good ends with a new version.
    pub(crate) fingerprints: Vec<Value>,
    /// The MCP servers among them.
    pub(crate) servers: Vec<ApprovedServer>,
}

impl ForeignToolSources {
    /// What is in a home. Nothing is started.
    #[must_use]
    pub(crate) fn load(home: &AgentHome) -> Self {
        let read = |server: String| Some((server.clone(), PinnedServer::load(home, &server).transpose()?));
        let pinned = PinnedServer::pinned_servers(home).into_iter().filter_map(read).collect();
        Self { home: home.clone(), plugins: PluginRegistry::load(home), pinned }
    }

    /// The names of all tools that a configuration may list.
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

    /// All tools, each as the configuration settles it. Nothing is started. `variables` is our environment; servers that
    /// run already are among the `sessions`.
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
        let troubles = plugins.problems.iter().cloned().chain(servers.problems()).collect();
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
    /// A name is whose it was first: nobody takes the place of a tool of ours.
    fn add_tools(&mut self, more: Vec<Box<dyn Tool>>) {
        let mut taken: BTreeSet<String> = self.tools.iter().map(|tool| tool.name().to_owned()).collect();
        for tool in more {
            if taken.insert(tool.name().to_owned()) {
                self.tools.push(tool);
            } else {
                self.warnings.push(format!("there is another tool `{}`: this one is not used", tool.name()));
            }
        }
    }
}
