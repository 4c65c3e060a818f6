//! Changes the rules of a workspace: allows and disallows programs, scripts and presets.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use collieclaw_gate::{ProjectPrograms, WorkspacePreset};
use thiserror::Error;

use super::path_search::{ProgramSearch, SkippedFolder};
use super::rules::{PinnedProgram, WorkspaceRules};
use super::script::hash_file;

/// Changes rules within the limits of the configuration.
#[derive(Debug, Clone, Copy)]
pub struct RuleEditor<'e> {
    pub search: &'e ProgramSearch,
    /// Commands that can't be allowed.
    pub forbidden_commands: &'e BTreeSet<String>,
    pub user_home: &'e Path,
}

/// The place of a program that was allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramOrigin {
    /// A program of the system.
    System(PathBuf),
    /// A program elsewhere, which only runs from this place.
    Pinned(PinnedProgram),
    /// No usable program has this name.
    Missing { skipped: Vec<SkippedFolder> },
}

/// The additions to the rules of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowReport {
    pub programs: Vec<(String, ProgramOrigin)>,
    /// Scripts with the SHA-256 of their content.
    pub scripts: Vec<(PathBuf, String)>,
    pub domains: Vec<String>,
    pub folders: Vec<PathBuf>,
    /// True if the programs of the workspace were allowed as a whole.
    pub project_programs: bool,
}

/// A reason why something can't be allowed.
#[derive(Debug, Error)]
pub enum AllowError {
    #[error("`{0}` is on the list of forbidden commands, so no workspace can allow it")]
    Forbidden(String),
    #[error("`{0}` is not the name of a command")]
    NotAName(String),
    #[error("`{}` is outside of the workspace {}", .script.display(), .workspace.display())]
    ScriptOutside { script: PathBuf, workspace: PathBuf },
    #[error("could not read the script `{}`", .path.display())]
    Script { path: PathBuf, source: io::Error },
}

impl RuleEditor<'_> {
    /// Allows a program by its name, and pins the place at which the user's `PATH` has it.
    ///
    /// # Errors
    /// Fails if the name is no name, or is forbidden.
    pub fn allow_program(
        &self,
        rules: &mut WorkspaceRules,
        name: &str,
        report: &mut AllowReport,
    ) -> Result<(), AllowError> {
        check_name(name)?;
        self.check_forbidden(name)?;
        let origin = self.search.find(name);
        match &origin {
            ProgramOrigin::Pinned(pinned) => drop(rules.programs.insert(name.to_owned(), pinned.clone())),
            ProgramOrigin::System(_) | ProgramOrigin::Missing { .. } => drop(rules.programs.remove(name)),
        }
        rules.allowed_commands.insert(name.to_owned());
        report.programs.push((name.to_owned(), origin));
        Ok(())
    }

    /// Allows a script of the workspace with its current content.
    ///
    /// # Errors
    /// Fails if the script is not in the workspace, can't be read, or has the name of a forbidden command.
    pub fn allow_script(
        &self,
        rules: &mut WorkspaceRules,
        script: &Path,
        report: &mut AllowReport,
    ) -> Result<(), AllowError> {
        let failed = |source| AllowError::Script { path: script.to_owned(), source };
        let name = script.file_name().unwrap_or_default().to_string_lossy();
        self.check_forbidden(&name)?;
        let real = script.canonicalize().map_err(failed)?;
        let real_name = real.file_name().unwrap_or_default().to_string_lossy();
        self.check_forbidden(&real_name)?;
        if !real.starts_with(&rules.path) || real.to_str().is_none() {
            return Err(AllowError::ScriptOutside { script: real, workspace: rules.path.clone() });
        }
        let hash = hash_file(&real).map_err(failed)?;
        rules.scripts.insert(real.clone(), hash.clone());
        report.scripts.push((real, hash));
        Ok(())
    }

    /// Allows every program of the workspace by its path, whatever its content is.
    pub fn allow_project_programs(&self, rules: &mut WorkspaceRules, report: &mut AllowReport) {
        report.project_programs |= !rules.project_programs;
        rules.project_programs = true;
    }

    /// Adds the programs, domains and toolchain folders of a preset. Forbidden commands are left out.
    pub fn apply_preset(
        &self,
        rules: &mut WorkspaceRules,
        preset: &WorkspacePreset,
        report: &mut AllowReport,
    ) {
        rules.presets.insert(preset.name.to_owned());
        for &name in preset.programs {
            let is_new = !rules.allowed_commands.contains(name);
            let mut found = AllowReport::default();
            if self.allow_program(rules, name, &mut found).is_ok() && is_new {
                report.programs.append(&mut found.programs);
            }
        }
        for &domain in preset.domains {
            if rules.allowed_domains.insert(domain.to_owned()) {
                report.domains.push(domain.to_owned());
            }
        }
        for folder in preset.toolchain_folders {
            let folder =
                folder.strip_prefix("~/").map_or_else(|| folder.into(), |below| self.user_home.join(below));
            if folder.is_dir() && rules.toolchain_folders.insert(folder.clone()) {
                report.folders.push(folder);
            }
        }
        if preset.project_programs == ProjectPrograms::Allowed {
            self.allow_project_programs(rules, report);
        }
    }

    fn check_forbidden(&self, name: &str) -> Result<(), AllowError> {
        let forbids = |rule: &&String| {
            name.strip_prefix(rule.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        match self.forbidden_commands.iter().find(forbids) {
            Some(_) => Err(AllowError::Forbidden(name.to_owned())),
            None => Ok(()),
        }
    }
}

impl WorkspaceRules {
    /// Takes back the permission of a program or a script. Returns false if the workspace didn't have it.
    pub fn disallow(&mut self, name: &str, script: Option<&Path>) -> bool {
        let removed_script = script.is_some_and(|script| self.scripts.remove(script).is_some());
        let removed_pin = self.programs.remove(name).is_some();
        self.allowed_commands.remove(name) || removed_pin || removed_script
    }
}

/// Rejects names that no command has, or that would be taken for an option.
fn check_name(name: &str) -> Result<(), AllowError> {
    let is_bad = |letter: char| letter == '/' || letter.is_whitespace() || letter.is_control();
    let is_name =
        !name.is_empty() && !name.starts_with('-') && !name.contains(is_bad) && !matches!(name, "." | "..");
    if is_name { Ok(()) } else { Err(AllowError::NotAName(name.to_owned())) }
}
