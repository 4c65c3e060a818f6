//! Recognises lines that run downloaded code, such as `curl … | sh`, in all its forms (C7.2).

use crate::programs::{
    CommandArgument, ForEachCommand, ParsedArgument, ProgramKind, ProgramSpec, WordMeaning, parse_arguments,
};
use crate::shell::{
    self, CompoundCommand, Pipeline, Redirection, RedirectionTarget, ShellCommand, ShellScript, ShellWord,
    SimpleCommand,
};

use super::destructive::script_commands;

/// Searches a pipeline for a download that flows into an interpreter. The search is bounded by a number of
/// words; when they are used up, the answer is "yes" to be safe.
pub(super) struct DownloadFlow<'f> {
    pub(super) here_documents: &'f [ShellWord],
    /// The number of words that may still be searched.
    pub(super) words_left: usize,
}

/// The behaviour that the search looks for in a command and in everything the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlowBehaviour {
    /// The command downloads data.
    Downloads,
    /// The command runs text from its input as code.
    RunsText,
}

impl DownloadFlow<'_> {
    /// Returns true if a command of a pipeline runs data that the command itself, or an earlier command,
    /// downloads.
    pub(super) fn runs_download(&mut self, pipeline: &Pipeline) -> bool {
        let mut downloaded = false;
        for command in &pipeline.commands {
            let receives = downloaded || self.receives_download(command);
            if receives && self.command_does(command, FlowBehaviour::RunsText) {
                return true;
            }
            let downloads = self.command_does(command, FlowBehaviour::Downloads);
            if downloads && self.feeds_interpreter(command) {
                return true;
            }
            downloaded |= downloads;
        }
        false
    }

    /// Returns true if a command downloads data, by itself or through a command inside of it.
    pub(super) fn downloads(&mut self, command: &ShellCommand) -> bool {
        self.command_does(command, FlowBehaviour::Downloads)
    }

    /// Returns true if a word or a redirection of a command contains downloaded data.
    fn receives_download(&mut self, command: &ShellCommand) -> bool {
        command_words(command).any(|word| self.word_does(word, FlowBehaviour::Downloads))
            || self
                .here_document_words(command)
                .into_iter()
                .any(|word| self.word_does(&word, FlowBehaviour::Downloads))
    }

    /// Returns true if the output of a command goes to an interpreter through a word, as in `> >(sh)`.
    fn feeds_interpreter(&mut self, command: &ShellCommand) -> bool {
        command_words(command).any(|word| self.word_does(word, FlowBehaviour::RunsText))
    }

    fn here_document_words(&self, command: &ShellCommand) -> Vec<ShellWord> {
        let here = |redirection: &Redirection| match redirection.target {
            RedirectionTarget::HereDocument(id) => self.here_documents.get(id.0).cloned(),
            _ => None,
        };
        command_redirections(command).iter().filter_map(here).collect()
    }

    fn script_does(&mut self, script: &ShellScript, behaviour: FlowBehaviour) -> bool {
        script_commands(script).any(|command| self.command_does(command, behaviour))
    }

    /// Returns true if a command, or a command inside its words and redirections, has the behaviour.
    fn command_does(&mut self, command: &ShellCommand, behaviour: FlowBehaviour) -> bool {
        let command_itself = match command {
            ShellCommand::Simple(simple) => self.simple_does(simple, behaviour),
            ShellCommand::Compound(CompoundCommand { scripts, .. }) => {
                scripts.iter().any(|script| self.script_does(script, behaviour))
            }
        };
        command_itself
            || command_words(command).any(|word| self.word_does(word, behaviour))
            || self.here_document_words(command).into_iter().any(|word| self.word_does(&word, behaviour))
    }

    fn word_does(&mut self, word: &ShellWord, behaviour: FlowBehaviour) -> bool {
        word.unknowns()
            .any(|unknown| unknown.scripts.iter().any(|script| self.script_does(script, behaviour)))
    }

    /// Returns true if a program that the command runs, also through wrappers, has the behaviour.
    fn simple_does(&mut self, simple: &SimpleCommand, behaviour: FlowBehaviour) -> bool {
        let words = simple.words.iter().map(|word| CommandArgument { text: word.literal(), at: word.at });
        let mut inner: Vec<Vec<CommandArgument>> = vec![words.collect()];
        while let Some(words) = inner.pop() {
            // A command without words takes time, too.
            let Some(left) = self.words_left.checked_sub(words.len().max(1)) else { return true };
            self.words_left = left;
            let Some((first, arguments)) = words.split_first() else { continue };
            let Some(name) = first.text.as_deref() else {
                // The name is known only at run time, and may be that of an interpreter.
                if behaviour == FlowBehaviour::RunsText {
                    return true;
                }
                continue;
            };
            let name = name.rsplit('/').next().unwrap_or(name);
            let found =
                ProgramSpec::find_by_name(name).map(|program| (program, parse_arguments(program, arguments)));
            let facts = found.as_ref().map(|(program, found)| (*program, found.as_slice()));
            let program_itself = match behaviour {
                FlowBehaviour::Downloads => facts.is_some_and(|(program, _)| program.downloads),
                FlowBehaviour::RunsText => runs_text(name, arguments, facts),
            };
            if program_itself {
                return true;
            }
            if name == "eval" {
                let text: Vec<&str> = arguments.iter().filter_map(|word| word.text.as_deref()).collect();
                if self.line_does(&text.join(" "), behaviour) {
                    return true;
                }
            }
            for found in found.into_iter().flat_map(|(_, found)| found) {
                match found {
                    ParsedArgument::Command(words)
                    | ParsedArgument::CommandForEach(ForEachCommand { words, .. }) => {
                        let Some(left) = self.words_left.checked_sub(words.len()) else { return true };
                        self.words_left = left;
                        inner.push(words.to_vec());
                    }
                    ParsedArgument::Value(WordMeaning::ShellLine | WordMeaning::EnvLine, line)
                        if self.line_does(line, behaviour) =>
                    {
                        return true;
                    }
                    _ => {}
                }
            }
        }
        false
    }

    /// Returns true if a nested shell line has the behaviour.
    fn line_does(&mut self, line: &str, behaviour: FlowBehaviour) -> bool {
        let Some(left) = self.words_left.checked_sub(line.len()) else { return true };
        self.words_left = left;
        shell::parse(line).is_ok_and(|parsed| self.script_does(&parsed.script, behaviour))
    }
}

/// Returns true if a program with these arguments runs text from its input as code.
fn runs_text(
    name: &str,
    arguments: &[CommandArgument],
    facts: Option<(&'static ProgramSpec, &[ParsedArgument<'_>])>,
) -> bool {
    // `python3.11` is a `python`.
    let unversioned = name.trim_end_matches(|letter: char| letter == '.' || letter.is_ascii_digit());
    let kind = facts.map(|(program, _)| program.kind);
    let kind = kind.or_else(|| ProgramSpec::find_by_name(unversioned).map(|program| program.kind));
    let has_no_command = facts.is_none_or(|(_, found)| {
        !found.iter().any(|found| {
            matches!(found, ParsedArgument::Command(_) | ParsedArgument::Value(WordMeaning::ShellLine, _))
        })
    });
    match kind {
        Some(ProgramKind::Shell) => true,
        Some(ProgramKind::Interpreter) => facts.is_none_or(|(_, found)| interpreter_runs_input(found)),
        // `su` and `sudo -s` start a shell if they get no command.
        Some(ProgramKind::Elevates) if has_no_command => true,
        _ => {
            matches!(name, "eval" | "source" | "." | "exec" | "trap")
                || (matches!(name, "awk" | "gawk" | "mawk" | "make") && names_input_as_program(arguments))
        }
    }
}

/// Returns true if the value of a flag makes a program run its input, as in `awk -f -`. An operand `-` is only data.
fn names_input_as_program(arguments: &[CommandArgument]) -> bool {
    const JOINED: [&str; 6] =
        ["-f-", "-f/dev/stdin", "--file=-", "--file=/dev/stdin", "--makefile=-", "--makefile=/dev/stdin"];
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_deref().unwrap_or_default()).collect();
    texts.iter().any(|text| JOINED.contains(text))
        || texts.windows(2).any(|pair| matches!(pair, [flag, "-" | "/dev/stdin"] if flag.starts_with('-')))
}

/// Returns true if an interpreter runs its input as code: it got no script, or a script that may do so.
fn interpreter_runs_input(found: &[ParsedArgument<'_>]) -> bool {
    /// Modules of Python that read data. Others may run what they read.
    const DATA_MODULES: [&str; 8] =
        ["json.tool", "json", "base64", "gzip", "zipfile", "tarfile", "html.parser", "tokenize"];
    /// Words with which code runs text as code.
    const RUNNING_WORDS: [&str; 14] = [
        "exec",
        "eval",
        "compile",
        "system",
        "spawn",
        "popen",
        "subprocess",
        "__import__",
        "importlib",
        "child_process",
        "Function",
        "runInThis",
        "runpy",
        "require",
    ];
    let mut script = false;
    for found in found {
        match found {
            ParsedArgument::UnknownWord(_)
            | ParsedArgument::Value(WordMeaning::ReadPath, "-" | "/dev/stdin") => return true,
            ParsedArgument::Value(WordMeaning::ReadPath, _) => script = true,
            ParsedArgument::Value(WordMeaning::Code, code) => {
                script = true;
                let is_module = found_module(code);
                if is_module && !DATA_MODULES.contains(code)
                    || RUNNING_WORDS.iter().any(|word| code.contains(word))
                    || code.contains('`')
                {
                    return true;
                }
            }
            _ => {}
        }
    }
    !script
}

/// Returns true for a text that is the name of a module, not a program of its own.
fn found_module(code: &str) -> bool {
    code.chars().all(|letter| matches!(letter, '.' | '_') || letter.is_ascii_alphanumeric())
}

fn command_redirections(command: &ShellCommand) -> &[Redirection] {
    match command {
        ShellCommand::Simple(simple) => &simple.redirections,
        ShellCommand::Compound(compound) => &compound.redirections,
    }
}

/// Returns the words of a command, and the words after its redirection operators.
fn command_words(command: &ShellCommand) -> impl Iterator<Item = &ShellWord> {
    let redirected =
        command_redirections(command).iter().filter_map(|redirection| match &redirection.target {
            RedirectionTarget::Read(word)
            | RedirectionTarget::Write(word)
            | RedirectionTarget::Append(word)
            | RedirectionTarget::ReadWrite(word)
            | RedirectionTarget::HereString(word)
            | RedirectionTarget::NonPortable(word) => Some(word),
            RedirectionTarget::Descriptor(_)
            | RedirectionTarget::Closed
            | RedirectionTarget::HereDocument(_) => None,
        });
    let own = match command {
        ShellCommand::Simple(simple) => &simple.words,
        ShellCommand::Compound(compound) => &compound.words,
    };
    own.iter().chain(redirected)
}
