//! Judges the arguments of a command by the table of programs.

use super::command::JudgingPhase;
use super::found_files::deletes_everything;
use super::project_program::{downloads, runs_files};
use super::special_words::{saves_by_name, sends_data};
use super::variable::GIT_SETTINGS;
use super::walk::DEV_NULL;
use super::{BracesMeaning, CommandFolder, ShellEvaluation, awk, jq, script_outputs, sed};
use crate::address::HttpMethod;
use crate::facts::PathStatus;
use crate::path::{PathAccess, normalize_path};
use crate::programs::{
    CommandArgument, ParsedArgument, ProgramKind, ProgramSpec, WordMeaning, parse_arguments,
};
use crate::reason::GateReason;
use crate::shell::BytePosition;

/// The maximum number of flags such as `-C folder` of one command. People don't write more.
const MAX_FOLDER_CHANGES: usize = 8;

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
        if phase == JudgingPhase::Words && program.is_named("find") && deletes_everything(arguments) {
            self.add_argument_reason(
                name,
                "-delete",
                "delete everything that it finds; put a condition such as `-name` before it",
            );
        }
        let inner = found.iter().find_map(|found| match found {
            ParsedArgument::Command(words) => words.first()?.text.as_deref(),
            _ => None,
        });
        if phase == JudgingPhase::Words {
            for found in &found {
                match found {
                    // The variable applies to the inner program, not to the wrapper.
                    ParsedArgument::Variable(text) => {
                        let (name, value) = split_assignment(text);
                        self.judge_variable(name, Some(value), inner, cwd);
                    }
                    ParsedArgument::Value(WordMeaning::RemovedVariable, name) if *name == GIT_SETTINGS => {
                        self.findings.add(GateReason::Variable { name: GIT_SETTINGS.to_owned() });
                    }
                    _ => {}
                }
            }
        }
        let changes =
            self.judge_arguments(name, &found, cwd, phase) | (program.kind != ProgramKind::ReadOnly);
        if phase == JudgingPhase::Name || (program.kind == ProgramKind::Wrapper && runs_another) {
            return;
        }
        self.add_listing(name, if changes { ProgramEffect::Other } else { ProgramEffect::ReadOnly });
    }

    /// Judges the arguments of a program in their order, and returns true if they do more than read.
    fn judge_arguments(
        &mut self,
        name: &str,
        found: &[ParsedArgument<'_>],
        cwd: &CommandFolder,
        phase: JudgingPhase,
    ) -> bool {
        let sends = found.iter().any(sends_data);
        let saves_by_name = saves_by_name(name, found);
        let mut folder = cwd.clone();
        let mut folder_changes = 0;
        let mut changes = false;
        for found in found {
            match found {
                // The caller judges the variables of an inner command.
                ParsedArgument::Variable(_) | ParsedArgument::RemoteName => {}
                ParsedArgument::Value(WordMeaning::ChangedFolder, path) => {
                    folder_changes += 1;
                    if folder_changes > MAX_FOLDER_CHANGES {
                        self.add_limit_exceeded("the command changes its folder too often");
                        break;
                    }
                    if phase == JudgingPhase::Words {
                        self.judge_path(path, PathAccess::Write, &folder);
                    }
                    folder = self.folder_beneath(path, &folder);
                }
                ParsedArgument::Value(WordMeaning::Address, text) if phase == JudgingPhase::Words => {
                    let method = if sends { HttpMethod::Post } else { HttpMethod::Get };
                    self.judge_address(text, method);
                    if saves_by_name {
                        self.judge_downloaded_name(text, &folder);
                    }
                }
                found => changes |= self.judge_argument(name, found, &folder, phase),
            }
        }
        changes
    }

    /// Returns the folder in which a program works after a flag such as `-C path`.
    fn folder_beneath(&self, path: &str, cwd: &CommandFolder) -> CommandFolder {
        let place = cwd.folder.as_ref().map(|folder| folder.join(path));
        CommandFolder {
            folder: place.map(|place| match self.facts.inspect_path(&place) {
                PathStatus::Folder { leads_to } => leads_to,
                _ => normalize_path(&place),
            }),
        }
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
            // A program with subcommands counts as changing something, whatever its subcommand does.
            ParsedArgument::Subcommand(program, words) => {
                let found = parse_arguments(program, words);
                self.judge_arguments(name, &found, cwd, phase);
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
            ParsedArgument::Value(WordMeaning::WrittenPath | WordMeaning::FileMode, "{}")
                if self.braces == BracesMeaning::FileNames && self.replaces_found_files(name) => {}
            ParsedArgument::Value(
                WordMeaning::WrittenPath | WordMeaning::MovedPath | WordMeaning::FileMode,
                path,
            ) if self.braces == BracesMeaning::FileNames && path.contains("{}") => {
                self.add_file_name_reason(name, path, "change files that are known only when it runs");
            }
            ParsedArgument::Value(WordMeaning::EnvLine, line) if line.contains('\\') => {
                let what = "`env -S` reads a backslash differently from a shell; leave it out";
                self.findings.add(GateReason::Unreadable { what, column: 1 });
            }
            ParsedArgument::Value(WordMeaning::ShellLine | WordMeaning::EnvLine, line) => {
                self.judge_line_of_program(name, line, cwd);
            }
            ParsedArgument::Value(WordMeaning::ReadPath, path) => {
                if !matches!(*path, "-" | DEV_NULL) {
                    self.judge_path(path, PathAccess::Read, cwd);
                }
                if runs_files(name) {
                    self.check_downloaded(path, cwd);
                }
                return false;
            }
            ParsedArgument::Value(WordMeaning::WrittenPath, path) => {
                if *path != DEV_NULL {
                    self.judge_path(path, PathAccess::Write, cwd);
                    if downloads(name) {
                        self.add_downloaded_file(path, cwd);
                    }
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
            ParsedArgument::Value(WordMeaning::DateFormat, text) => {
                if !text.starts_with('+') {
                    self.add_argument_reason(name, text, "set the clock");
                }
                return false;
            }
            ParsedArgument::Value(WordMeaning::AwkProgram, text) => {
                if let Some(effect) = awk::find_side_effect(text) {
                    if effect == awk::WRITES_FILES && self.judges_executions() {
                        // As for a redirection of the shell, the sandbox keeps the files in the workspace.
                        self.writes_unknown_files = true;
                        self.add_unknowable(
                            "the files of this program are known only when it runs",
                            BytePosition(0),
                        );
                    } else {
                        self.add_argument_reason(name, text, effect);
                    }
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
            ParsedArgument::Value(
                WordMeaning::Text | WordMeaning::RemovedVariable | WordMeaning::SedScript,
                _,
            )
            | ParsedArgument::UnknownWord(_)
            | ParsedArgument::RemoteName
            | ParsedArgument::Variable(_) => return false,
            ParsedArgument::Value(
                WordMeaning::Code | WordMeaning::ChangedFolder | WordMeaning::Address,
                _,
            ) => {}
            ParsedArgument::Value(meaning, text) => self.judge_special_word(name, *meaning, text, cwd),
            ParsedArgument::SymbolicLink(source, target) => self.judge_link(name, source, target, cwd),
            ParsedArgument::ChangedSetting(setting) => self.judge_changed_setting(name, setting),
            ParsedArgument::SideEffect(flag, effect) => self.add_argument_reason(name, flag, *effect),
            ParsedArgument::UnknownFlag(flag) => self.add_argument_reason(name, flag, None),
        }
        true
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
        if phase == JudgingPhase::Name {
            return;
        }
        let parts: Vec<String> = found.iter().filter_map(part).collect();
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

    /// Judges a script of the workspace that the operator has accepted. Its arguments may be paths.
    pub(super) fn judge_script_arguments(
        &mut self,
        name: &str,
        arguments: &[CommandArgument],
        cwd: &CommandFolder,
    ) {
        for text in arguments.iter().filter_map(|argument| argument.text.as_deref()) {
            self.judge_possible_path(text, cwd);
        }
        self.findings.add(GateReason::ListedProgram { name: name.to_owned(), read_only: false });
    }

    fn add_listing(&mut self, name: &str, effect: ProgramEffect) {
        let name = name.to_owned();
        if self.policy.allowed_commands.contains(&name) {
            let read_only = effect == ProgramEffect::ReadOnly;
            self.findings.add(GateReason::ListedProgram { name, read_only });
        } else if self.may_be_project_program(&name) {
            self.add_unknowable("this may be a program of the project", BytePosition(0));
        } else if self.find_forbidden(&name).is_none() {
            self.findings.add(GateReason::UnlistedProgram { name });
        }
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
