//! Judges the arguments of a command by the table of programs.

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

/// The number of file names that stand for "any number" when `find -exec … {} +` is judged. No flag of the
/// table takes more values, and no inner command starts after more words.
const EXTRA_NAMES: usize = 4;

impl ShellEvaluation<'_> {
    pub(super) fn judge_known_program(
        &mut self,
        name: &str,
        program: &'static ProgramSpec,
        arguments: &[CommandArgument],
        cwd: &CommandFolder,
        phase: JudgingPhase,
    ) {
        let found = parse_arguments(program, arguments);
        self.judge_sed_script(name, &found, cwd, phase);
        let runs_another = found.iter().any(|found| matches!(found, ParsedArgument::Command(_)));
        if program.kind == ProgramKind::AppendsArguments && phase == JudgingPhase::Words {
            let at = arguments.first().map_or(BytePosition(0), |first| first.at);
            let what = "the added arguments are known only when it runs; use a pattern or `find -exec`";
            self.add_unknowable(what, at);
        }
        self.judge_repeated_commands(name, &found, phase);
        let mut changes = program.kind != ProgramKind::ReadOnly;
        let inner = found.iter().find_map(|found| match found {
            ParsedArgument::Command(words) => words.first()?.text.as_deref(),
            _ => None,
        });
        for found in &found {
            match found {
                // The variable applies to the inner program, not to the wrapper.
                ParsedArgument::Variable(text) if phase == JudgingPhase::Words => {
                    let (name, value) = split_assignment(text);
                    self.judge_variable(name, Some(value), inner);
                }
                found => changes |= self.judge_argument(name, found, cwd, phase),
            }
        }
        if phase == JudgingPhase::Name || (program.kind == ProgramKind::Wrapper && runs_another) {
            return;
        }
        self.add_listing(name, if changes { ProgramEffect::Other } else { ProgramEffect::ReadOnly });
    }

    /// Judges an argument of a program, and returns true if the argument does more than read.
    pub(super) fn judge_argument(
        &mut self,
        name: &str,
        found: &ParsedArgument<'_>,
        cwd: &CommandFolder,
        phase: JudgingPhase,
    ) -> bool {
        match found {
            ParsedArgument::Command(words) => {
                self.judge_inner_command(words, cwd, phase);
                return false;
            }
            ParsedArgument::CommandForEach(command) => {
                self.judge_for_each(name, *command, cwd, phase);
                return false;
            }
            ParsedArgument::Subcommand(program, words) => {
                let mut changes = program.kind != ProgramKind::ReadOnly;
                for found in parse_arguments(program, words) {
                    changes |= self.judge_argument(name, &found, cwd, phase);
                }
                return changes;
            }
            _ if phase == JudgingPhase::Name => return false,
            ParsedArgument::Value(
                WordMeaning::ShellLine
                | WordMeaning::EnvLine
                | WordMeaning::Code
                | WordMeaning::AwkProgram
                | WordMeaning::JqProgram,
                text,
            ) if self.braces == BracesMeaning::FileNames && text.contains("{}") => {
                self.add_argument_reason(name, text, "run the name of a file as a program");
            }
            ParsedArgument::Value(WordMeaning::WrittenPath | WordMeaning::MovedPath, path)
                if self.braces == BracesMeaning::FileNames && path.contains("{}") =>
            {
                self.add_file_name_reason(name, path, "change files that are known only when it runs");
            }
            ParsedArgument::Value(WordMeaning::EnvLine, line) if line.contains('\\') => {
                let what = "`env -S` reads a backslash differently from a shell; leave it out";
                self.findings.add(GateReason::Unreadable { what, column: 1 });
            }
            ParsedArgument::Value(WordMeaning::ShellLine | WordMeaning::EnvLine, line) => {
                self.judge_inner_line(line, cwd);
            }
            ParsedArgument::Value(WordMeaning::ReadPath, path) => {
                if !matches!(*path, "-" | DEV_NULL) {
                    self.judge_path(path, PathAccess::Read, cwd);
                }
                return false;
            }
            ParsedArgument::Value(WordMeaning::WrittenPath, path) => {
                if *path != DEV_NULL {
                    self.judge_path(path, PathAccess::Write, cwd);
                }
            }
            ParsedArgument::Value(WordMeaning::MovedPath, path) => {
                self.judge_path(path, PathAccess::Move, cwd);
            }
            ParsedArgument::Transfer(transfer) => self.judge_transfer(name, transfer, cwd),
            ParsedArgument::Backup(path, suffix) => {
                self.judge_path(&format!("{path}{suffix}"), PathAccess::Write, cwd);
            }
            ParsedArgument::Value(WordMeaning::ArchivePath, path) => {
                if path.contains(':') {
                    self.add_argument_reason(name, path, "connect to another machine");
                } else {
                    self.judge_path(path, PathAccess::Write, cwd);
                }
            }
            ParsedArgument::Value(WordMeaning::PossiblePath, text) => {
                self.judge_possible_path(text, cwd);
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
                if let Some(effect) = awk::find_side_effect(text) {
                    self.add_argument_reason(name, text, effect);
                    script_outputs::awk_output_files(text)
                        .for_each(|path| self.judge_path(path, PathAccess::Write, cwd));
                }
                return false;
            }
            ParsedArgument::Value(WordMeaning::AwkVariable, text) => {
                if let Some(effect) = awk::find_variable_effect(text) {
                    self.add_argument_reason(name, text, effect);
                }
                return false;
            }
            ParsedArgument::Value(WordMeaning::JqProgram, text) => {
                if let Some(effect) = jq::find_side_effect(text) {
                    self.add_argument_reason(name, text, effect);
                }
                return false;
            }
            ParsedArgument::Value(WordMeaning::Text | WordMeaning::SedScript, _)
            | ParsedArgument::UnknownWord(_) => return false,
            ParsedArgument::Value(WordMeaning::Code, _) => {}
            ParsedArgument::SideEffect(flag, effect) => self.add_argument_reason(name, flag, *effect),
            ParsedArgument::UnknownFlag(flag) => self.add_argument_reason(name, flag, None),
            ParsedArgument::Variable(text) => {
                let (name, value) = split_assignment(text);
                self.judge_variable(name, Some(value), None);
                return false;
            }
        }
        true
    }

    /// Adds a reason if `find` runs several commands per file and a command changes files: the next command
    /// may meet the changed file, and nothing judges it again in between.
    fn judge_repeated_commands(&mut self, name: &str, found: &[ParsedArgument<'_>], phase: JudgingPhase) {
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
        if phase == JudgingPhase::Words && commands().count() > 1 && commands().any(changes) {
            self.add_file_name_reason(
                name,
                "-exec",
                "run several commands for each file, and not all of them only read",
            );
        }
    }

    /// Judges a command that `find` runs with the names of the files it finds.
    fn judge_for_each(
        &mut self,
        name: &str,
        command: ForEachCommand<'_>,
        cwd: &CommandFolder,
        phase: JudgingPhase,
    ) {
        let ForEachCommand { words, takes_many_names, name_pattern } = command;
        let texts = words.iter().filter_map(|word| word.text.as_deref());
        for text in texts.filter(|text| *text != "{}" && text.contains("{}")) {
            // The name of a file could turn such a word into a flag, a variable or a path out of the folder.
            self.add_file_name_reason(name, text, "build a word from the name of a file; write `{}` alone");
        }
        let outer_braces = std::mem::replace(&mut self.braces, BracesMeaning::FileNames);
        let outer_pattern = std::mem::replace(&mut self.name_pattern, name_pattern.map(str::to_owned));
        self.judge_inner_command(words, cwd, phase);
        if let Some(last) = words.last().filter(|_| takes_many_names) {
            // If the first name becomes the value of a flag, a later name becomes a script, a target or a
            // command.
            let all = [words, &vec![last.clone(); EXTRA_NAMES]].concat();
            self.judge_inner_command(&all, cwd, phase);
        }
        self.braces = outer_braces;
        self.name_pattern = outer_pattern;
    }

    /// Judges a script of `sed`. The parts from several `-e` are joined first, because a part can change how
    /// `sed` reads the next part.
    fn judge_sed_script(
        &mut self,
        name: &str,
        found: &[ParsedArgument<'_>],
        cwd: &CommandFolder,
        phase: JudgingPhase,
    ) {
        let part = |found: &ParsedArgument<'_>| match found {
            ParsedArgument::Value(WordMeaning::SedScript, text) => Some((*text).to_owned()),
            _ => None,
        };
        let parts: Vec<String> = found.iter().filter_map(part).collect();
        if parts.is_empty() || phase == JudgingPhase::Name {
            return;
        }
        let script = parts.join("\n");
        let effect = if self.braces == BracesMeaning::FileNames && script.contains("{}") {
            Some("run the name of a file as a program")
        } else {
            sed::find_side_effect(&script)
        };
        if let Some(effect) = effect {
            self.add_argument_reason(name, &script, effect);
            script_outputs::sed_output_files(&script)
                .for_each(|path| self.judge_path(path, PathAccess::Write, cwd));
        }
    }

    /// Judges a program that the table doesn't describe: each of its arguments may be a path.
    pub(super) fn judge_unknown_program(
        &mut self,
        name: &str,
        arguments: &[CommandArgument],
        cwd: &CommandFolder,
    ) {
        for text in arguments.iter().filter_map(|argument| argument.text.as_deref()) {
            self.judge_possible_path(text, cwd);
        }
        self.add_listing(name, ProgramEffect::Other);
    }

    fn judge_possible_path(&mut self, text: &str, cwd: &CommandFolder) {
        let value = text.split_once('=').map_or(text, |(_, value)| value);
        for path in [text, value] {
            let leads_away = path.starts_with(['/', '~']) || path.split('/').any(|name| name == "..");
            if leads_away && path != DEV_NULL {
                self.judge_path(path, PathAccess::Read, cwd);
            }
        }
    }

    fn add_listing(&mut self, name: &str, effect: ProgramEffect) {
        let name = name.to_owned();
        self.findings.add(if self.policy.allowed_commands.contains(&name) {
            GateReason::ListedProgram { name, read_only: effect == ProgramEffect::ReadOnly }
        } else {
            GateReason::UnlistedProgram { name }
        });
    }

    /// Adds the reason that an argument makes a program do more than usual; `None` means an unknown effect.
    pub(super) fn add_argument_reason(
        &mut self,
        program: &str,
        argument: &str,
        effect: impl Into<Option<&'static str>>,
    ) {
        let (program, argument) = (program.to_owned(), argument.to_owned());
        self.findings.add(GateReason::Argument { program, argument, effect: effect.into() });
    }
}

/// The effect of a program with its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProgramEffect {
    ReadOnly,
    Other,
}

fn split_assignment(text: &str) -> (&str, &str) {
    text.split_once('=').unwrap_or((text, ""))
}
