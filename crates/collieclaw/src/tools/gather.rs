//! All tools there are: ours, those of plugins, and those of MCP servers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Tool, built_in};
use crate::config::Config;
use crate::home::Home;
use crate::mcp::{Approved, PinError, Pinned, Servers, Sessions, offered_name};
use crate::plugins::Plugins;

/// What the home holds of others: plugins, and the approved tools of MCP servers. Read once, for the configuration that
/// names their tools and for the tools themselves.
pub struct Foreign {
    home: Home,
    plugins: Plugins,
    pinned: BTreeMap<String, Result<Pinned, PinError>>,
}

/// What there is.
pub struct Gathered {
    /// Ours first. No two have the same name.
    pub tools: Vec<Box<dyn Tool>>,
    /// What is there and can't be used, in sentences.
    pub troubles: Vec<String>,
    /// What the tools of others are: a part of the rules, so that a yes that was given for good ends with a new version.
    pub marks: Vec<Value>,
    /// The MCP servers among them.
    pub servers: Vec<Approved>,
}

impl Foreign {
    /// What is in a home. Nothing is started.
    #[must_use]
    pub fn load(home: &Home) -> Self {
        let read = |server: String| Some((server.clone(), Pinned::load(home, &server).transpose()?));
        let pinned = Pinned::servers(home).into_iter().filter_map(read).collect();
        Self { home: home.clone(), plugins: Plugins::load(home), pinned }
    }

    /// The names of all tools that a configuration may list.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = built_in().iter().map(|tool| tool.name().to_owned()).collect();
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
    pub fn gather(
        &self,
        config: &Config,
        variables: &BTreeMap<String, String>,
        sessions: &Sessions,
    ) -> Gathered {
        let mut servers = Servers::new(&self.home, variables, sessions);
        for (name, settings) in &config.mcp.servers {
            servers.add(name, settings, self.pinned.get(name));
        }
        let plugins = &self.plugins;
        let settings = |name: &str| config.plugins.get(name).cloned().unwrap_or_default();
        let troubles = plugins.troubles.iter().cloned().chain(servers.troubles()).collect();
        let marks = plugins.installed.iter().map(|plugin| plugin.mark()).chain(servers.marks()).collect();
        let mut gathered = Gathered { tools: built_in(), troubles, marks, servers: servers.approved() };
        gathered.add(plugins.tools(settings));
        gathered.add(servers.tools());
        gathered
    }
}

impl Gathered {
    /// A name is whose it was first: nobody takes the place of a tool of ours.
    fn add(&mut self, more: Vec<Box<dyn Tool>>) {
        let mut taken: BTreeSet<String> = self.tools.iter().map(|tool| tool.name().to_owned()).collect();
        for tool in more {
            if taken.insert(tool.name().to_owned()) {
                self.tools.push(tool);
            } else {
                self.troubles.push(format!("there is another tool `{}`: this one is not used", tool.name()));
            }
        }
    }
}
