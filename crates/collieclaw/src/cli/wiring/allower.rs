//! Allows programs in the workspace of a running agent, after the operator said yes (C16).

use std::path::PathBuf;

use collieclaw_agent::config::{Config, ConfigContext};
use collieclaw_agent::home::AgentHome;
use collieclaw_agent::runtime::{OfferedProgram, ProgramAllower, RuleUpdates, UpdatedRules};
use collieclaw_agent::workspaces::{
    AllowError, AllowReport, ProgramOrigin, ProgramSearch, RuleEditor, ToolchainPlaces, WorkspaceError,
    WorkspaceRules, WorkspaceStore, toolchain_access,
};
use serde_json::Value;
use thiserror::Error;

use super::super::environment::CliEnvironment;
use super::{LoadedSetup, hash_policy};

/// Returns the search for programs in the user's `PATH`. Folders that tools can change don't count: all workspaces,
/// their caches, and CollieClaw's own home.
pub(crate) fn program_search(config: &Config, home: &AgentHome, context: &ConfigContext) -> ProgramSearch {
    let places = ToolchainPlaces {
        user_home: &context.user_home,
        own_home: &context.home,
        variables: &context.variables,
    };
    let path = context.variables.get("PATH").map(String::as_str).unwrap_or_default();
    let mut writable = vec![context.home.clone(), places.all_caches()];
    writable.extend(config.workspace_dir.canonicalize());
    let known = WorkspaceStore::new(home).list().unwrap_or_default();
    writable.extend(known.into_iter().flatten().map(|rules| rules.path));
    ProgramSearch::new(path, writable)
}

/// An error while the rules of a workspace are changed.
#[derive(Debug, Error)]
pub(crate) enum RuleChangeError {
    #[error(transparent)]
    Store(#[from] WorkspaceError),
    #[error(transparent)]
    Allow(#[from] AllowError),
}

/// Changes the rules of the workspace in use.
pub(crate) struct WorkspaceAllower {
    home: AgentHome,
    /// The configuration without the rules of the workspace.
    base: Config,
    context: ConfigContext,
    fingerprints: Vec<Value>,
    /// The workspace as the tool gateway has it open.
    workspace: PathBuf,
}

impl WorkspaceAllower {
    /// Returns rules that the operator can change while the agent runs.
    pub(crate) fn rule_updates(
        setup: &LoadedSetup,
        workspace: PathBuf,
        environment: &CliEnvironment,
    ) -> RuleUpdates {
        RuleUpdates::new(Box::new(Self {
            home: environment.home.clone(),
            base: setup.base.clone(),
            context: environment.config_context.clone(),
            fingerprints: setup.gather_tools(environment).fingerprints,
            workspace,
        }))
    }

    fn update_rules(&self, rules: WorkspaceRules) -> Result<UpdatedRules, String> {
        let mut config = self.base.clone();
        // The trust is not in question here: the tool gateway holds the folder open.
        config.apply_workspace_rules(rules);
        let places = ToolchainPlaces {
            user_home: &self.context.user_home,
            own_home: &self.context.home,
            variables: &self.context.variables,
        };
        let toolchain = toolchain_access(&config.workspace, &places)
            .map_err(|error| format!("could not create the cache of the workspace: {error}"))?;
        let policy = config.gate_policy(self.workspace.clone(), &self.context);
        let policy_hash =
            hash_policy(&config, &policy, &self.fingerprints).map_err(|error| error.to_string())?;
        Ok(UpdatedRules { policy, policy_hash, toolchain })
    }
}

impl ProgramAllower for WorkspaceAllower {
    fn find_programs(&self, names: &[String]) -> Option<Vec<OfferedProgram>> {
        let search = program_search(&self.base, &self.home, &self.context);
        let offer = |name: &String| match search.find(name) {
            ProgramOrigin::Missing { .. } if name.contains('/') => {
                let path = self.workspace.join(name).canonicalize().ok()?;
                (path.is_file() && path.starts_with(&self.workspace))
                    .then(|| OfferedProgram { name: name.clone(), path })
            }
            ProgramOrigin::System(path) => Some(OfferedProgram { name: name.clone(), path }),
            ProgramOrigin::Pinned(pinned) => Some(OfferedProgram { name: name.clone(), path: pinned.found }),
            ProgramOrigin::Missing { .. } => None,
        };
        names.iter().map(offer).collect()
    }

    fn allow(&self, names: &[String]) -> Result<UpdatedRules, String> {
        let search = program_search(&self.base, &self.home, &self.context);
        let editor = RuleEditor {
            search: &search,
            forbidden_commands: &self.base.security.forbidden_commands,
            user_home: &self.context.user_home,
        };
        let changed = WorkspaceStore::new(&self.home).update(&self.workspace, |before| {
            let mut rules = before.unwrap_or_else(|| WorkspaceRules::new(&self.workspace, None));
            let mut report = AllowReport::default();
            for name in names {
                if name.contains('/') {
                    editor.allow_script(&mut rules, &self.workspace.join(name), &mut report)?;
                } else {
                    editor.allow_program(&mut rules, name, &mut report)?;
                }
            }
            Ok::<_, RuleChangeError>(rules)
        });
        changed.map_err(|error| error.to_string()).and_then(|rules| self.update_rules(rules))
    }
}
