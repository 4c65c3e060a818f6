//! What the words of a command do, as far as its program is known.

use super::command::Judging;
use super::walk::NULL;
use super::{Hearing, Names, Stand, awk, jq, sed, written};
use crate::address::{self, Method};
use crate::path::Use;
use crate::programs::{Argument, ForEach, Found, Meaning, Nature, Program, found_in};
use crate::reason::Reason;
use crate::shell::At;

/// No flag takes more words, and no command begins after more.
const MORE_NAMES: usize = 4;

impl Hearing<'_> {
    pub(super) fn known_program(
        &mut self,
        name: &str,
        program: &'static Program,
        arguments: &[Argument],
        stand: &Stand,
        judging: Judging,
    ) {
        let found = found_in(program, arguments);
        self.sed_script(name, &found, stand, judging);
        let runs_another = found.iter().any(|found| matches!(found, Found::Command(_)));
        if program.nature == Nature::Appends && judging == Judging::Words {
            let at = arguments.first().map_or(At(0), |first| first.at);
            self.unknowable("which words are added to this command is known only when it runs", at);
        }
        self.changes_for_each(name, &found, judging);
        let mut changes = program.nature != Nature::Looks;
        let inner = found.iter().find_map(|found| match found {
            Found::Command(words) => words.first()?.text.as_deref(),
            _ => None,
        });
        for found in &found {
            match found {
                // A variable is for the program inside.
                Found::Variable(text) if judging == Judging::Words => {
                    let (name, value) = around_equals(text);
                    self.variable(name, Some(value), inner);
                }
                found => changes |= self.found(name, found, stand, judging),
            }
        }
        if judging == Judging::Name || (program.nature == Nature::Wraps && runs_another) {
            return;
        }
        self.listed(name, if changes { Does::More } else { Does::Looks });
    }

    /// Judges what was found in the words of a program. Whether it does more than look.
    fn found(&mut self, name: &str, found: &Found<'_>, stand: &Stand, judging: Judging) -> bool {
        match found {
            Found::Command(words) => {
                self.run_inside(words, stand, judging);
                return false;
            }
            Found::CommandForEach(command) => {
                self.run_for_each(name, *command, stand, judging);
                return false;
            }
            Found::Subcommand(program, words) => {
                let mut changes = program.nature != Nature::Looks;
                for found in found_in(program, words) {
                    changes |= self.found(name, &found, stand, judging);
                }
                return changes;
            }
            _ if judging == Judging::Name => return false,
            Found::Value(
                Meaning::Line | Meaning::EnvLine | Meaning::Code | Meaning::Awk | Meaning::Jq,
                text,
            ) if self.names == Names::Inserted && text.contains("{}") => {
                self.argument(name, text, "follow a program that is the name of a file");
            }
            Found::Value(Meaning::Written | Meaning::Moved, path)
                if self.names == Names::Inserted && path.contains("{}") =>
            {
                self.argument(name, path, "change files that are known only when it runs");
            }
            Found::Value(Meaning::EnvLine, line) if line.contains('\\') => {
                let what = "`env` reads a backslash otherwise than a shell";
                self.findings.add(Reason::Unreadable { what, column: 1 });
            }
            Found::Value(Meaning::Line | Meaning::EnvLine, line) => {
                self.line_inside(line, stand);
            }
            Found::Value(Meaning::Looked, path) => {
                if !matches!(*path, "-" | NULL) {
                    self.path(path, Use::Look, stand);
                }
                return false;
            }
            Found::Value(Meaning::Written, path) => {
                if *path != NULL {
                    self.path(path, Use::Write, stand);
                }
            }
            Found::Value(Meaning::Moved, path) => self.path(path, Use::Move, stand),
            Found::Put(put) => self.put(name, put, stand),
            Found::Kept(path, suffix) => self.path(&format!("{path}{suffix}"), Use::Write, stand),
            Found::Value(Meaning::Archive, path) => {
                if path.contains(':') {
                    self.argument(name, path, "reach for another machine");
                } else {
                    self.path(path, Use::Write, stand);
                }
            }
            Found::Value(Meaning::Perhaps, text) => {
                self.perhaps_path(text, stand);
                return false;
            }
            Found::Value(Meaning::Address, text) => {
                address::judge(text, Method::Get, self.policy, &mut self.findings);
                return false;
            }
            Found::Value(Meaning::Clock, text) => {
                if !text.starts_with('+') {
                    self.argument(name, text, "set the clock");
                }
                return false;
            }
            Found::Value(Meaning::Awk, text) => {
                if let Some(does) = awk::does(text) {
                    self.argument(name, text, does);
                    written::by_awk(text).for_each(|path| self.path(path, Use::Write, stand));
                }
                return false;
            }
            Found::Value(Meaning::AwkVariable, text) => {
                if let Some(does) = awk::sets(text) {
                    self.argument(name, text, does);
                }
                return false;
            }
            Found::Value(Meaning::Jq, text) => {
                if let Some(does) = jq::does(text) {
                    self.argument(name, text, does);
                }
                return false;
            }
            Found::Value(Meaning::Text | Meaning::Sed, _) | Found::Unknown(_) => return false,
            Found::Value(Meaning::Code, _) => {}
            Found::Does(flag, does) => self.argument(name, flag, does),
            Found::Suspect(flag) => self.argument(name, flag, "do something that nobody listed"),
            Found::Variable(text) => {
                let (name, value) = around_equals(text);
                self.variable(name, Some(value), None);
                return false;
            }
        }
        true
    }

    /// Several commands for each file: one may meet what another has changed, and nobody looks in between.
    fn changes_for_each(&mut self, name: &str, found: &[Found<'_>], judging: Judging) {
        let commands = || {
            found.iter().filter_map(|found| match found {
                Found::CommandForEach(ForEach { words, .. }) => Some(*words),
                _ => None,
            })
        };
        let changes = |words: &[Argument]| {
            let program = words.first().and_then(|first| first.text.as_deref()).and_then(Program::named);
            program.is_none_or(|program| program.nature != Nature::Looks)
        };
        if judging == Judging::Words && commands().count() > 1 && commands().any(changes) {
            self.argument(name, "-exec", "change files between several commands");
        }
    }

    /// Judges a command with the names of files that are found.
    fn run_for_each(&mut self, name: &str, command: ForEach<'_>, stand: &Stand, judging: Judging) {
        let ForEach { words, many, named } = command;
        let texts = words.iter().filter_map(|word| word.text.as_deref());
        for text in texts.filter(|text| *text != "{}" && text.contains("{}")) {
            // A flag, a variable, a way out of the folder: whatever the name of a file makes of it.
            self.argument(name, text, "make other words of the names of files");
        }
        let outer_names = std::mem::replace(&mut self.names, Names::Inserted);
        let outer_named = std::mem::replace(&mut self.named, named.map(str::to_owned));
        self.run_inside(words, stand, judging);
        if let Some(last) = words.last().filter(|_| many) {
            // Where the first name is a flag's value, the next one is another word: a script, a target, a command.
            let all = [words, &vec![last.clone(); MORE_NAMES]].concat();
            self.run_inside(&all, stand, judging);
        }
        self.names = outer_names;
        self.named = outer_named;
    }

    /// Judges a script of `sed`, which is all of its parts joined: one can change how the next is read.
    fn sed_script(&mut self, name: &str, found: &[Found<'_>], stand: &Stand, judging: Judging) {
        let part = |found: &Found<'_>| match found {
            Found::Value(Meaning::Sed, text) => Some((*text).to_owned()),
            _ => None,
        };
        let parts: Vec<String> = found.iter().filter_map(part).collect();
        if parts.is_empty() || judging == Judging::Name {
            return;
        }
        let script = parts.join("\n");
        let does = if self.names == Names::Inserted && script.contains("{}") {
            Some("follow a program that is the name of a file")
        } else {
            sed::does(&script)
        };
        if let Some(does) = does {
            self.argument(name, &script, does);
            written::by_sed(&script).for_each(|path| self.path(path, Use::Write, stand));
        }
    }

    /// Nothing is known of the program: each of its words may be a path.
    pub(super) fn unknown_program(&mut self, name: &str, arguments: &[Argument], stand: &Stand) {
        for text in arguments.iter().filter_map(|argument| argument.text.as_deref()) {
            self.perhaps_path(text, stand);
        }
        self.listed(name, Does::More);
    }

    fn perhaps_path(&mut self, text: &str, stand: &Stand) {
        let value = text.split_once('=').map_or(text, |(_, value)| value);
        for path in [text, value] {
            let leads_away = path.starts_with(['/', '~']) || path.split('/').any(|name| name == "..");
            if leads_away && path != NULL {
                self.path(path, Use::Look, stand);
            }
        }
    }

    fn listed(&mut self, name: &str, does: Does) {
        let name = name.to_owned();
        self.findings.add(if self.policy.allowed_commands.contains(&name) {
            Reason::ListedProgram { name, looks_only: does == Does::Looks }
        } else {
            Reason::UnlistedProgram { name }
        });
    }

    pub(super) fn argument(&mut self, program: &str, argument: &str, does: &'static str) {
        let (program, argument) = (program.to_owned(), argument.to_owned());
        self.findings.add(Reason::Argument { program, argument, does });
    }
}

/// Whether a program only looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Looks,
    More,
}

fn around_equals(text: &str) -> (&str, &str) {
    text.split_once('=').unwrap_or((text, ""))
}
