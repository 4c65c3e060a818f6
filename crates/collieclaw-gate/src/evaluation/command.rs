//! One command: its name, what is known about it, and what its words mean to it.

use super::{BracesMeaning, CommandFolder, ShellEvaluation, destructive, variable};
use crate::path::PathAccess;
use crate::plan::PlannedAction;
use crate::programs::{CommandArgument, ProgramSpec};
use crate::reason::GateReason;
use crate::shell::{self, BytePosition, SimpleCommand};

/// Lines inside lines inside lines are no command that anyone writes.
const MAX_LINE_NESTING: usize = 8;

/// The kernel follows no longer path.
const LONGEST_NAME: usize = 4096;

impl ShellEvaluation<'_> {
    /// Judges a command. What it does, if that can be planned.
    pub(super) fn judge_simple_command(
        &mut self,
        simple: &SimpleCommand,
        stand: &mut CommandFolder,
    ) -> Option<PlannedAction> {
        let mut known = true;
        for word in simple.words.iter().chain(simple.assignments.iter().map(|assignment| &assignment.value)) {
            known &= !self.judge_word_scripts(word, stand);
        }
        let Some(first) = simple.words.first() else {
            if simple.assignments.is_empty() {
                return Some(PlannedAction::Nothing);
            }
            for assignment in &simple.assignments {
                let value = self.known_text(&assignment.value);
                variable::judge(&assignment.name, value.as_deref(), &mut self.findings);
            }
            self.add_unknowable("a variable that is set changes the shell itself", simple.at);
            return None;
        };
        let name_at = first.at;
        // Judged as written, before patterns are expanded: `rm -rf *` is one thing, its files are another.
        let written: Vec<_> = simple.words.iter().map(|word| self.as_written(word)).collect();
        self.judge_program(&written, stand, JudgingPhase::Name);
        let expanded = if known { self.expand_words(simple, stand) } else { None };
        let words = expanded.as_deref().unwrap_or(&written);
        let name = words.first().and_then(|word| word.text.clone());
        for assignment in &simple.assignments {
            let value = self.known_text(&assignment.value);
            self.judge_variable(&assignment.name, value.as_deref(), name.as_deref());
        }
        self.judge_program(words, stand, JudgingPhase::Words);
        let variables: Option<Vec<_>> = simple
            .assignments
            .iter()
            .map(|assignment| Some((assignment.name.clone(), self.known_text(&assignment.value)?)))
            .collect();
        let words: Vec<String> = expanded?.into_iter().map(|word| word.text).collect::<Option<_>>()?;
        self.plan_action(words, variables?, name_at, stand)
    }

    /// What a command with all its words known does.
    fn plan_action(
        &mut self,
        words: Vec<String>,
        variables: Vec<(String, String)>,
        at: BytePosition,
        stand: &mut CommandFolder,
    ) -> Option<PlannedAction> {
        let words_after: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        match (words.first()?.as_str(), words_after.as_slice()) {
            ("cd", [folder]) if !folder.starts_with('-') => self.plan_change_folder(folder, at, stand),
            ("cd", _) => {
                stand.folder = None;
                self.add_unknowable("where this `cd` leads is known only when it runs", at);
                None
            }
            (":", _) => Some(PlannedAction::Nothing),
            (name, _) if is_shell_builtin(name) => None,
            (name, _) => {
                let base = name.rsplit('/').next().unwrap_or(name);
                let Some(program) =
                    self.facts.find_program(base).filter(|_| self.is_system_program(name, base, stand))
                else {
                    self.add_unknowable("no program of the system has this name", at);
                    return None;
                };
                Some(PlannedAction::Run { program, words, variables })
            }
        }
    }

    /// A variable before a command. One that no program is known to obey harms no program that is known.
    pub(super) fn judge_variable(&mut self, name: &str, value: Option<&str>, program: Option<&str>) {
        if program.and_then(ProgramSpec::find_by_name).is_none() {
            self.findings.add(GateReason::Variable { name: name.to_owned() });
        } else {
            variable::judge(name, value, &mut self.findings);
        }
    }

    /// Judges a program with its words, and the programs it runs in turn.
    pub(super) fn judge_program(
        &mut self,
        words: &[CommandArgument],
        stand: &CommandFolder,
        judging: JudgingPhase,
    ) {
        let Some((first, arguments)) = words.split_first() else { return };
        let Some(name) = first.text.as_deref() else {
            let column = self.column(first.at);
            self.findings.add(GateReason::UnknownCommand { column });
            return;
        };
        if self.braces == BracesMeaning::FileNames && name.contains("{}") {
            let column = self.column(first.at);
            self.findings.add(GateReason::UnknownCommand { column });
        }
        if name.len() > LONGEST_NAME {
            return self.add_limit_exceeded("no program has such a long name");
        }
        let base = name.rsplit('/').next().unwrap_or(name);
        // Also as it is expanded: `r?` may be a file of that name.
        if let Some(forbidden) = self.find_forbidden(base) {
            self.findings.add(GateReason::ForbiddenCommand { name: forbidden });
        }
        if judging == JudgingPhase::Name
            && let Some(what) = destructive::destructive_effect(base, arguments)
        {
            self.findings.add(GateReason::Destructive { what });
        }
        if !self.is_system_program(name, base, stand) && judging == JudgingPhase::Words {
            self.findings.add(GateReason::ProgramByPath { path: name.to_owned() });
        }
        if judging == JudgingPhase::Words && self.judge_builtin(base, arguments, first.at, stand) {
            return;
        }
        match ProgramSpec::find_by_name(base) {
            Some(program) => self.judge_known_program(base, program, arguments, stand, judging),
            None if judging == JudgingPhase::Words => self.judge_unknown_program(base, arguments, stand),
            None => {}
        }
    }

    /// Judges the command inside another.
    pub(super) fn judge_inner_command(
        &mut self,
        words: &[CommandArgument],
        stand: &CommandFolder,
        judging: JudgingPhase,
    ) {
        let left = self.budget.inner_words.checked_sub(words.len());
        let (Some(left), 1..) = (left, self.budget.wrappers) else {
            return self.add_limit_exceeded("commands are nested too deeply");
        };
        if let Some((first, folders)) = words.split_first().filter(|(first, _)| has_no_program(first)) {
            self.add_unknowable("no program can do what the shell does itself", first.at);
            for folder in folders.iter().filter_map(|folder| folder.text.as_deref()) {
                self.judge_path(folder, PathAccess::Read, stand);
            }
        }
        self.budget.inner_words = left;
        self.budget.wrappers -= 1;
        self.judge_program(words, stand, judging);
        self.budget.wrappers += 1;
    }

    /// A line that another shell would read. It is judged, but never planned: that would be a second reader.
    pub(super) fn judge_inner_line(&mut self, line: &str, stand: &CommandFolder) {
        self.add_unknowable("a shell would read this text again", BytePosition(0));
        let bytes = self.budget.inner_bytes.checked_sub(line.len());
        let (Some(bytes), 0..MAX_LINE_NESTING, 1..) = (bytes, self.nesting, self.budget.inner_lines) else {
            return self.add_limit_exceeded("lines are nested too deeply");
        };
        self.budget.inner_bytes = bytes;
        self.budget.inner_lines -= 1;
        match shell::parse(line) {
            Ok(parsed) => {
                self.nesting += 1;
                let here = std::mem::replace(&mut self.here_documents, parsed.here_documents);
                self.judge_nested_script(&parsed.script, stand);
                self.here_documents = here;
                self.nesting -= 1;
            }
            Err(unreadable) => self.findings.add(GateReason::Unreadable { what: unreadable.what, column: 1 }),
        }
    }

    /// What the shell does itself. Whether this was such a thing.
    fn judge_builtin(
        &mut self,
        name: &str,
        arguments: &[CommandArgument],
        at: BytePosition,
        stand: &CommandFolder,
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
            "eval" => {
                if let Some(words) = text() {
                    self.judge_inner_line(&words.join(" "), stand);
                }
            }
            "trap" => {
                if let Some(line) = text().and_then(|words| words.first().copied()) {
                    self.judge_inner_line(line, stand);
                }
            }
            "alias" => {
                for line in arguments.iter().filter_map(|argument| argument.text.as_deref()?.split_once('='))
                {
                    self.judge_inner_line(line.1, stand);
                }
            }
            // The command inside is judged with its words, too.
            "builtin" | "command" | "exec" => {
                self.add_unknowable("this changes the shell itself", at);
                return false;
            }
            other if is_shell_builtin(other) => {}
            _ => return false,
        }
        self.add_unknowable("this changes the shell itself", at);
        true
    }

    /// `mkfs` forbids `mkfs.ext4`, too.
    fn find_forbidden(&self, name: &str) -> Option<String> {
        let forbids = |rule: &&String| {
            name.strip_prefix(rule.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.policy.forbidden_commands.iter().find(forbids).map(|_| name.to_owned())
    }

    /// Whether a name stands for the program of the system: without a slash, or as just another way to write it.
    fn is_system_program(&self, name: &str, base: &str, stand: &CommandFolder) -> bool {
        use crate::facts::PathStatus;
        if !name.contains('/') {
            return true;
        }
        let Some(folder) = &stand.folder else { return false };
        let seen = self.facts.inspect_path(&folder.join(name));
        matches!(seen, PathStatus::File { leads_to, .. } if self.facts.find_program(base).is_some_and(|program| program == leads_to))
    }
}

/// What is looked at: first what a command is called, as it is written; then what its words do, as they are expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JudgingPhase {
    Name,
    Words,
}

/// What changes the shell's own folder, or nothing: there is no program for it.
fn has_no_program(first: &CommandArgument) -> bool {
    matches!(first.text.as_deref(), Some("cd" | ":"))
}

/// What no program does, but the shell itself.
fn is_shell_builtin(name: &str) -> bool {
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
