//! One command: its name, what is known about it, and what its words mean to it.

use super::{Hearing, Names, Stand, destructive, variable};
use crate::path::Use;
use crate::plan::Act;
use crate::programs::{Argument, Program};
use crate::reason::Reason;
use crate::shell::{self, At, Simple};

/// Lines inside lines inside lines are no command that anyone writes.
const INNERMOST: usize = 8;

/// The kernel follows no longer path.
const LONGEST_NAME: usize = 4096;

impl Hearing<'_> {
    /// Judges a command. What it does, if that can be planned.
    pub(super) fn simple(&mut self, simple: &Simple, stand: &mut Stand) -> Option<Act> {
        let mut known = true;
        for word in simple.words.iter().chain(simple.assignments.iter().map(|assignment| &assignment.value)) {
            known &= !self.word_scripts(word, stand);
        }
        let Some(first) = simple.words.first() else {
            if simple.assignments.is_empty() {
                return Some(Act::Nothing);
            }
            for assignment in &simple.assignments {
                let value = self.known(&assignment.value);
                variable::judge(&assignment.name, value.as_deref(), &mut self.findings);
            }
            self.unknowable("a variable that is set changes the shell itself", simple.at);
            return None;
        };
        let name_at = first.at;
        // Judged as written, before patterns are expanded: `rm -rf *` is one thing, its files are another.
        let written: Vec<_> = simple.words.iter().map(|word| self.as_written(word)).collect();
        self.run(&written, stand, Judging::Name);
        let expanded = if known { self.expanded(simple, stand) } else { None };
        let words = expanded.as_deref().unwrap_or(&written);
        let name = words.first().and_then(|word| word.text.clone());
        for assignment in &simple.assignments {
            let value = self.known(&assignment.value);
            self.variable(&assignment.name, value.as_deref(), name.as_deref());
        }
        self.run(words, stand, Judging::Words);
        let variables: Option<Vec<_>> = simple
            .assignments
            .iter()
            .map(|assignment| Some((assignment.name.clone(), self.known(&assignment.value)?)))
            .collect();
        let words: Vec<String> = expanded?.into_iter().map(|word| word.text).collect::<Option<_>>()?;
        self.act(words, variables?, name_at, stand)
    }

    /// What a command with all its words known does.
    fn act(
        &mut self,
        words: Vec<String>,
        variables: Vec<(String, String)>,
        at: At,
        stand: &mut Stand,
    ) -> Option<Act> {
        let words_after: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        match (words.first()?.as_str(), words_after.as_slice()) {
            ("cd", [folder]) if !folder.starts_with('-') => self.enter(folder, at, stand),
            ("cd", _) => {
                stand.folder = None;
                self.unknowable("where this `cd` leads is known only when it runs", at);
                None
            }
            (":", _) => Some(Act::Nothing),
            (name, _) if is_of_the_shell(name) => None,
            (name, _) => {
                let base = name.rsplit('/').next().unwrap_or(name);
                let Some(program) = self.facts.program(base).filter(|_| self.is_ours(name, base, stand))
                else {
                    self.unknowable("no program of the system has this name", at);
                    return None;
                };
                Some(Act::Run { program, words, variables })
            }
        }
    }

    /// A variable before a command. One that no program is known to obey harms no program that is known.
    pub(super) fn variable(&mut self, name: &str, value: Option<&str>, program: Option<&str>) {
        if program.and_then(Program::named).is_none() {
            self.findings.add(Reason::Variable { name: name.to_owned() });
        } else {
            variable::judge(name, value, &mut self.findings);
        }
    }

    /// Judges a program with its words, and the programs it runs in turn.
    pub(super) fn run(&mut self, words: &[Argument], stand: &Stand, judging: Judging) {
        let Some((first, arguments)) = words.split_first() else { return };
        let Some(name) = first.text.as_deref() else {
            let column = self.column(first.at);
            self.findings.add(Reason::UnknownCommand { column });
            return;
        };
        if self.names == Names::Inserted && name.contains("{}") {
            let column = self.column(first.at);
            self.findings.add(Reason::UnknownCommand { column });
        }
        if name.len() > LONGEST_NAME {
            return self.tired("no program has such a long name");
        }
        let base = name.rsplit('/').next().unwrap_or(name);
        // Also as it is expanded: `r?` may be a file of that name.
        if let Some(forbidden) = self.forbidden(base) {
            self.findings.add(Reason::ForbiddenCommand { name: forbidden });
        }
        if judging == Judging::Name
            && let Some(what) = destructive::of_program(base, arguments)
        {
            self.findings.add(Reason::Destructive { what });
        }
        if !self.is_ours(name, base, stand) && judging == Judging::Words {
            self.findings.add(Reason::ProgramByPath { path: name.to_owned() });
        }
        if judging == Judging::Words && self.of_the_shell(base, arguments, first.at, stand) {
            return;
        }
        match Program::named(base) {
            Some(program) => self.known_program(base, program, arguments, stand, judging),
            None if judging == Judging::Words => self.unknown_program(base, arguments, stand),
            None => {}
        }
    }

    /// Judges the command inside another.
    pub(super) fn run_inside(&mut self, words: &[Argument], stand: &Stand, judging: Judging) {
        let left = self.patience.inner_words.checked_sub(words.len());
        let (Some(left), 1..) = (left, self.patience.wrappers) else {
            return self.tired("commands are nested too deeply");
        };
        if let Some((first, folders)) = words.split_first().filter(|(first, _)| is_no_program(first)) {
            self.unknowable("no program can do what the shell does itself", first.at);
            for folder in folders.iter().filter_map(|folder| folder.text.as_deref()) {
                self.path(folder, Use::Look, stand);
            }
        }
        self.patience.inner_words = left;
        self.patience.wrappers -= 1;
        self.run(words, stand, judging);
        self.patience.wrappers += 1;
    }

    /// A line that another shell would read. It is judged, but never planned: that would be a second reader.
    pub(super) fn line_inside(&mut self, line: &str, stand: &Stand) {
        self.unknowable("a shell would read this text again", At(0));
        let bytes = self.patience.inner_bytes.checked_sub(line.len());
        let (Some(bytes), 0..INNERMOST, 1..) = (bytes, self.inner, self.patience.inner_lines) else {
            return self.tired("lines are nested too deeply");
        };
        self.patience.inner_bytes = bytes;
        self.patience.inner_lines -= 1;
        match shell::parse(line) {
            Ok(parsed) => {
                self.inner += 1;
                let here = std::mem::replace(&mut self.here, parsed.here_documents);
                self.inside(&parsed.script, stand);
                self.here = here;
                self.inner -= 1;
            }
            Err(unreadable) => self.findings.add(Reason::Unreadable { what: unreadable.what, column: 1 }),
        }
    }

    /// What the shell does itself. Whether this was such a thing.
    fn of_the_shell(&mut self, name: &str, arguments: &[Argument], at: At, stand: &Stand) -> bool {
        let text =
            || -> Option<Vec<&str>> { arguments.iter().map(|argument| argument.text.as_deref()).collect() };
        match name {
            "cd" | ":" => {
                if name == ":" || arguments.is_empty() {
                    self.findings.add(Reason::LooksOnly);
                }
                return true;
            }
            "eval" => {
                if let Some(words) = text() {
                    self.line_inside(&words.join(" "), stand);
                }
            }
            "trap" => {
                if let Some(line) = text().and_then(|words| words.first().copied()) {
                    self.line_inside(line, stand);
                }
            }
            "alias" => {
                for line in arguments.iter().filter_map(|argument| argument.text.as_deref()?.split_once('='))
                {
                    self.line_inside(line.1, stand);
                }
            }
            // The command inside is judged with its words, too.
            "builtin" | "command" | "exec" => {
                self.unknowable("this changes the shell itself", at);
                return false;
            }
            other if is_of_the_shell(other) => {}
            _ => return false,
        }
        self.unknowable("this changes the shell itself", at);
        true
    }

    /// `mkfs` forbids `mkfs.ext4`, too.
    fn forbidden(&self, name: &str) -> Option<String> {
        let forbids = |rule: &&String| {
            name.strip_prefix(rule.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.policy.forbidden_commands.iter().find(forbids).map(|_| name.to_owned())
    }

    /// Whether a name stands for the program of the system: without a slash, or as just another way to write it.
    fn is_ours(&self, name: &str, base: &str, stand: &Stand) -> bool {
        use crate::facts::Seen;
        if !name.contains('/') {
            return true;
        }
        let Some(folder) = &stand.folder else { return false };
        let seen = self.facts.look(&folder.join(name));
        matches!(seen, Seen::File { leads_to, .. } if self.facts.program(base).is_some_and(|program| program == leads_to))
    }
}

/// What is looked at: first what a command is called, as it is written; then what its words do, as they are expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judging {
    Name,
    Words,
}

/// What changes the shell's own folder, or nothing: there is no program for it.
fn is_no_program(first: &Argument) -> bool {
    matches!(first.text.as_deref(), Some("cd" | ":"))
}

/// What no program does, but the shell itself.
fn is_of_the_shell(name: &str) -> bool {
    const OF_THE_SHELL: [&str; 51] = [
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
    OF_THE_SHELL.contains(&name)
}
