//! What the words of a command do, as far as its program is known.

use super::command::JudgingPhase;
use super::walk::DEV_NULL;
use super::{BracesMeaning, CommandFolder, ShellEvaluation, awk, jq, script_outputs, sed};
use crate::address::{self, HttpMethod};
use crate::path::PathAccess;
use crate::programs::{
    CommandArgument, ForEachCommand, ParsedArgument, ProgramKind, ProgramSpec, WordMeaning, parse_arguments,
};
use crate::reason::GateReason;
use crate::shell::BytePosition;

/// No flag takes more words, and no command begins after more.
const EXTRA_NAMES: usize = 4;

impl ShellEvaluation<'_> {
    pub(super) fn judge_known_program(
        &mut self,
        name: &str,
        program: &'static ProgramSpec,
        arguments: &[CommandArgument],
        stand: &CommandFolder,
        judging: JudgingPhase,
    ) {
        let found = parse_arguments(program, arguments);
        self.judge_sed_script(name, &found, stand, judging);
        let runs_another = found.iter().any(|found| matches!(found, ParsedArgument::Command(_)));
        if program.kind == ProgramKind::AppendsArguments && judging == JudgingPhase::Words {
            let at = arguments.first().map_or(BytePosition(0), |first| first.at);
            self.add_unknowable("which words are added to this command is known only when it runs", at);
        }
        self.judge_repeated_commands(name, &found, judging);
        let mut changes = program.kind != ProgramKind::ReadOnly;
        let inner = found.iter().find_map(|found| match found {
            ParsedArgument::Command(words) => words.first()?.text.as_deref(),
            _ => None,
        });
        for found in &found {
            match found {
                // A variable is for the program inside.
                ParsedArgument::Variable(text) if judging == JudgingPhase::Words => {
                    let (name, value) = split_assignment(text);
                    self.judge_variable(name, Some(value), inner);
                }
                found => changes |= self.judge_argument(name, found, stand, judging),
            }
        }
        if judging == JudgingPhase::Name || (program.kind == ProgramKind::Wrapper && runs_another) {
            return;
        }
        self.add_listing(name, if changes { ProgramEffect::Other } else { ProgramEffect::ReadOnly });
    }

    /// Judges what was found in the words of a program. Whether it does more than look.
    fn judge_argument(
        &mut self,
        name: &str,
        found: &ParsedArgument<'_>,
        stand: &CommandFolder,
        judging: JudgingPhase,
    ) -> bool {
        match found {
            ParsedArgument::Command(words) => {
                self.judge_inner_command(words, stand, judging);
                return false;
            }
            ParsedArgument::CommandForEach(command) => {
                self.judge_for_each(name, *command, stand, judging);
                return false;
            }
            ParsedArgument::Subcommand(program, words) => {
                let mut changes = program.kind != ProgramKind::ReadOnly;
                for found in parse_arguments(program, words) {
                    changes |= self.judge_argument(name, &found, stand, judging);
                }
                return changes;
            }
            _ if judging == JudgingPhase::Name => return false,
            ParsedArgument::Value(
                WordMeaning::ShellLine
                | WordMeaning::EnvLine
                | WordMeaning::Code
                | WordMeaning::AwkProgram
                | WordMeaning::JqProgram,
                text,
            ) if self.braces == BracesMeaning::FileNames && text.contains("{}") => {
                self.add_argument_reason(name, text, "follow a program that is the name of a file");
            }
            ParsedArgument::Value(WordMeaning::WrittenPath | WordMeaning::MovedPath, path)
                if self.braces == BracesMeaning::FileNames && path.contains("{}") =>
            {
                self.add_argument_reason(name, path, "change files that are known only when it runs");
            }
            ParsedArgument::Value(WordMeaning::EnvLine, line) if line.contains('\\') => {
                let what = "`env` reads a backslash otherwise than a shell";
                self.findings.add(GateReason::Unreadable { what, column: 1 });
            }
            ParsedArgument::Value(WordMeaning::ShellLine | WordMeaning::EnvLine, line) => {
                self.judge_inner_line(line, stand);
            }
            ParsedArgument::Value(WordMeaning::ReadPath, path) => {
                if !matches!(*path, "-" | DEV_NULL) {
                    self.judge_path(path, PathAccess::Read, stand);
                }
                return false;
            }
            ParsedArgument::Value(WordMeaning::WrittenPath, path) => {
                if *path != DEV_NULL {
                    self.judge_path(path, PathAccess::Write, stand);
                }
            }
            ParsedArgument::Value(WordMeaning::MovedPath, path) => {
                self.judge_path(path, PathAccess::Move, stand);
            }
            ParsedArgument::Transfer(put) => self.judge_transfer(name, put, stand),
            ParsedArgument::Backup(path, suffix) => {
                self.judge_path(&format!("{path}{suffix}"), PathAccess::Write, stand);
            }
            ParsedArgument::Value(WordMeaning::ArchivePath, path) => {
                if path.contains(':') {
                    self.add_argument_reason(name, path, "reach for another machine");
                } else {
                    self.judge_path(path, PathAccess::Write, stand);
                }
            }
            ParsedArgument::Value(WordMeaning::PossiblePath, text) => {
                self.judge_possible_path(text, stand);
                return false;
            }
            ParsedArgument::Value(WordMeaning::Address, text) => {
                address::judge(text, HttpMethod::Get, self.policy, &mut self.findings);
                return false;
            }
            ParsedArgument::Value(WordMeaning::DateFormat, text) => {
                if !text.starts_with('+') {
                    self.add_argument_reason(name, text, "set the clock");
                }
                return false;
            }
            ParsedArgument::Value(WordMeaning::AwkProgram, text) => {
                if let Some(does) = awk::find_side_effect(text) {
                    self.add_argument_reason(name, text, does);
                    script_outputs::awk_output_files(text)
                        .for_each(|path| self.judge_path(path, PathAccess::Write, stand));
                }
                return false;
            }
            ParsedArgument::Value(WordMeaning::AwkVariable, text) => {
                if let Some(does) = awk::find_variable_effect(text) {
                    self.add_argument_reason(name, text, does);
                }
                return false;
            }
            ParsedArgument::Value(WordMeaning::JqProgram, text) => {
                if let Some(does) = jq::find_side_effect(text) {
                    self.add_argument_reason(name, text, does);
                }
                return false;
            }
            ParsedArgument::Value(WordMeaning::Text | WordMeaning::SedScript, _)
            | ParsedArgument::UnknownWord(_) => return false,
            ParsedArgument::Value(WordMeaning::Code, _) => {}
            ParsedArgument::SideEffect(flag, does) => self.add_argument_reason(name, flag, does),
            ParsedArgument::UnknownFlag(flag) => {
                self.add_argument_reason(name, flag, "do something that nobody listed");
            }
            ParsedArgument::Variable(text) => {
                let (name, value) = split_assignment(text);
                self.judge_variable(name, Some(value), None);
                return false;
            }
        }
        true
    }

    /// Several commands for each file: one may meet what another has changed, and nobody looks in between.
    fn judge_repeated_commands(&mut self, name: &str, found: &[ParsedArgument<'_>], judging: JudgingPhase) {
        let commands = || {
            found.iter().filter_map(|found| match found {
                ParsedArgument::CommandForEach(ForEachCommand { words, .. }) => Some(*words),
                _ => None,
            })
        };
        let changes = |words: &[CommandArgument]| {
            let program =
                words.first().and_then(|first| first.text.as_deref()).and_then(ProgramSpec::find_by_name);
            program.is_none_or(|program| program.kind != ProgramKind::ReadOnly)
        };
        if judging == JudgingPhase::Words && commands().count() > 1 && commands().any(changes) {
            self.add_argument_reason(name, "-exec", "change files between several commands");
        }
    }

    /// Judges a command with the names of files that are found.
    fn judge_for_each(
        &mut self,
        name: &str,
        command: ForEachCommand<'_>,
        stand: &CommandFolder,
        judging: JudgingPhase,
    ) {
        let ForEachCommand { words, takes_many_names: many, name_pattern: named } = command;
        let texts = words.iter().filter_map(|word| word.text.as_deref());
        for text in texts.filter(|text| *text != "{}" && text.contains("{}")) {
            // A flag, a variable, a way out of the folder: whatever the name of a file makes of it.
            self.add_argument_reason(name, text, "make other words of the names of files");
        }
        let outer_names = std::mem::replace(&mut self.braces, BracesMeaning::FileNames);
        let outer_named = std::mem::replace(&mut self.name_pattern, named.map(str::to_owned));
        self.judge_inner_command(words, stand, judging);
        if let Some(last) = words.last().filter(|_| many) {
            // Where the first name is a flag's value, the next one is another word: a script, a target, a command.
            let all = [words, &vec![last.clone(); EXTRA_NAMES]].concat();
            self.judge_inner_command(&all, stand, judging);
        }
        self.braces = outer_names;
        self.name_pattern = outer_named;
    }

    /// Judges a script of `sed`, which is all of its parts joined: one can change how the next is read.
    fn judge_sed_script(
        &mut self,
        name: &str,
        found: &[ParsedArgument<'_>],
        stand: &CommandFolder,
        judging: JudgingPhase,
    ) {
        let part = |found: &ParsedArgument<'_>| match found {
            ParsedArgument::Value(WordMeaning::SedScript, text) => Some((*text).to_owned()),
            _ => None,
        };
        let parts: Vec<String> = found.iter().filter_map(part).collect();
        if parts.is_empty() || judging == JudgingPhase::Name {
            return;
        }
        let script = parts.join("\n");
        let does = if self.braces == BracesMeaning::FileNames && script.contains("{}") {
            Some("follow a program that is the name of a file")
        } else {
            sed::find_side_effect(&script)
        };
        if let Some(does) = does {
            self.add_argument_reason(name, &script, does);
            script_outputs::sed_output_files(&script)
                .for_each(|path| self.judge_path(path, PathAccess::Write, stand));
        }
    }

    /// Nothing is known of the program: each of its words may be a path.
    pub(super) fn judge_unknown_program(
        &mut self,
        name: &str,
        arguments: &[CommandArgument],
        stand: &CommandFolder,
    ) {
        for text in arguments.iter().filter_map(|argument| argument.text.as_deref()) {
            self.judge_possible_path(text, stand);
        }
        self.add_listing(name, ProgramEffect::Other);
    }

    fn judge_possible_path(&mut self, text: &str, stand: &CommandFolder) {
        let value = text.split_once('=').map_or(text, |(_, value)| value);
        for path in [text, value] {
            let leads_away = path.starts_with(['/', '~']) || path.split('/').any(|name| name == "..");
            if leads_away && path != DEV_NULL {
                self.judge_path(path, PathAccess::Read, stand);
            }
        }
    }

    fn add_listing(&mut self, name: &str, does: ProgramEffect) {
        let name = name.to_owned();
        self.findings.add(if self.policy.allowed_commands.contains(&name) {
            GateReason::ListedProgram { name, looks_only: does == ProgramEffect::ReadOnly }
        } else {
            GateReason::UnlistedProgram { name }
        });
    }

    pub(super) fn add_argument_reason(&mut self, program: &str, argument: &str, does: &'static str) {
        let (program, argument) = (program.to_owned(), argument.to_owned());
        self.findings.add(GateReason::Argument { program, argument, does });
    }
}

/// Whether a program only looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProgramEffect {
    ReadOnly,
    Other,
}

fn split_assignment(text: &str) -> (&str, &str) {
    text.split_once('=').unwrap_or((text, ""))
}
