//! `workspace`: lists, shows, trusts and forgets the folders that the agent may work in.

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use collieclaw_agent::security::{ApprovalError, ApprovalStore};
use collieclaw_agent::workspaces::{WorkspaceNetwork, WorkspaceRules, WorkspaceStore};
use serde_json::{Value, json};
use ward_terminal::{align_columns, escape_line, format_count};

use super::allow::{self, PresetArgs};
use super::confirm::{ConfirmMode, confirm};
use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::output::{OutputPrinter, format_timestamp};
use super::wiring::{self, TrustMode, WorkspaceArgs, WorkspaceChoice};

#[derive(Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// List the folders that the agent may work in.
    #[command(
        after_help = "Examples:\n  collieclaw workspace list\n  collieclaw workspace list --output json"
    )]
    List,
    /// Show the rules of a workspace: programs, scripts, domains, toolchains and network.
    #[command(after_help = "Examples:\n  collieclaw workspace show\n  collieclaw workspace show ~/project")]
    Show {
        /// Folder of the workspace; the current one by default
        path: Option<PathBuf>,
    },
    /// Trust a folder, so that the agent can work in it.
    #[command(
        after_help = "Examples:\n  collieclaw workspace trust\n  collieclaw workspace trust ~/project --preset rust --yes\n  collieclaw workspace trust ~/project --network listed --yes"
    )]
    Trust {
        /// Folder to trust; the current one by default
        path: Option<PathBuf>,
        /// Trust the folder without a question
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        presets: PresetArgs,
        /// Network that commands may use: none, or only the allowed domains
        #[arg(long, value_name = "NETWORK")]
        network: Option<NetworkArg>,
    },
    /// Forget a workspace with its rules and permanent approvals. Its files and conversations stay.
    #[command(after_help = "Example:\n  collieclaw workspace forget ~/project")]
    Forget {
        /// Folder of the workspace
        path: PathBuf,
    },
}

/// The network on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum NetworkArg {
    None,
    Listed,
}

impl From<NetworkArg> for WorkspaceNetwork {
    fn from(network: NetworkArg) -> Self {
        match network {
            NetworkArg::None => Self::None,
            NetworkArg::Listed => Self::Listed,
        }
    }
}

pub(crate) fn run(
    command: &WorkspaceCommand,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    match command {
        WorkspaceCommand::List => list(environment, screen),
        WorkspaceCommand::Show { path } => {
            let wanted = WorkspaceArgs { workspace: path.clone() };
            let choice = wiring::choose_workspace(&wanted, TrustMode::Never, environment, screen)?;
            let rules = wiring::load_setup_in(&choice, environment)?.config.workspace;
            screen.print_answer(&rules_to_json(&rules, &choice), || format_rules(&rules, &choice));
            Ok(())
        }
        WorkspaceCommand::Trust { path, yes, presets, network } => {
            let mode = ConfirmMode::from(*yes);
            trust(path.as_deref(), mode, presets, network.map(Into::into), environment, screen)
        }
        WorkspaceCommand::Forget { path } => forget(path, environment, screen),
    }
}

fn list(environment: &CliEnvironment, screen: &OutputPrinter) -> Result<(), CommandFailure> {
    let config = wiring::load_config(environment)?;
    let configured = config.workspace.path.clone();
    let mut values =
        vec![json!({ "path": configured, "state": "configured", "network": config.workspace.network })];
    for listed in WorkspaceStore::new(&environment.home).list()? {
        values.push(match listed {
            Ok(rules) if rules.path == configured => continue,
            Ok(rules) => json!({
                "path": rules.path, "state": state_of(&rules, environment, &config), "network": rules.network,
                "trusted_since": rules.trusted.as_ref().map(|trusted| trusted.since), "presets": rules.presets,
            }),
            Err(error) => json!({ "path": Value::Null, "state": "not valid", "fault": error.to_string() }),
        });
    }
    let row = |value: &Value| {
        let text = |name: &str| escape_line(value[name].as_str().unwrap_or("-"));
        let path = if value["path"].is_null() { text("fault") } else { text("path") };
        vec![path, text("state"), format!("network {}", text("network"))]
    };
    screen.print_answer(&values, || align_columns(&values.iter().map(row).collect::<Vec<_>>()));
    Ok(())
}

/// Returns whether a workspace can be used now.
fn state_of(
    rules: &WorkspaceRules,
    environment: &CliEnvironment,
    config: &collieclaw_agent::config::Config,
) -> &'static str {
    match (wiring::check_folder(&rules.path, config, environment), &rules.trusted) {
        (_, None) => "not trusted",
        (Ok(now), Some(trusted)) if now.path == rules.path && trusted.is_same_folder(&now.identity) => {
            "trusted"
        }
        (Ok(_), Some(_)) => "replaced: trust it again",
        (Err(collieclaw_agent::workspaces::FolderRefusal::Missing(_)), _) => "missing",
        (Err(_), _) => "can't be used",
    }
}

fn trust(
    path: Option<&Path>,
    mode: ConfirmMode,
    presets: &PresetArgs,
    network: Option<WorkspaceNetwork>,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let config = wiring::load_config(environment)?;
    let path = path.unwrap_or(Path::new("."));
    let store = WorkspaceStore::new(&environment.home);
    let is_configured = path.canonicalize().is_ok_and(|path| path == config.workspace.path);
    let (choice, folder) = if is_configured {
        (WorkspaceChoice::Configured, config.workspace.path.clone())
    } else {
        let folder = wiring::check_folder(path, &config, environment)
            .map_err(|why| wiring::refused_folder(path, why))?;
        let before = store.find(&folder.path)?.and_then(|rules| rules.trusted);
        let is_same = before.as_ref().is_some_and(|before| before.is_same_folder(&folder.identity));
        if !is_same {
            let text = wiring::describe_folder(&folder, before.is_some());
            confirm(&text, "Trust this folder?", mode, screen)?;
            wiring::remember_trust(&folder, environment)?;
        }
        (WorkspaceChoice::Trusted(folder.path.clone()), folder.path)
    };
    if let Some(network) = network {
        store.update(&folder, |before| {
            let rules = before.unwrap_or_else(|| WorkspaceRules::new(&folder, None));
            Ok::<_, CommandFailure>(WorkspaceRules { network, ..rules })
        })?;
    }
    let additions = allow::change_rules(&[], presets, &choice, environment)?;
    let rules = wiring::load_setup_in(&choice, environment)?.config.workspace;
    screen.print_answer(&rules_to_json(&rules, &choice), || {
        let mut lines = vec![match choice {
            WorkspaceChoice::Configured => {
                format!("{} is the workspace of the configuration.", escape_path(&folder))
            }
            WorkspaceChoice::Trusted(_) => format!("{} is trusted.", escape_path(&folder)),
        }];
        lines.extend(allow::format_report(&additions, &presets.preset));
        lines.join("\n")
    });
    Ok(())
}

fn forget(path: &Path, environment: &CliEnvironment, screen: &OutputPrinter) -> Result<(), CommandFailure> {
    // The folder may be gone.
    let real = path.canonicalize().or_else(|_| std::path::absolute(path));
    let real = real.map_err(CommandFailure::io(format!("find {}", escape_path(path))))?;
    if !WorkspaceStore::new(&environment.home).remove(&real)? {
        return Err(CommandFailure::InvalidInput {
            what: format!("no such workspace {}", escape_path(&real)),
            cure: "run `collieclaw workspace list` to see the workspaces",
        });
    }
    let approvals = ApprovalStore::new(environment.home.approvals());
    let mut revoked = 0;
    for listed in approvals.list()? {
        if listed.approval.is_ok_and(|approval| approval.subject.workspace == real) {
            match approvals.revoke(&listed.id) {
                Err(ApprovalError::Unknown { .. }) => {}
                other => {
                    other?;
                    revoked += 1;
                }
            }
        }
    }
    // The home and the caches of commands belong to this workspace alone.
    let places = wiring::toolchain_places(environment);
    if let Err(error) = places.remove_cache(&real) {
        let cache = escape_path(&places.cache_folder(&real));
        screen.print_remark(&format!("warning: could not remove {cache}: {error}"));
    }
    screen.print_answer(&json!({ "forgotten": real, "revoked_approvals": revoked }), || {
        format!(
            "{} is forgotten, with {}. Its files stay.",
            escape_path(&real),
            format_count(revoked, "permanent approval", "permanent approvals")
        )
    });
    Ok(())
}

/// Returns the rules for programs.
pub(crate) fn rules_to_json(rules: &WorkspaceRules, choice: &WorkspaceChoice) -> Value {
    json!({
        "path": rules.path,
        "configured": *choice == WorkspaceChoice::Configured,
        "trusted_since": rules.trusted.as_ref().map(|trusted| trusted.since),
        "network": rules.network,
        "presets": rules.presets,
        "allowed_commands": rules.allowed_commands,
        "allowed_domains": rules.allowed_domains,
        "pinned_programs": rules.programs,
        "scripts": rules.scripts,
        "toolchain_folders": rules.toolchain_folders,
        "project_programs": rules.project_programs,
    })
}

fn format_rules(rules: &WorkspaceRules, choice: &WorkspaceChoice) -> String {
    let trust = match (&rules.trusted, choice) {
        (Some(trusted), _) => format_timestamp(trusted.since),
        (None, WorkspaceChoice::Configured) => "always (the workspace of the configuration)".to_owned(),
        (None, WorkspaceChoice::Trusted(_)) => "no".to_owned(),
    };
    let mut lines = vec![escape_path(&rules.path)];
    let details = [("trusted:", trust)].into_iter().chain(format_details(rules));
    lines.extend(details.map(|(name, value)| format!("{name:<12} {value}")));
    lines.join("\n")
}

/// Returns the rules as lines of a name and a value.
pub(crate) fn format_details(rules: &WorkspaceRules) -> Vec<(&'static str, String)> {
    let mut lines = vec![("network:", rules.network.to_string())];
    let mut add = |name, values: Vec<String>| {
        if !values.is_empty() {
            lines.push((name, values.join(", ")));
        }
    };
    let texts =
        |values: &std::collections::BTreeSet<String>| values.iter().map(|value| escape_line(value)).collect();
    add("presets:", texts(&rules.presets));
    add("commands:", texts(&rules.allowed_commands));
    add("domains:", texts(&rules.allowed_domains));
    let project = rules.project_programs.then(|| format!("{}, by their path", allow::PROJECT_PROGRAMS));
    add("programs:", project.into_iter().collect());
    let pinned = |(name, program): (&String, &collieclaw_agent::workspaces::PinnedProgram)| {
        format!("{} = {}", escape_line(name), escape_path(&program.real))
    };
    add("pinned:", rules.programs.iter().map(pinned).collect());
    let script = |path: &PathBuf| escape_path(path.strip_prefix(&rules.path).unwrap_or(path));
    add("scripts:", rules.scripts.keys().map(script).collect());
    add("toolchains:", rules.toolchain_folders.iter().map(|folder| escape_path(folder)).collect());
    lines
}

pub(crate) fn escape_path(path: &Path) -> String {
    escape_line(&path.to_string_lossy())
}
