//! `plugin`: tools that others wrote, put in, looked at and taken out.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use collieclaw::channels::visible;
use collieclaw::config::WorkspaceUse;
use collieclaw::plugins::{Contents, Installed, Manifest, PluginTool, Plugins, install, remove};
use collieclaw::tools;
use serde_json::{Value, json};

use super::confirm::confirm;
use super::environment::Environment;
use super::failure::Failure;
use super::open;
use super::screen::{Screen, count, table};

#[derive(Subcommand)]
pub(crate) enum Plugin {
    /// Copies a plugin into the home, after showing what it will be able to do.
    #[command(after_help = "Example:\n  collieclaw plugin install ./weather")]
    Install {
        /// The folder with its manifest.toml.
        path: PathBuf,
        /// Yes, it may do what it says.
        #[arg(long)]
        yes: bool,
    },
    /// The plugins, and what their tools may do.
    List,
    /// Takes a plugin out.
    Remove {
        /// Which.
        name: String,
    },
}

pub(crate) fn run(plugin: &Plugin, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    match plugin {
        Plugin::Install { path, yes } => put_in(path, *yes, environment, screen),
        Plugin::List => list(environment, screen),
        Plugin::Remove { name } => {
            remove(&environment.home, name)?;
            screen.answer(&json!({ "removed": name }), || format!("{} is removed", visible(name)));
            // What is configured of it is the operator's; that it leads nowhere now is said.
            open::config(environment).map(drop)
        }
    }
}

fn put_in(path: &Path, yes: bool, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let contents = Contents::read(path)?;
    let before = Plugins::load(&environment.home);
    let own = tools::built_in();
    let mut taken: Vec<(Option<&str>, &str)> = own.iter().map(|tool| (None, tool.name())).collect();
    for plugin in &before.installed {
        let names = plugin.manifest.tools.iter().map(|tool| tool.name.as_str());
        taken.extend(names.map(|name| (Some(plugin.manifest.name.as_str()), name)));
    }
    let read = |taken: &[&str]| {
        Manifest::read(&contents, path, taken)
            .map_err(|report| Failure::Manifest { report: Box::new(report) })
    };
    // An older plugin of its own name is in nobody's way; which that is, only the manifest says.
    let name = read(&[]).map_or_else(|_| String::new(), |manifest| manifest.name);
    let others = taken.into_iter().filter(|(plugin, _)| *plugin != Some(name.as_str()));
    let manifest = read(&others.map(|(_, tool)| tool).collect::<Vec<_>>())?;
    let older = before.installed.iter().find(|plugin| plugin.manifest.name == name);
    confirm(&shown(&manifest, &contents, older.map(|older| &**older)), "Install it?", yes.into())?;
    let folder = install(&environment.home, &manifest, &contents)?;
    let names: Vec<&str> = manifest.tools.iter().map(|tool| tool.name.as_str()).collect();
    let value = json!({ "installed": name, "version": manifest.version, "folder": folder, "tools": names });
    screen.answer(&value, || {
        let names = names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        format!("{name} is installed; the model is told of {names} once `channels.cli.tools_allow` lists it")
    });
    Ok(())
}

fn shown(manifest: &Manifest, contents: &Contents, older: Option<&Installed>) -> String {
    let (files, bytes) = contents.size();
    let mut text = format!(
        "{} {}: {}, {}\n",
        manifest.name,
        visible(&manifest.version),
        count(files as u64, "file"),
        count(bytes as u64, "byte")
    );
    if let Some(older) = older {
        text.push_str(&format!("It takes the place of version {}.\n", visible(&older.manifest.version)));
    }
    for tool in &manifest.tools {
        text.push_str(&format!("\n  {}: {}\n", tool.name, visible(&tool.description)));
        for (what, how) in powers(tool) {
            text.push_str(&format!("    {what:<10} {how}\n"));
        }
    }
    text
}

/// What a tool runs, takes and reaches.
fn powers(tool: &PluginTool) -> [(&'static str, String); 6] {
    let workspace = match tool.workspace {
        WorkspaceUse::None => "nothing of it",
        WorkspaceUse::Read => "reads all of it",
        WorkspaceUse::Write => "reads and changes all of it",
    };
    let network = if tool.network { "wants it; gets it if the configuration says so" } else { "none" };
    let time = tool.timeout.map_or_else(
        || "as long as any tool (`limits.tool_timeout`)".to_owned(),
        |time| format!("{} s at most", time.as_secs_f64()),
    );
    [
        ("runs", visible(&tool.command.join(" "))),
        ("takes", visible(&tool.schema.to_string())),
        ("risk", tool.risk.to_string()),
        ("workspace", workspace.to_owned()),
        ("network", network.to_owned()),
        ("time", time),
    ]
}

fn list(environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let plugins = Plugins::load(&environment.home);
    for trouble in &plugins.troubles {
        screen.remark(&visible(trouble));
    }
    let told = |plugin: &Installed| -> Value {
        let state = plugin.changed().map_or_else(|| "as installed".to_owned(), |changed| visible(&changed));
        json!({ "name": plugin.manifest.name, "version": plugin.manifest.version, "state": state,
            "folder": plugin.folder, "tools": plugin.manifest.tools })
    };
    let value: Vec<Value> = plugins.installed.iter().map(|plugin| told(plugin)).collect();
    screen.answer(&value, || {
        let mut rows = Vec::new();
        for plugin in &plugins.installed {
            let state =
                plugin.changed().map_or_else(|| "as installed".to_owned(), |changed| visible(&changed));
            rows.push(vec![plugin.manifest.name.clone(), visible(&plugin.manifest.version), state]);
            for tool in &plugin.manifest.tools {
                let about = format!("{}, risk {}", visible(&tool.description), tool.risk);
                rows.push(vec![format!("  {}", tool.name), String::new(), about]);
            }
        }
        table(&rows)
    });
    Ok(())
}
