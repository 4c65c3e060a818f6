//! Judges a single command: its name, its variables, and the programs that it runs in turn.

use std::path::{Path, PathBuf};

use super::{BracesMeaning, CommandFolder, EvaluationSubject, ShellEvaluation, destructive, variable};
use crate::facts::PathStatus;
use crate::path::{PathAccess, find_objection, normalize_path};
use crate::plan::PlannedAction;
use crate::policy::ProjectPrograms;
use crate::programs::{CommandArgument, ProgramSpec};
use crate::reason::GateReason;
use crate::shell::{self, BytePosition, SimpleCommand};
use crate::system_files::is_open_in_etc;
use crate::verdict::ReasonWeight;

/// The maximum depth of nested shell lines (`sh -c '…'`). People don't write deeper ones.
const MAX_LINE_NESTING: usize = 8;

/// The longest path that the kernel accepts (`PATH_MAX`).
const LONGEST_NAME: usize = 4096;

impl ShellEvaluation<'_> {
    /// Judges a command, and returns its action if the command can be planned.
    pub(super) fn judge_simple_command(
        &mut self,
        simple: &SimpleCommand,
        cwd: &mut CommandFolder,
    ) -> Option<PlannedAction> {
        let mut known = true;
        for word in simple.words.iter().chain(simple.assignments.iter().map(|assignment| &assignment.value)) {
            known &= !self.judge_word_scripts(word, cwd);
        }
        let Some(first) = simple.words.first() else {
            if simple.assignments.is_empty() {
                return Some(PlannedAction::Nothing);
            }
            self.search_path_may_change |= sets_search_path(simple);
            // A shell that judges its commands shows the variables that it exports with each command.
            for assignment in simple.assignments.iter().filter(|_| !self.facts.judges_executions()) {
                let value = self.known_text(&assignment.value);
                variable::judge(&assignment.name, value.as_deref(), self.policy, &mut self.findings);
            }
            self.add_unknowable(
                "setting a variable changes the shell itself; put it before the command that needs it",
                simple.at,
            );
            return None;
        };
        let name_at = first.at;
        // Judge the words before patterns are expanded, because `rm -rf *` is destructive whichever files
        // match.
        let mut written: Vec<_> = simple.words.iter().map(|word| self.as_written(word)).collect();
        self.judge_program(&written, cwd, JudgingPhase::Name);
        for (argument, _) in
            written.iter_mut().zip(&simple.words).filter(|(_, word)| self.means_shell_home(word))
        {
            argument.text = None;
        }
        let expanded = if known { self.expand_words(simple, cwd) } else { None };
        let words = expanded.as_deref().unwrap_or(&written);
        let name = words.first().and_then(|word| word.text.clone());
        // A builtin runs in the shell, which shows what it exports with each program.
        let in_shell = name.as_deref().is_some_and(is_shell_builtin) && self.judges_executions();
        for assignment in simple.assignments.iter().filter(|_| !in_shell) {
            let value = self.known_text(&assignment.value);
            self.judge_variable(&assignment.name, value.as_deref(), name.as_deref(), cwd);
        }
        self.judge_program(words, cwd, JudgingPhase::Words);
        let changes_folder = match name.as_deref() {
            Some("cd") => expanded.is_none(),
            Some("." | "builtin" | "command" | "eval" | "popd" | "pushd" | "source") | None => true,
            Some(name) => self.functions.contains(name),
        };
        if changes_folder && self.judges_executions() {
            cwd.folder = None;
        }
        if (sets_search_path(simple) || sets_home(simple)) && self.judges_executions() {
            // The shell looks for this program in the new folders, and the sandbox gives each planned program its own home.
            return None;
        }
        let variables: Option<Vec<_>> = simple
            .assignments
            .iter()
            .map(|assignment| Some((assignment.name.clone(), self.known_text(&assignment.value)?)))
            .collect();
        let words: Vec<String> = expanded?.into_iter().map(|word| word.text).collect::<Option<_>>()?;
        self.plan_action(words, variables?, name_at, cwd)
    }

    /// Returns the action of a command whose words are all known.
    fn plan_action(
        &mut self,
        words: Vec<String>,
        variables: Vec<(String, String)>,
        at: BytePosition,
        cwd: &mut CommandFolder,
    ) -> Option<PlannedAction> {
        let words_after: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        match (words.first()?.as_str(), words_after.as_slice()) {
            ("cd", [folder]) if !folder.starts_with('-') => self.plan_change_folder(folder, at, cwd),
            ("cd", _) => {
                cwd.folder = None;
                self.add_unknowable("the folder of this `cd` is known only when it runs; name a folder", at);
                None
            }
            (":", _) => Some(PlannedAction::Nothing),
            (name, _) if is_shell_builtin(name) => None,
            ("kill", _) if self.judges_executions() => None,
            (name, _) => {
                let base = name.rsplit('/').next().unwrap_or(name);
                let Some(program) = self.locate_program(name, base, cwd) else {
                    // A shell that runs the line anyway, or goes on with another command, says by itself that a listed
                    // program is missing. A name with a slash was judged as a path.
                    let is_listed = self.policy.allowed_commands.contains(base);
                    let goes_on = self.has_alternative && self.judges_executions();
                    if self.needs_shell && (is_listed || name != base)
                        || goes_on && is_listed
                        || self.may_be_project_program(base)
                    {
                        self.add_unknowable("no program with this name is installed yet", at);
                    } else {
                        self.findings.add(GateReason::NotInstalled { name: name.to_owned() });
                    }
                    return None;
                };
                Some(PlannedAction::Run { program, words, variables })
            }
        }
    }

    /// Judges a variable that is set for a program. Programs ignore all variables except the known dangerous ones; a
    /// program that the table doesn't describe is trusted with the others once the operator lists it.
    pub(super) fn judge_variable(
        &mut self,
        name: &str,
        value: Option<&str>,
        program: Option<&str>,
        cwd: &CommandFolder,
    ) {
        // Without a name, the program is known only when it runs.
        if program.is_none() && !self.judges_executions() {
            return self.findings.add(GateReason::Variable { name: name.to_owned() });
        }
        if name == "PATH" && self.judges_executions() {
            self.search_path_may_change = true;
            return self.add_unknowable("`PATH` says where programs are", BytePosition(0));
        }
        if variable::names_own_libraries(name, value, self.policy)
            && program.is_some_and(|program| self.is_project_program(program, cwd))
        {
            return;
        }
        if value.is_some_and(|value| variable::is_home_of_commands(name, value, self.policy))
            && self.judges_executions()
        {
            return self
                .add_unknowable("setting `HOME` needs a real shell; leave `HOME=` out", BytePosition(0));
        }
        // A program with a value that only the shell knows is judged with this value when it is executed.
        if value.is_none() && self.judges_executions() {
            return;
        }
        variable::judge(name, value, self.policy, &mut self.findings);
    }

    /// Returns true if a name may mean a program of the project that the line has put into reach, as `source
    /// .venv/bin/activate` does. A program of the system with this name has to be listed.
    pub(super) fn may_be_project_program(&mut self, name: &str) -> bool {
        self.search_path_may_change
            && self.policy.project_programs == ProjectPrograms::Allowed
            && self.judges_executions()
            && self.resolve_program(name).is_none()
    }

    /// Judges a program with its arguments, and the programs that it runs in turn.
    pub(super) fn judge_program(
        &mut self,
        words: &[CommandArgument],
        cwd: &CommandFolder,
        phase: JudgingPhase,
    ) {
        let Some((first, arguments)) = words.split_first() else { return };
        let Some(name) = first.text.as_deref() else {
            return self.add_unknown_command(first.at);
        };
        if self.braces == BracesMeaning::FileNames && name.contains("{}") {
            self.add_unknown_command(first.at);
        }
        if name.len() > LONGEST_NAME {
            return self.add_limit_exceeded("the name of this command is too long");
        }
        let base = name.rsplit('/').next().unwrap_or(name);
        // Check the expanded name, too: the pattern `r?` may match a file named `rm`.
        if let Some(forbidden) = self.find_forbidden(base) {
            self.findings.add(GateReason::ForbiddenCommand { name: forbidden });
        }
        if phase == JudgingPhase::Name
            && let Some(what) = destructive::destructive_effect(base, arguments)
        {
            self.findings.add(GateReason::Destructive { what });
        }
        if self.functions.contains(name) && self.judges_executions() {
            return self.add_unknowable("a function needs a real shell", first.at);
        }
        if phase == JudgingPhase::Words {
            self.check_searched_program(name);
            self.check_command_of_program(name);
            match self.inspect_script(name, cwd) {
                ScriptStatus::Accepted(_) => {
                    if self.judges_executions() {
                        self.add_unknowable("a script of the workspace runs commands of its own", first.at);
                    }
                    return self.judge_script_arguments(name, arguments, cwd);
                }
                _ if self.judge_project_program(first, arguments, cwd) => return,
                ScriptStatus::Changed => {
                    self.findings.add(GateReason::ChangedScript { path: name.to_owned() });
                }
                ScriptStatus::NotAllowed if self.is_beside_unknown_folder(name, cwd) => {
                    return self
                        .add_unknowable("the folder of this program is known only when it runs", first.at);
                }
                ScriptStatus::NotAllowed if !self.is_known_program(name, base, cwd) => {
                    self.findings.add(GateReason::ProgramByPath { path: name.to_owned() });
                }
                ScriptStatus::NotAllowed => self.check_pinned_program(base),
            }
        }
        if phase == JudgingPhase::Words
            && self.subject == EvaluationSubject::Line
            && self.judge_builtin(base, arguments, first.at, cwd)
        {
            return;
        }
        match ProgramSpec::find_described(base) {
            Some(program) if self.judge_line_wrapper(base, program, arguments, cwd, phase) => {}
            Some(program) => self.judge_known_program(base, program, arguments, cwd, phase),
            None if phase == JudgingPhase::Words => self.judge_unknown_program(base, arguments, cwd),
            None => {}
        }
    }

    /// Judges a command that another command runs, such as the `ls` of `env ls`.
    pub(super) fn judge_inner_command(
        &mut self,
        words: &[CommandArgument],
        cwd: &CommandFolder,
        phase: JudgingPhase,
    ) {
        let left = self.budget.inner_words.checked_sub(words.len());
        let (Some(left), 1..) = (left, self.budget.wrappers) else {
            return self.add_limit_exceeded("commands are nested too deeply");
        };
        if let Some((first, folders)) = words.split_first().filter(|(first, _)| has_no_program(first)) {
            self.add_unknowable("this is a part of the shell, and no other program can run it", first.at);
            for folder in folders.iter().filter_map(|folder| folder.text.as_deref()) {
                self.judge_path(folder, PathAccess::Read, cwd);
            }
        }
        self.budget.inner_words = left;
        self.budget.wrappers -= 1;
        self.judge_program(words, cwd, phase);
        self.budget.wrappers += 1;
    }

    /// Judges a line that a second shell would parse (`sh -c '…'`). Such a line is never planned, because the
    /// second shell could parse it differently.
    pub(super) fn judge_inner_line(&mut self, line: &str, cwd: &CommandFolder) {
        self.add_unknowable(
            "a second shell would read this text; write its commands directly",
            BytePosition(0),
        );
        let bytes = self.budget.inner_bytes.checked_sub(line.len());
        let (Some(bytes), 0..MAX_LINE_NESTING, 1..) = (bytes, self.nesting, self.budget.inner_lines) else {
            return self.add_limit_exceeded("shell lines inside of shell lines are nested too deeply");
        };
        self.budget.inner_bytes = bytes;
        self.budget.inner_lines -= 1;
        match shell::parse(line) {
            Ok(parsed) => {
                self.nesting += 1;
                let here = std::mem::replace(&mut self.here_documents, parsed.here_documents);
                // The words are commands of a shell, whose builtins need no program.
                let subject = std::mem::replace(&mut self.subject, EvaluationSubject::Line);
                self.judge_nested_script(&parsed.script, cwd);
                self.subject = subject;
                self.here_documents = here;
                self.nesting -= 1;
            }
            // The shell that reads the text has its commands judged when it executes them.
            Err(unreadable) if self.judges_executions() => {
                self.add_unknowable(unreadable.what, BytePosition(0));
            }
            Err(unreadable) => self.findings.add(GateReason::Unreadable { what: unreadable.what, column: 1 }),
        }
    }

    /// Adds the reason that the name of a command is known only when it runs.
    fn add_unknown_command(&mut self, at: BytePosition) {
        if self.judges_executions() {
            return self.add_unknowable("the name of this command is known only when it runs", at);
        }
        let column = self.column(at, ReasonWeight::Blocked);
        self.findings.add(GateReason::UnknownCommand { column });
    }

    /// Judges a builtin of the shell, and returns true if the command was such a builtin.
    fn judge_builtin(
        &mut self,
        name: &str,
        arguments: &[CommandArgument],
        at: BytePosition,
        cwd: &CommandFolder,
    ) -> bool {
        let text =
            || -> Option<Vec<&str>> { arguments.iter().map(|argument| argument.text.as_deref()).collect() };
        match name {
            "cd" | ":" => {
                if name == ":" || arguments.is_empty() {
                    self.findings.add(GateReason::LooksOnly);
                }
                return true;
            }
            "." | "source" => {
                self.search_path_may_change = true;
                if let Some(file) = arguments.first().and_then(|file| file.text.as_deref()) {
                    self.judge_sourced_file(file, cwd);
                }
            }
            "export" | "declare" | "typeset" => self.search_path_may_change = true,
            "eval" => {
                self.search_path_may_change = true;
                if let Some(words) = text() {
                    self.judge_inner_line(&words.join(" "), cwd);
                }
            }
            "trap" => {
                // `trap - INT` and `trap -p` set nothing.
                if let Some(line) =
                    text().and_then(|words| words.first().copied().filter(|word| !word.starts_with('-')))
                {
                    self.judge_inner_line(line, cwd);
                }
            }
            "alias" => {
                for line in arguments.iter().filter_map(|argument| argument.text.as_deref()?.split_once('='))
                {
                    self.judge_inner_line(line.1, cwd);
                }
            }
            // These only say which program a name means.
            "type" => {
                self.findings.add(GateReason::LooksOnly);
                return true;
            }
            "command" if arguments.first().is_some_and(asks_for_a_program) => {
                self.findings.add(GateReason::LooksOnly);
                return true;
            }
            "enable" if text().is_none_or(|words| words.into_iter().any(loads_builtin)) => {
                self.add_argument_reason(name, "-f", "load code into the shell itself");
            }
            // The table describes these as wrappers, so the caller continues with the inner command.
            "builtin" | "command" | "exec" => {
                self.add_unknowable("this command changes the shell itself", at);
                return false;
            }
            // The processes that it can reach are those of the line.
            "kill" if self.judges_executions() => {}
            other if is_shell_builtin(other) => {}
            _ => return false,
        }
        self.add_unknowable("this command changes the shell itself", at);
        true
    }

    /// Refuses a file that no tool may touch, before the shell reads its commands. Other files outside of the workspace are
    /// left to the sandbox, because many lines try files that may be missing, such as `~/.bashrc`.
    fn judge_sourced_file(&mut self, file: &str, cwd: &CommandFolder) {
        self.check_downloaded(file, cwd);
        let place = normalize_path(&self.base_folder(cwd).join(file));
        if is_open_in_etc(&place, self.policy) {
            return;
        }
        let objection = find_objection(file, &place, self.policy);
        if let Some(reason @ (GateReason::ForbiddenPath { .. } | GateReason::OwnHome { .. })) = objection {
            self.findings.add(reason);
        }
    }

    /// Returns the name if a rule forbids it. A rule for `mkfs` also forbids `mkfs.ext4`.
    pub(super) fn find_forbidden(&self, name: &str) -> Option<String> {
        let forbids = |rule: &&String| {
            name.strip_prefix(rule.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.policy.forbidden_commands.iter().find(forbids).map(|_| name.to_owned())
    }

    /// Returns the file that a command runs: an accepted script of the workspace, the program that the operator has
    /// accepted for the name, or the program of the system.
    fn locate_program(&self, name: &str, base: &str, cwd: &CommandFolder) -> Option<PathBuf> {
        if let ScriptStatus::Accepted(script) = self.inspect_script(name, cwd) {
            return Some(script);
        }
        let program = match self.policy.pinned_programs.get(base) {
            Some(pinned) => self.is_still_trusted(pinned).then(|| pinned.clone()),
            None => self.facts.find_program(base),
        };
        program.filter(|_| self.is_known_program(name, base, cwd))
    }

    /// Returns true if an accepted program is still there, and neither other users nor tools can change it.
    fn is_still_trusted(&self, pinned: &Path) -> bool {
        !pinned.starts_with(&self.policy.workspace) && self.facts.is_trusted_program(pinned)
    }

    /// Adds a reason if the program that the operator has accepted for a name is no longer there.
    fn check_pinned_program(&mut self, name: &str) {
        if let Some(pinned) = self.policy.pinned_programs.get(name)
            && !self.is_still_trusted(pinned)
        {
            let path = pinned.display().to_string();
            self.findings.add(GateReason::ChangedProgram { name: name.to_owned(), path });
        }
    }

    /// Returns true if a name runs the program of the system or the accepted one: it has no slash, or the path leads
    /// to that same program.
    fn is_known_program(&self, name: &str, base: &str, cwd: &CommandFolder) -> bool {
        if !name.contains('/') {
            return true;
        }
        let Some(leads_to) = self.regular_file(name, cwd) else { return false };
        match self.policy.pinned_programs.get(base) {
            Some(pinned) => *pinned == leads_to,
            None => self.facts.find_program(base).is_some_and(|program| program == leads_to),
        }
    }

    /// Returns whether a name with a slash is a script that the operator has accepted with its current content.
    fn inspect_script(&self, name: &str, cwd: &CommandFolder) -> ScriptStatus {
        if !name.contains('/') || self.policy.allowed_scripts.is_empty() {
            return ScriptStatus::NotAllowed;
        }
        let Some(script) = self.regular_file(name, cwd) else { return ScriptStatus::NotAllowed };
        match self.policy.allowed_scripts.get(&script) {
            None => ScriptStatus::NotAllowed,
            Some(accepted) if self.facts.read_script(&script).is_some_and(|now| now.sha256 == *accepted) => {
                ScriptStatus::Accepted(script)
            }
            Some(_) => ScriptStatus::Changed,
        }
    }

    /// Returns true if a program is named relative to a folder that only the running shell knows.
    fn is_beside_unknown_folder(&mut self, name: &str, cwd: &CommandFolder) -> bool {
        let is_relative_path = name.contains('/') && !name.starts_with('/');
        is_relative_path && cwd.folder.is_none() && self.judges_executions()
    }

    /// Returns the real path of a regular file.
    fn regular_file(&self, name: &str, cwd: &CommandFolder) -> Option<PathBuf> {
        if cwd.folder.is_none() && !name.starts_with('/') {
            return None;
        }
        match self.facts.inspect_path(&self.base_folder(cwd).join(name)) {
            PathStatus::File { leads_to, .. } => Some(leads_to),
            _ => None,
        }
    }
}

/// The relation of a command to the scripts that the operator has accepted.
enum ScriptStatus {
    NotAllowed,
    /// The script has the accepted content. This is its real path.
    Accepted(PathBuf),
    /// The script has other content now.
    Changed,
}

/// The phase of judging a command: first its name and words as written, then its words after expansion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JudgingPhase {
    Name,
    Words,
}

/// Returns true if a command sets the folders in which the shell looks for programs.
fn sets_search_path(simple: &SimpleCommand) -> bool {
    simple.assignments.iter().any(|assignment| assignment.name == "PATH")
}

/// Returns true if a command gets another home.
fn sets_home(simple: &SimpleCommand) -> bool {
    simple.assignments.iter().any(|assignment| assignment.name == "HOME")
}

/// Returns true for an argument with which `enable` loads a library. It also looks for one with the name of an unknown
/// builtin.
fn loads_builtin(word: &str) -> bool {
    const BUILTIN_PROGRAMS: [&str; 10] =
        [":", "[", "cd", "echo", "false", "kill", "printf", "pwd", "test", "true"];
    match word.strip_prefix('-') {
        // `-af` stands for `-a -f`.
        Some(letters) => letters.contains('f'),
        None => !is_shell_builtin(word) && !BUILTIN_PROGRAMS.contains(&word),
    }
}

/// Returns true for the flags with which `command` only prints the path of a program.
fn asks_for_a_program(argument: &CommandArgument) -> bool {
    matches!(argument.text.as_deref(), Some("-v" | "-V"))
}

/// Returns true for builtins that exist only in the shell, so that a wrapper such as `env` can't run them.
fn has_no_program(first: &CommandArgument) -> bool {
    matches!(first.text.as_deref(), Some("cd" | ":"))
}

/// Returns true for commands that the shell implements itself instead of running a program.
pub(super) fn is_shell_builtin(name: &str) -> bool {
    const SHELL_BUILTINS: [&str; 51] = [
        ".",
        "alias",
        "bg",
        "bind",
        "break",
        "builtin",
        "caller",
        "command",
        "compgen",
        "complete",
        "compopt",
        "continue",
        "declare",
        "dirs",
        "disown",
        "enable",
        "eval",
        "exec",
        "exit",
        "export",
        "fc",
        "fg",
        "getopts",
        "hash",
        "help",
        "history",
        "jobs",
        "let",
        "local",
        "logout",
        "mapfile",
        "popd",
        "pushd",
        "read",
        "readarray",
        "readonly",
        "return",
        "set",
        "shift",
        "shopt",
        "source",
        "suspend",
        "times",
        "trap",
        "type",
        "typeset",
        "ulimit",
        "umask",
        "unalias",
        "unset",
        "wait",
    ];
    SHELL_BUILTINS.contains(&name)
}
