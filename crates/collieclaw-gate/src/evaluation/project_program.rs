//! Programs that are files of the workspace: built by a compiler, installed by a package manager, or written by somebody.
//!
//! A listed interpreter or build tool runs the same files without a question about each of them, so the operator can allow
//! them as a whole ([`ProjectPrograms`]). They run only where every program is judged when it is executed (C17).

use std::path::{Path, PathBuf};

use super::command::JudgingPhase;
use super::{CommandFolder, ExecutedProgram, ShellEvaluation};
use crate::facts::PathStatus;
use crate::path::{PathAccess, is_command_folder, normalize_path, steers_programs};
use crate::policy::{DEFAULT_ALLOWED_COMMANDS, GatePolicy, ProjectPrograms};
use crate::programs::{CommandArgument, ProgramKind, ProgramSpec};
use crate::reason::GateReason;

/// The reason against a line that runs a file which it has downloaded.
pub(super) const RUNS_DOWNLOAD: GateReason = GateReason::Destructive { what: "runs code that it downloads" };

impl ShellEvaluation<'_> {
    /// Judges a command that names a program of the workspace by its path. Returns false if it is no such program.
    pub(super) fn judge_project_program(
        &mut self,
        first: &CommandArgument,
        arguments: &[CommandArgument],
        cwd: &CommandFolder,
    ) -> bool {
        let Some(name) = first.text.as_deref().filter(|name| name.contains('/')) else { return false };
        if (cwd.folder.is_none() && !name.starts_with('/')) || !self.judges_executions() {
            return false;
        }
        let place = self.base_folder(cwd).join(name);
        let written = normalize_path(&place);
        if written.starts_with(&self.policy.workspace)
            && let PathStatus::File { leads_to, .. } = self.facts.inspect_path(&place)
            && !leads_to.starts_with(&self.policy.workspace)
        {
            // The program of a virtual environment is a symlink to the system's.
            return self.judge_linked_program(&leads_to, first, arguments, cwd);
        }
        if !self.is_project_program(name, cwd) {
            return false;
        }
        self.needs_shell = true;
        self.judge_path(name, PathAccess::Read, cwd);
        self.check_downloaded(name, cwd);
        self.findings.add(GateReason::ProjectProgram { path: name.to_owned() });
        for text in arguments.iter().filter_map(|argument| argument.text.as_deref()) {
            self.judge_possible_path(text, cwd);
        }
        true
    }

    /// Returns true if the operator allows programs of the workspace, and the path of a command names one, or a place at
    /// which an earlier command may build one.
    pub(super) fn is_project_program(&self, name: &str, cwd: &CommandFolder) -> bool {
        if !name.contains('/')
            || (cwd.folder.is_none() && !name.starts_with('/'))
            || self.policy.project_programs == ProjectPrograms::Refused
        {
            return false;
        }
        let place = self.base_folder(cwd).join(name);
        let written = normalize_path(&place);
        is_command_folder(&written, self.policy)
            || match self.facts.inspect_path(&place) {
                PathStatus::File { leads_to, .. } | PathStatus::Missing { leads_to } => {
                    [&written, &leads_to].iter().all(|place| is_project_place(place, self.policy))
                }
                _ => false,
            }
    }

    /// Judges a path that leads to a listed program of the system as that program. Returns false if it leads elsewhere.
    fn judge_linked_program(
        &mut self,
        leads_to: &Path,
        first: &CommandArgument,
        arguments: &[CommandArgument],
        cwd: &CommandFolder,
    ) -> bool {
        let Some(listed) = self.find_listed_name(leads_to) else { return false };
        // The shell starts the program through the symlink, which tells it where its libraries are.
        self.needs_shell = true;
        let name = CommandArgument { text: Some(listed), at: first.at };
        let words: Vec<_> = std::iter::once(name).chain(arguments.iter().cloned()).collect();
        self.judge_program(&words, cwd, JudgingPhase::Words);
        true
    }

    /// Remembers a file that a command of the line downloads, as written and with all links resolved.
    pub(super) fn add_downloaded_file(&mut self, path: &str, cwd: &CommandFolder) {
        self.downloaded_files.extend(self.places_of(path, cwd));
    }

    /// Refuses to run a file that an earlier command of the line has downloaded.
    pub(super) fn check_downloaded(&mut self, path: &str, cwd: &CommandFolder) {
        if !self.downloaded_files.is_empty()
            && self.places_of(path, cwd).iter().any(|place| self.is_downloaded(place))
        {
            self.findings.add(RUNS_DOWNLOAD);
        }
    }

    /// Refuses a name that can mean a downloaded file, because the line has changed where the shell looks for programs.
    pub(super) fn check_searched_program(&mut self, name: &str) {
        let has_name = |file: &PathBuf| file.file_name().is_some_and(|known| known == name);
        if self.search_path_may_change && self.downloaded_files.iter().any(has_name) {
            self.findings.add(RUNS_DOWNLOAD);
        }
    }

    /// Returns true for a downloaded file, also if its folder is an argument of its own (`curl --output-dir bin -O …`).
    pub(super) fn is_downloaded(&self, place: &Path) -> bool {
        let has_name = |file: &PathBuf| file.file_name() == place.file_name();
        self.downloaded_files.contains(place)
            || place.parent().is_some_and(|folder| self.downloaded_files.contains(folder))
                && self.downloaded_files.iter().any(has_name)
    }

    /// Returns the place of a path as written, and with all links resolved.
    fn places_of(&self, path: &str, cwd: &CommandFolder) -> Vec<PathBuf> {
        let place = self.base_folder(cwd).join(path);
        let mut places = vec![normalize_path(&place)];
        if let PathStatus::Missing { leads_to }
        | PathStatus::File { leads_to, .. }
        | PathStatus::Folder { leads_to } = self.facts.inspect_path(&place)
        {
            places.push(leads_to);
        }
        places
    }

    /// Judges an executed program of the line that is a file of the workspace. Returns false if it is no such program.
    pub(super) fn judge_executed_project_program(&mut self, executed: &ExecutedProgram<'_>) -> bool {
        let ExecutedProgram { program, arguments, folder, .. } = *executed;
        let is_there = is_project_place(program, self.policy) || is_command_folder(program, self.policy);
        if !is_there || self.policy.project_programs == ProjectPrograms::Refused {
            return false;
        }
        let (name, arguments) = arguments.split_first().map_or(("", arguments), |(name, rest)| (name, rest));
        // Names that everybody knows always mean the programs of the system, whatever `PATH` says.
        if DEFAULT_ALLOWED_COMMANDS.contains(&name) || self.find_false_command(executed).is_some() {
            return false;
        }
        if self.is_downloaded(program) {
            self.findings.add(RUNS_DOWNLOAD);
        }
        self.findings.add(GateReason::ProjectProgram { path: program.display().to_string() });
        let cwd = CommandFolder { folder: Some(folder.to_owned()) };
        for text in arguments {
            self.judge_possible_path(text, &cwd);
        }
        true
    }
}

/// Returns true for a program that fetches data from another machine.
pub(super) fn downloads(name: &str) -> bool {
    ProgramSpec::find_by_name(name).is_some_and(|program| program.downloads)
}

/// Returns true for a shell or an interpreter, which runs the files that it reads.
pub(super) fn runs_files(name: &str) -> bool {
    let kind = ProgramSpec::find_described(name).map(|program| program.kind);
    matches!(kind, Some(ProgramKind::Shell | ProgramKind::Interpreter))
}

/// Returns true for places of the workspace from which programs may run.
pub(super) fn is_project_place(place: &Path, policy: &GatePolicy) -> bool {
    place.starts_with(&policy.workspace) && !steers_programs(place)
}
