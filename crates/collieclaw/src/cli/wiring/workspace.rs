//! Chooses the workspace of a command: the folder that it was started in, if it is trusted (C16).

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;
use collieclaw_agent::config::Config;
use collieclaw_agent::workspaces::{
    FolderIdentity, FolderRefusal, ToolchainPlaces, TrustBounds, WorkspaceRules, WorkspaceStore,
};
use ward_terminal::escape_line;

use super::super::confirm::{ConfirmMode, confirm};
use super::super::environment::CliEnvironment;
use super::super::failure::CommandFailure;
use super::super::output::OutputPrinter;

#[derive(Args, Default)]
pub(crate) struct WorkspaceArgs {
    /// Work in this folder instead of the current one
    #[arg(short, long, value_name = "PATH")]
    pub(crate) workspace: Option<PathBuf>,
}

/// The workspace of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorkspaceChoice {
    /// The workspace of the configuration (`workspace_dir`).
    Configured,
    /// The real path of a folder that the operator trusts.
    Trusted(PathBuf),
}

/// The behaviour in a folder that is not trusted yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustMode {
    /// Ask at a terminal. Without one, or after a no, use the workspace of the configuration.
    Ask,
    /// Ask at a terminal, and fail without one.
    Require,
    /// Use the workspace of the configuration.
    Never,
}

/// A folder that can be a workspace.
pub(crate) struct CheckedFolder {
    pub(crate) path: PathBuf,
    pub(crate) identity: FolderIdentity,
}

/// Returns the workspace for a command that was started in the current folder.
pub(crate) fn choose_workspace(
    wanted: &WorkspaceArgs,
    mode: TrustMode,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<WorkspaceChoice, CommandFailure> {
    let config = super::load_config(environment)?;
    let chooser = WorkspaceChooser { config: &config, environment, screen };
    match &wanted.workspace {
        Some(path) => chooser.choose_named(path, mode),
        None => chooser.choose_current(mode),
    }
}

/// Checks whether a folder can be a workspace.
pub(crate) fn check_folder(
    folder: &Path,
    config: &Config,
    environment: &CliEnvironment,
) -> Result<CheckedFolder, FolderRefusal> {
    let context = &environment.config_context;
    let own_files = [config.own_files(), vec![toolchain_places(environment).all_caches()]].concat();
    let bounds = TrustBounds {
        user_home: &context.user_home,
        own_home: &context.home,
        own_files: &own_files,
        forbidden_paths: &config.real_forbidden_paths(),
    };
    let (path, identity) = bounds.inspect(folder)?;
    Ok(CheckedFolder { path, identity })
}

/// Returns the failure for a folder that can't be a workspace.
pub(crate) fn refused_folder(folder: &Path, why: FolderRefusal) -> CommandFailure {
    CommandFailure::FolderRefused { path: escape_line(&folder.to_string_lossy()), why }
}

/// Returns the rules of the workspace in use. Only a folder that is still the trusted one has rules.
pub(super) fn load_rules(
    choice: &WorkspaceChoice,
    config: &Config,
    environment: &CliEnvironment,
) -> Result<WorkspaceRules, CommandFailure> {
    let store = WorkspaceStore::new(&environment.home);
    match choice {
        WorkspaceChoice::Configured => {
            let path = config.workspace_dir.canonicalize().unwrap_or_else(|_| config.workspace_dir.clone());
            let rules = store.find(&path)?.unwrap_or_else(|| WorkspaceRules::new(&path, None));
            // Its conversations and rules don't depend on an earlier trust.
            Ok(WorkspaceRules { trusted: None, ..rules })
        }
        WorkspaceChoice::Trusted(path) => {
            let rules = store.find(path)?.ok_or_else(|| not_trusted(path))?;
            check_identity(&rules, config, environment)?;
            Ok(rules)
        }
    }
}

/// Checks that the folder of a workspace is still the one that was trusted, and may still be one.
fn check_identity(
    rules: &WorkspaceRules,
    config: &Config,
    environment: &CliEnvironment,
) -> Result<(), CommandFailure> {
    let now =
        check_folder(&rules.path, config, environment).map_err(|why| refused_folder(&rules.path, why))?;
    match &rules.trusted {
        None => Err(not_trusted(&rules.path)),
        Some(trusted) if now.path == rules.path && trusted.is_same_folder(&now.identity) => Ok(()),
        Some(_) => Err(CommandFailure::FolderReplaced { path: escape_line(&rules.path.to_string_lossy()) }),
    }
}

fn not_trusted(path: &Path) -> CommandFailure {
    CommandFailure::FolderNotTrusted { path: escape_line(&path.to_string_lossy()) }
}

/// Returns the places of toolchains in the user's home.
pub(crate) fn toolchain_places(environment: &CliEnvironment) -> ToolchainPlaces<'_> {
    let context = &environment.config_context;
    ToolchainPlaces { user_home: &context.user_home, own_home: &context.home, variables: &context.variables }
}

struct WorkspaceChooser<'c> {
    config: &'c Config,
    environment: &'c CliEnvironment,
    screen: &'c OutputPrinter,
}

impl WorkspaceChooser<'_> {
    /// Returns the workspace that the operator names. It is this folder, not one around it.
    fn choose_named(&self, path: &Path, mode: TrustMode) -> Result<WorkspaceChoice, CommandFailure> {
        if self.is_configured(path) {
            return Ok(WorkspaceChoice::Configured);
        }
        let folder =
            check_folder(path, self.config, self.environment).map_err(|why| refused_folder(path, why))?;
        let rules = WorkspaceStore::new(&self.environment.home).find(&folder.path)?;
        match rules.and_then(|rules| rules.trusted) {
            Some(trusted) if trusted.is_same_folder(&folder.identity) => {
                Ok(WorkspaceChoice::Trusted(folder.path))
            }
            before if mode != TrustMode::Never && is_at_terminal() => {
                self.ask_for_trust(&folder, before.is_some())?;
                Ok(WorkspaceChoice::Trusted(folder.path))
            }
            Some(_) => {
                Err(CommandFailure::FolderReplaced { path: escape_line(&folder.path.to_string_lossy()) })
            }
            None => Err(not_trusted(&folder.path)),
        }
    }

    /// Returns the workspace that contains the current folder, or the one of the configuration.
    fn choose_current(&self, mode: TrustMode) -> Result<WorkspaceChoice, CommandFailure> {
        let current = std::env::current_dir().and_then(|folder| folder.canonicalize());
        let Ok(current) = current else { return Ok(WorkspaceChoice::Configured) };
        let configured = self.config.workspace_dir.canonicalize().ok();
        let in_configured = configured.as_ref().filter(|configured| current.starts_with(configured));
        let enclosing = WorkspaceStore::new(&self.environment.home).find_enclosing(&current)?;
        let trusted =
            enclosing.filter(|rules| rules.trusted.is_some() && Some(&rules.path) != configured.as_ref());
        match (trusted, in_configured) {
            // The inner of two folders decides.
            (Some(rules), Some(configured)) if configured.starts_with(&rules.path) => {
                Ok(WorkspaceChoice::Configured)
            }
            (Some(rules), _) => self.use_trusted(&rules, mode),
            (None, Some(_)) => Ok(WorkspaceChoice::Configured),
            (None, None) => self.choose_untrusted(&current, mode),
        }
    }

    fn use_trusted(
        &self,
        rules: &WorkspaceRules,
        mode: TrustMode,
    ) -> Result<WorkspaceChoice, CommandFailure> {
        match check_identity(rules, self.config, self.environment) {
            Err(CommandFailure::FolderReplaced { .. }) if mode != TrustMode::Never && is_at_terminal() => {
                let folder = check_folder(&rules.path, self.config, self.environment)
                    .map_err(|why| refused_folder(&rules.path, why))?;
                self.ask_for_trust(&folder, true)?;
            }
            checked => checked?,
        }
        Ok(WorkspaceChoice::Trusted(rules.path.clone()))
    }

    fn choose_untrusted(&self, current: &Path, mode: TrustMode) -> Result<WorkspaceChoice, CommandFailure> {
        // Nobody starts a project in a folder such as the home, so nobody is asked.
        let Ok(folder) = check_folder(current, self.config, self.environment) else {
            return Ok(WorkspaceChoice::Configured);
        };
        match mode {
            TrustMode::Never => Ok(WorkspaceChoice::Configured),
            TrustMode::Require => {
                if !is_at_terminal() {
                    return Err(not_trusted(&folder.path));
                }
                self.ask_for_trust(&folder, false)?;
                Ok(WorkspaceChoice::Trusted(folder.path))
            }
            TrustMode::Ask if is_at_terminal() => match self.ask_for_trust(&folder, false) {
                Ok(()) => Ok(WorkspaceChoice::Trusted(folder.path)),
                Err(CommandFailure::NotConfirmed) => {
                    self.report_other_workspace("This folder is not trusted");
                    Ok(WorkspaceChoice::Configured)
                }
                Err(failure) => Err(failure),
            },
            TrustMode::Ask => {
                self.report_other_workspace(&format!(
                    "{} is not a trusted workspace (`collieclaw workspace trust`)",
                    escape_line(&folder.path.to_string_lossy())
                ));
                Ok(WorkspaceChoice::Configured)
            }
        }
    }

    fn report_other_workspace(&self, why: &str) {
        let place = escape_line(&self.config.workspace_dir.to_string_lossy());
        self.screen.print_remark(&format!("{why}; working in {place}"));
    }

    fn is_configured(&self, path: &Path) -> bool {
        let configured = self.config.workspace_dir.canonicalize();
        configured.is_ok_and(|configured| path.canonicalize().is_ok_and(|path| path == configured))
    }

    fn ask_for_trust(&self, folder: &CheckedFolder, replaced: bool) -> Result<(), CommandFailure> {
        let text = describe_folder(folder, replaced);
        confirm(&text, "Trust this folder?", ConfirmMode::Ask, self.screen)?;
        remember_trust(folder, self.environment).map(drop)
    }
}

/// Returns the text above the question whether to trust a folder.
pub(crate) fn describe_folder(folder: &CheckedFolder, replaced: bool) -> String {
    let start = if replaced {
        "Another folder is in the place of the one that you trusted:"
    } else {
        "CollieClaw has not worked in this folder before:"
    };
    format!(
        "{start}\n  {}\n  owner: {}\n\nIf you trust it, the model may read its files, and change them and run allowed \
         commands after you approve.\nFiles in the folder can try to mislead the model, so trust only folders that you \
         know.",
        escape_line(&folder.path.to_string_lossy()),
        describe_owner(folder.identity.owner)
    )
}

fn describe_owner(owner: u32) -> String {
    let us = rustix::process::geteuid().as_raw();
    let name = std::fs::read_to_string("/etc/passwd").ok().and_then(|users| {
        let line = users.lines().find(|line| line.split(':').nth(2) == Some(&owner.to_string()))?;
        line.split(':').next().map(escape_line)
    });
    let name = name.unwrap_or_else(|| format!("user id {owner}"));
    if owner == us { format!("{name} (you)") } else { name }
}

/// Remembers that the operator trusts a folder. Rules that it had before stay.
pub(crate) fn remember_trust(
    folder: &CheckedFolder,
    environment: &CliEnvironment,
) -> Result<WorkspaceRules, CommandFailure> {
    let store = WorkspaceStore::new(&environment.home);
    store.update(&folder.path, |before| {
        let rules = before.unwrap_or_else(|| WorkspaceRules::new(&folder.path, None));
        Ok(WorkspaceRules { trusted: Some(folder.identity.clone()), ..rules })
    })
}

fn is_at_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}
