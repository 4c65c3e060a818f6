//! Whether what is fetched from the network is what is run: `curl … | sh`, in whatever disguise (C7.2).

use crate::programs::{
    CommandArgument, ForEachCommand, ParsedArgument, ProgramKind, ProgramSpec, WordMeaning, parse_arguments,
};
use crate::shell::{
    self, CompoundCommand, Pipeline, Redirection, RedirectionTarget, ShellCommand, ShellScript, ShellWord,
    SimpleCommand,
};

use super::destructive::script_commands;

/// Looks along a line, and gives up where there is too much to look at.
pub(super) struct DownloadFlow<'f> {
    /// The texts of here-documents.
    pub(super) here_documents: &'f [ShellWord],
    /// So many words are still looked at.
    pub(super) words_left: usize,
}

/// What is looked for in a command, and in all that it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlowBehaviour {
    /// It fetches something.
    Fetches,
    /// It runs text that it is given.
    RunsText,
}

impl DownloadFlow<'_> {
    /// Whether a command of a pipeline runs what it, or one before it, fetches.
    pub(super) fn runs_what_it_fetches(&mut self, pipeline: &Pipeline) -> bool {
        let mut fetched = false;
        for command in &pipeline.commands {
            let given = fetched || self.receives_download(command);
            if given && self.command_does(command, FlowBehaviour::RunsText) {
                return true;
            }
            let fetches = self.command_does(command, FlowBehaviour::Fetches);
            if fetches && self.feeds_interpreter(command) {
                return true;
            }
            fetched |= fetches;
        }
        false
    }

    /// Whether a word of a command, or a redirection, holds what is fetched.
    fn receives_download(&mut self, command: &ShellCommand) -> bool {
        command_words(command).any(|word| self.word_does(word, FlowBehaviour::Fetches))
            || self
                .here_document_words(command)
                .into_iter()
                .any(|word| self.word_does(&word, FlowBehaviour::Fetches))
    }

    /// Whether what a command prints goes to another one that runs it: `> >(sh)`.
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

    fn script_does(&mut self, script: &ShellScript, sought: FlowBehaviour) -> bool {
        script_commands(script).any(|command| self.command_does(command, sought))
    }

    /// Whether a command is such a one, or what it runs or is given.
    fn command_does(&mut self, command: &ShellCommand, sought: FlowBehaviour) -> bool {
        let itself = match command {
            ShellCommand::Simple(simple) => self.simple_does(simple, sought),
            ShellCommand::Compound(CompoundCommand { scripts, .. }) => {
                scripts.iter().any(|script| self.script_does(script, sought))
            }
        };
        itself
            || command_words(command).any(|word| self.word_does(word, sought))
            || self.here_document_words(command).into_iter().any(|word| self.word_does(&word, sought))
    }

    fn word_does(&mut self, word: &ShellWord, sought: FlowBehaviour) -> bool {
        word.unknowns().any(|unknown| unknown.scripts.iter().any(|script| self.script_does(script, sought)))
    }

    /// Whether one of the programs that it runs, behind all wrappers, is such a one. Where there is too much to look at,
    /// it may be.
    fn simple_does(&mut self, simple: &SimpleCommand, sought: FlowBehaviour) -> bool {
        let words = simple.words.iter().map(|word| CommandArgument { text: word.literal(), at: word.at });
        let mut inner: Vec<Vec<CommandArgument>> = vec![words.collect()];
        while let Some(words) = inner.pop() {
            let Some(left) = self.words_left.checked_sub(words.len() + 1) else { return true };
            self.words_left = left;
            let Some((first, arguments)) = words.split_first() else { continue };
            let Some(name) = first.text.as_deref() else {
                // Whatever it is called.
                if sought == FlowBehaviour::RunsText {
                    return true;
                }
                continue;
            };
            let name = name.rsplit('/').next().unwrap_or(name);
            let found =
                ProgramSpec::find_by_name(name).map(|program| (program, parse_arguments(program, arguments)));
            if program_does(
                name,
                arguments,
                found.as_ref().map(|(program, found)| (*program, found.as_slice())),
                sought,
            ) {
                return true;
            }
            if name == "eval" {
                let text: Vec<&str> = arguments.iter().filter_map(|word| word.text.as_deref()).collect();
                if self.line_does(&text.join(" "), sought) {
                    return true;
                }
            }
            for found in found.into_iter().flat_map(|(_, found)| found) {
                match found {
                    ParsedArgument::Command(words)
                    | ParsedArgument::CommandForEach(ForEachCommand { words, .. }) => {
                        let Some(left) = self.words_left.checked_sub(words.len() + 1) else { return true };
                        self.words_left = left;
                        inner.push(words.to_vec());
                    }
                    ParsedArgument::Value(WordMeaning::ShellLine | WordMeaning::EnvLine, line)
                        if self.line_does(line, sought) =>
                    {
                        return true;
                    }
                    _ => {}
                }
            }
        }
        false
    }

    /// A line that another shell reads.
    fn line_does(&mut self, line: &str, sought: FlowBehaviour) -> bool {
        let Some(left) = self.words_left.checked_sub(line.len()) else { return true };
        self.words_left = left;
        shell::parse(line).is_ok_and(|parsed| self.script_does(&parsed.script, sought))
    }
}

fn program_does(
    name: &str,
    arguments: &[CommandArgument],
    known: Option<(&'static ProgramSpec, &[ParsedArgument<'_>])>,
    sought: FlowBehaviour,
) -> bool {
    match sought {
        FlowBehaviour::Fetches => matches!(
            name,
            "curl"
                | "wget"
                | "wget2"
                | "fetch"
                | "aria2c"
                | "lynx"
                | "http"
                | "nc"
                | "ncat"
                | "netcat"
                | "socat"
        ),
        FlowBehaviour::RunsText => {
            // `python3.11` is a `python`.
            let plain = name.trim_end_matches(|letter: char| letter == '.' || letter.is_ascii_digit());
            let nature = known.map(|(program, _)| program.kind);
            let nature = nature.or_else(|| ProgramSpec::find_by_name(plain).map(|program| program.kind));
            let alone = known.is_none_or(|(_, found)| {
                !found.iter().any(|found| {
                    matches!(
                        found,
                        ParsedArgument::Command(_) | ParsedArgument::Value(WordMeaning::ShellLine, _)
                    )
                })
            });
            match nature {
                Some(ProgramKind::Shell | ProgramKind::Interpreter) => true,
                // `su`, `sudo -s`: without a command they start a shell.
                Some(ProgramKind::Elevates) if alone => true,
                _ => {
                    // `-f -`: the program itself comes through the pipe.
                    let is_input = |text: &str| matches!(text, "-" | "-f-" | "/dev/stdin");
                    let reads = |word: &CommandArgument| word.text.as_deref().is_some_and(is_input);
                    matches!(name, "eval" | "source" | "." | "exec" | "trap")
                        || (matches!(name, "awk" | "gawk" | "mawk" | "make") && arguments.iter().any(reads))
                }
            }
        }
    }
}

fn command_redirections(command: &ShellCommand) -> &[Redirection] {
    match command {
        ShellCommand::Simple(simple) => &simple.redirections,
        ShellCommand::Compound(compound) => &compound.redirections,
    }
}

/// The words of a command, and where its redirections lead.
fn command_words(command: &ShellCommand) -> impl Iterator<Item = &ShellWord> {
    let led = command_redirections(command).iter().filter_map(|redirection| match &redirection.target {
        RedirectionTarget::Read(word)
        | RedirectionTarget::Write(word)
        | RedirectionTarget::Append(word)
        | RedirectionTarget::ReadWrite(word)
        | RedirectionTarget::NonPortable(word) => Some(word),
        RedirectionTarget::Descriptor(_) | RedirectionTarget::Closed | RedirectionTarget::HereDocument(_) => {
            None
        }
    });
    let own = match command {
        ShellCommand::Simple(simple) => &simple.words,
        ShellCommand::Compound(compound) => &compound.words,
    };
    own.iter().chain(led)
}
