//! Lines that a program runs by itself, such as the one of `git rebase --exec`.
//!
//! The text of such a line is judged with the program. Its commands are not judged as commands of the line when they are
//! executed, because the program may also start other programs. So a command must not lead to a file that commands of
//! the line can write, which `PATH` can do.

use std::path::PathBuf;

use super::command::is_shell_builtin;
use super::line_wrapper::passes_line_on;
use super::project_program::{RUNS_DOWNLOAD, is_project_place};
use super::{CommandFolder, EvaluationSubject, ExecutedProgram, ShellEvaluation};
use crate::facts::PathStatus;
use crate::path::{is_command_folder, normalize_path};
use crate::policy::{DEFAULT_ALLOWED_COMMANDS, ProjectPrograms};
use crate::reason::GateReason;

/// Builtins of every shell that may run such a line. Other builtins of bash are names of programs for `dash`.
const POSIX_BUILTINS: [&str; 39] = [
    "!", ".", ":", "[", "alias", "bg", "break", "cd", "command", "continue", "echo", "eval", "exec", "exit",
    "export", "false", "fg", "getopts", "hash", "jobs", "kill", "local", "printf", "pwd", "read", "readonly",
    "return", "set", "shift", "test", "times", "trap", "true", "type", "ulimit", "umask", "unalias", "unset",
    "wait",
];

impl ShellEvaluation<'_> {
    /// Judges a line that a program passes on to a shell, or runs by itself.
    pub(super) fn judge_line_of_program(&mut self, program: &str, line: &str, cwd: &CommandFolder) {
        let is_own = self.subject == EvaluationSubject::ExecutedProgram && !passes_line_on(program);
        // Without such a character, `git` looks for the program without a shell, which has no builtins then.
        let has_shell =
            line.contains(|letter: char| !letter.is_ascii_alphanumeric() && !"-_./+".contains(letter));
        if is_own && !has_shell {
            self.check_searched_file(line);
        }
        let was_own = self.is_line_of_program;
        self.is_line_of_program |= is_own;
        self.judge_inner_line(line, cwd);
        self.is_line_of_program = was_own;
    }

    /// Refuses a command of such a line that `PATH` can lead to a file which commands of the line can write.
    pub(super) fn check_command_of_program(&mut self, name: &str) {
        if self.is_line_of_program && !POSIX_BUILTINS.contains(&name) {
            self.check_searched_file(name);
        }
    }

    fn check_searched_file(&mut self, name: &str) {
        if name.contains('/') || self.writable_search_folders.is_empty() {
            return;
        }
        let is_missing =
            |place: &PathBuf| matches!(self.facts.inspect_path(place), PathStatus::Missing { .. });
        let places: Vec<PathBuf> =
            self.writable_search_folders.iter().map(|folder| folder.join(name)).collect();
        let found = places.iter().find(|place| !is_missing(place));
        // A name that no program of the system has can only mean a file that is still to come.
        let is_unknown = self.facts.find_program(name).is_none();
        let Some(place) = found.or(places.first().filter(|_| is_unknown)) else { return };
        if self.is_downloaded(place) {
            self.findings.add(RUNS_DOWNLOAD);
        }
        let path = place.display().to_string();
        // Names that everybody knows mean the programs of the system and the builtins, whatever `PATH` says.
        let is_known = DEFAULT_ALLOWED_COMMANDS.contains(&name) || is_shell_builtin(name);
        let is_allowed =
            self.policy.project_programs == ProjectPrograms::Allowed && !is_known && found.is_some();
        self.findings.add(if is_allowed {
            GateReason::ProjectProgram { path }
        } else {
            GateReason::ProgramByPath { path }
        });
    }

    /// Returns the folders in which an executed program looks for others and to which commands can write.
    pub(super) fn find_writable_search_folders(&self, executed: &ExecutedProgram<'_>) -> Vec<PathBuf> {
        let path = executed.environment.iter().find(|(name, _)| name == "PATH");
        let folders = path.into_iter().flat_map(|(_, folders)| folders.split(':'));
        folders
            .map(|folder| normalize_path(&executed.folder.join(folder)))
            .filter(|folder| {
                is_project_place(folder, self.policy)
                    || is_command_folder(folder, self.policy)
                    || executed.can_replace(folder)
            })
            .collect()
    }
}
