//! `plugin`: installs, lists and removes plugins.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use collieclaw_agent::config::{PluginSettings, WorkspaceUse, format_duration};
use collieclaw_agent::plugins::{
    InstalledPlugin, PluginFiles, PluginManifest, PluginRegistry, PluginTool, WaitingPlugin, install, remove,
};
use collieclaw_agent::tools;
use collieclaw_gate::RiskLevel;
use serde_json::{Value, json};
use ward_terminal::{escape_line, format_count};

use super::confirm::confirm;
use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::output::OutputPrinter;
use super::wiring;

#[derive(Subcommand)]
pub(crate) enum PluginCommand {
    /// Install a plugin into the home, or approve a waiting one, after showing what it will be able to do.
    #[command(
        after_help = "Examples:\n  collieclaw plugin install ./words\n  collieclaw plugin install ./words --yes\n  collieclaw plugin install words"
    )]
    Install {
        /// Folder of the plugin, with its manifest.toml, or the name of a waiting plugin
        path: PathBuf,
        /// Install without asking
        #[arg(long)]
        yes: bool,
    },
    /// List plugins, and what their tools may do.
    #[command(after_help = "Examples:\n  collieclaw plugin list\n  collieclaw plugin list --output json")]
    List,
    /// Remove a plugin.
    #[command(after_help = "Example:\n  collieclaw plugin remove words")]
    Remove {
        /// Name of the plugin
        name: String,
    },
}

pub(crate) fn run(
    plugin: &PluginCommand,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    match plugin {
        PluginCommand::Install { path, yes } => install_plugin(path, *yes, environment, screen),
        PluginCommand::List => list(environment, screen),
        PluginCommand::Remove { name } => {
            remove(&environment.home, name)?;
            screen.print_answer(&json!({ "removed": name }), || format!("{} is removed", escape_line(name)));
            // The configuration isn't changed here, so warn about entries that now lead nowhere.
            let setup = wiring::load_setup(environment)?;
            setup.missing_tools(environment).iter().for_each(|absent| screen.print_remark(absent));
            Ok(())
        }
    }
}

fn install_plugin(
    path: &Path,
    yes: bool,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let before = PluginRegistry::load(&environment.home);
    let named = before.waiting.iter().find(|plugin| Path::new(&plugin.manifest.name) == path);
    let path = named.filter(|_| !path.exists()).map_or(path, |plugin| &plugin.folder);
    let contents = PluginFiles::read(path)?;
    let own = tools::built_in_tools();
    let mut taken: Vec<(Option<&str>, &str)> = own.iter().map(|tool| (None, tool.name())).collect();
    for plugin in &before.installed {
        let names = plugin.manifest.tools.iter().map(|tool| tool.name.as_str());
        taken.extend(names.map(|name| (Some(plugin.manifest.name.as_str()), name)));
    }
    let read = |taken: &[&str]| {
        PluginManifest::read(&contents, path, taken)
            .map_err(|report| CommandFailure::Manifest { report: Box::new(report) })
    };
    // A name conflict with an older version of the same plugin is fine; only the manifest says which plugin this is.
    let name = read(&[]).map_or_else(|_| String::new(), |manifest| manifest.name);
    let others = taken.into_iter().filter(|(plugin, _)| *plugin != Some(name.as_str()));
    let manifest = read(&others.map(|(_, tool)| tool).collect::<Vec<_>>())?;
    let older = before.installed.iter().find(|plugin| plugin.manifest.name == name);
    let text = format_install_summary(&manifest, &contents, older.map(|older| &**older));
    confirm(&text, "Install it?", yes.into(), screen)?;
    let folder = install(&environment.home, &manifest, &contents)?;
    let names: Vec<&str> = manifest.tools.iter().map(|tool| tool.name.as_str()).collect();
    let value = json!({ "installed": name, "version": manifest.version, "folder": folder, "tools": names });
    screen.print_answer(&value, || {
        let names = names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        format!("{name} is installed; add {names} to `channels.cli.tools_allow` to let the model call it")
    });
    Ok(())
}

fn format_install_summary(
    manifest: &PluginManifest,
    contents: &PluginFiles,
    older: Option<&InstalledPlugin>,
) -> String {
    let (files, bytes) = contents.size();
    let mut text = format!(
        "{} {}: {}, {}\n",
        manifest.name,
        escape_line(&manifest.version),
        format_count(files, "file", "files"),
        format_count(bytes, "byte", "bytes")
    );
    if let Some(older) = older {
        text.push_str(&format!("It replaces version {}.\n", escape_line(&older.manifest.version)));
    }
    for tool in &manifest.tools {
        text.push_str(&format!("\n  {}: {}\n", tool.name, escape_line(&tool.description)));
        for (what, how) in describe_access(tool) {
            text.push_str(&format!("    {what:<10} {how}\n"));
        }
    }
    text
}

/// Describes the command, timeout and permissions of a tool.
fn describe_access(tool: &PluginTool) -> [(&'static str, String); 6] {
    let time = tool.timeout.map_or_else(
        || "the usual limit (`limits.tool_timeout`)".to_owned(),
        |time| format!("{} s at most", time.as_secs_f64()),
    );
    [
        ("runs", escape_line(&tool.command.join(" "))),
        ("takes", escape_line(&tool.schema.to_string())),
        ("risk", tool.risk.to_string()),
        ("workspace", describe_workspace(tool).to_owned()),
        ("network", describe_network(tool, None).to_owned()),
        ("time", time),
    ]
}

fn describe_workspace(tool: &PluginTool) -> &'static str {
    match tool.workspace {
        WorkspaceUse::None => "no access",
        WorkspaceUse::Read => "reads all of it",
        WorkspaceUse::Write => "reads and changes all of it",
    }
}

/// Describes network access, including the plugin's `network` setting if it is known.
fn describe_network(tool: &PluginTool, settings: Option<&PluginSettings>) -> &'static str {
    match (tool.network, settings.map(|settings| settings.network)) {
        (false, _) => "none",
        (true, None) => "requested; off unless the configuration allows it (`plugins.NAME.network`)",
        (true, Some(false)) => "requested, but not allowed (`plugins.NAME.network`)",
        (true, Some(true)) => "allowed",
    }
}

fn list(environment: &CliEnvironment, screen: &OutputPrinter) -> Result<(), CommandFailure> {
    let plugins = PluginRegistry::load(&environment.home);
    for trouble in &plugins.problems {
        screen.print_remark(&escape_line(trouble));
    }
    // An invalid configuration is ignored here, because a plugin may be its cause.
    let configured = wiring::load_config(environment).map(|config| config.plugins).unwrap_or_default();
    let shown: Vec<PluginListing<'_>> = plugins
        .installed
        .iter()
        .map(|plugin| PluginListing {
            plugin,
            settings: configured.get(&plugin.manifest.name).cloned().unwrap_or_default(),
            state: plugin
                .find_change()
                .map_or_else(|| "as installed".to_owned(), |changed| escape_line(&changed)),
        })
        .collect();
    let mut value: Vec<Value> = shown.iter().map(PluginListing::to_json).collect();
    value.extend(plugins.waiting.iter().map(waiting_json));
    screen.print_answer(&value, || {
        let mut text: String = shown.iter().map(PluginListing::to_text).collect();
        text.extend(plugins.waiting.iter().map(waiting_text));
        if text.is_empty() {
            text.push_str("no plugins: install one with `collieclaw plugin install FOLDER`");
        }
        text
    });
    Ok(())
}

fn waiting_json(plugin: &WaitingPlugin) -> Value {
    let WaitingPlugin { manifest, folder } = plugin;
    let tools: Vec<&str> = manifest.tools.iter().map(|tool| tool.name.as_str()).collect();
    json!({ "name": manifest.name, "version": manifest.version, "state": "waiting", "folder": folder,
        "tools": tools })
}

fn waiting_text(plugin: &WaitingPlugin) -> String {
    let PluginManifest { name, version, .. } = &plugin.manifest;
    format!(
        "{name} {}, waits for your approval; to see what it may do, run `collieclaw plugin install {name}`\n",
        escape_line(version)
    )
}

/// A plugin as `plugin list` shows it.
struct PluginListing<'p> {
    plugin: &'p InstalledPlugin,
    settings: PluginSettings,
    state: String,
}

impl PluginListing<'_> {
    fn risk(&self, tool: &PluginTool) -> RiskLevel {
        self.settings.risks.get(&tool.name).copied().unwrap_or(tool.risk)
    }

    fn to_json(&self) -> Value {
        let tool = |tool: &PluginTool| {
            json!({ "name": tool.name, "description": tool.description, "command": tool.command,
                "schema": tool.schema, "risk": self.risk(tool), "workspace": tool.workspace,
                "network": { "wanted": tool.network, "given": tool.network && self.settings.network },
                "timeout": tool.timeout.map(format_duration) })
        };
        let manifest = &self.plugin.manifest;
        json!({ "name": manifest.name, "version": manifest.version, "state": self.state,
            "folder": self.plugin.folder, "tools": manifest.tools.iter().map(tool).collect::<Vec<_>>() })
    }

    fn to_text(&self) -> String {
        let manifest = &self.plugin.manifest;
        let mut text = format!("{} {}, {}\n", manifest.name, escape_line(&manifest.version), self.state);
        for tool in &manifest.tools {
            let (name, about) = (&tool.name, escape_line(&tool.description));
            let (risk, workspace, network) =
                (self.risk(tool), describe_workspace(tool), describe_network(tool, Some(&self.settings)));
            text.push_str(&format!(
                "  {name}: {about}\n    risk {risk}; workspace: {workspace}; network: {network}\n"
            ));
        }
        text
    }
}
