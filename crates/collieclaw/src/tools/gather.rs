//! All tools there are: ours, those of plugins, and those of MCP servers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Tool, built_in};
use crate::config::Config;
use crate::home::Home;
use crate::mcp::{Pinned, Servers, offered_name};
use crate::plugins::Plugins;

/// What there is.
pub struct Gathered {
    /// Ours first. No two have the same name.
    pub tools: Vec<Box<dyn Tool>>,
    /// What is there and can't be used, in sentences.
    pub troubles: Vec<String>,
    /// What the tools of others are: a part of the rules, so that a yes that was given for good ends with a new version.
    pub marks: Vec<Value>,
}

/// All tools, each as the configuration settles it. Nothing is started. `variables` is our environment.
#[must_use]
pub fn gather(home: &Home, config: &Config, variables: &BTreeMap<String, String>) -> Gathered {
    let plugins = Plugins::load(home);
    let servers = Servers::load(home, config, variables);
    let settings = |name: &str| config.plugins.get(name).cloned().unwrap_or_default();
    let troubles = plugins.troubles.iter().chain(&servers.troubles).cloned().collect();
    let marks = plugins.installed.iter().map(|plugin| plugin.mark()).chain(servers.marks()).collect();
    let mut gathered = Gathered { tools: built_in(), troubles, marks };
    gathered.add(plugins.tools(settings));
    gathered.add(servers.tools());
    gathered
}

/// The names of all tools, before there is a configuration.
#[must_use]
pub fn known_names(home: &Home) -> Vec<String> {
    let mut names: Vec<String> = built_in().iter().map(|tool| tool.name().to_owned()).collect();
    for plugin in Plugins::load(home).installed {
        names.extend(plugin.manifest.tools.iter().map(|tool| tool.name.clone()));
    }
    for server in Pinned::servers(home) {
        let pinned = Pinned::load(home, &server).ok().flatten();
        names.extend(
            pinned.iter().flat_map(|pinned| &pinned.tools).map(|tool| offered_name(&server, &tool.name)),
        );
    }
    names
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
