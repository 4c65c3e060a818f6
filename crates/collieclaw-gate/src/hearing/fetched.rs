//! Whether what is fetched from the network is what is run: `curl … | sh`, in whatever disguise (C7.2).

use crate::programs::{Argument, ForEach, Found, Meaning, Nature, Program, found_in};
use crate::shell::{self, Command, Compound, Pipeline, Redirection, Script, Simple, Target, Word};

use super::destructive::commands;

/// Looks along a line, and gives up where there is too much to look at.
pub(super) struct Flow<'f> {
    /// The texts of here-documents.
    pub(super) here: &'f [Word],
    /// So many words are still looked at.
    pub(super) left: usize,
}

/// What is looked for in a command, and in all that it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sought {
    /// It fetches something.
    Fetches,
    /// It runs text that it is given.
    RunsText,
}

impl Flow<'_> {
    /// Whether a command of a pipeline runs what it, or one before it, fetches.
    pub(super) fn runs_what_it_fetches(&mut self, pipeline: &Pipeline) -> bool {
        let mut fetched = false;
        for command in &pipeline.commands {
            let given = fetched || self.is_given_fetched(command);
            if given && self.command(command, Sought::RunsText) {
                return true;
            }
            let fetches = self.command(command, Sought::Fetches);
            if fetches && self.leads_to_text(command) {
                return true;
            }
            fetched |= fetches;
        }
        false
    }

    /// Whether a word of a command, or a redirection, holds what is fetched.
    fn is_given_fetched(&mut self, command: &Command) -> bool {
        words_of(command).any(|word| self.word(word, Sought::Fetches))
            || self.documents(command).into_iter().any(|word| self.word(&word, Sought::Fetches))
    }

    /// Whether what a command prints goes to another one that runs it: `> >(sh)`.
    fn leads_to_text(&mut self, command: &Command) -> bool {
        words_of(command).any(|word| self.word(word, Sought::RunsText))
    }

    fn documents(&self, command: &Command) -> Vec<Word> {
        let here = |redirection: &Redirection| match redirection.target {
            Target::HereDocument(id) => self.here.get(id.0).cloned(),
            _ => None,
        };
        redirections(command).iter().filter_map(here).collect()
    }

    fn script(&mut self, script: &Script, sought: Sought) -> bool {
        commands(script).any(|command| self.command(command, sought))
    }

    /// Whether a command is such a one, or what it runs or is given.
    fn command(&mut self, command: &Command, sought: Sought) -> bool {
        let itself = match command {
            Command::Simple(simple) => self.simple(simple, sought),
            Command::Compound(Compound { scripts, .. }) => {
                scripts.iter().any(|script| self.script(script, sought))
            }
        };
        itself
            || words_of(command).any(|word| self.word(word, sought))
            || self.documents(command).into_iter().any(|word| self.word(&word, sought))
    }

    fn word(&mut self, word: &Word, sought: Sought) -> bool {
        word.unknowns().any(|unknown| unknown.scripts.iter().any(|script| self.script(script, sought)))
    }

    /// Whether one of the programs that it runs, behind all wrappers, is such a one. Where there is too much to look at,
    /// it may be.
    fn simple(&mut self, simple: &Simple, sought: Sought) -> bool {
        let words = simple.words.iter().map(|word| Argument { text: word.literal(), at: word.at });
        let mut inner: Vec<Vec<Argument>> = vec![words.collect()];
        while let Some(words) = inner.pop() {
            let Some(left) = self.left.checked_sub(words.len() + 1) else { return true };
            self.left = left;
            let Some((first, arguments)) = words.split_first() else { continue };
            let Some(name) = first.text.as_deref() else {
                // Whatever it is called.
                if sought == Sought::RunsText {
                    return true;
                }
                continue;
            };
            let name = name.rsplit('/').next().unwrap_or(name);
            let found = Program::named(name).map(|program| (program, found_in(program, arguments)));
            if is_sought(
                name,
                arguments,
                found.as_ref().map(|(program, found)| (*program, found.as_slice())),
                sought,
            ) {
                return true;
            }
            if name == "eval" {
                let text: Vec<&str> = arguments.iter().filter_map(|word| word.text.as_deref()).collect();
                if self.line(&text.join(" "), sought) {
                    return true;
                }
            }
            for found in found.into_iter().flat_map(|(_, found)| found) {
                match found {
                    Found::Command(words) | Found::CommandForEach(ForEach { words, .. }) => {
                        let Some(left) = self.left.checked_sub(words.len() + 1) else { return true };
                        self.left = left;
                        inner.push(words.to_vec());
                    }
                    Found::Value(Meaning::Line | Meaning::EnvLine, line) if self.line(line, sought) => {
                        return true;
                    }
                    _ => {}
                }
            }
        }
        false
    }

    /// A line that another shell reads.
    fn line(&mut self, line: &str, sought: Sought) -> bool {
        let Some(left) = self.left.checked_sub(line.len()) else { return true };
        self.left = left;
        shell::parse(line).is_ok_and(|parsed| self.script(&parsed.script, sought))
    }
}

fn is_sought(
    name: &str,
    arguments: &[Argument],
    known: Option<(&'static Program, &[Found<'_>])>,
    sought: Sought,
) -> bool {
    match sought {
        Sought::Fetches => matches!(
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
        Sought::RunsText => {
            // `python3.11` is a `python`.
            let plain = name.trim_end_matches(|letter: char| letter == '.' || letter.is_ascii_digit());
            let nature = known.map(|(program, _)| program.nature);
            let nature = nature.or_else(|| Program::named(plain).map(|program| program.nature));
            let alone = known.is_none_or(|(_, found)| {
                !found.iter().any(|found| matches!(found, Found::Command(_) | Found::Value(Meaning::Line, _)))
            });
            match nature {
                Some(Nature::Shell | Nature::Interprets) => true,
                // `su`, `sudo -s`: without a command they start a shell.
                Some(Nature::Elevates) if alone => true,
                _ => {
                    // `-f -`: the program itself comes through the pipe.
                    let is_input = |text: &str| matches!(text, "-" | "-f-" | "/dev/stdin");
                    let reads = |word: &Argument| word.text.as_deref().is_some_and(is_input);
                    matches!(name, "eval" | "source" | "." | "exec" | "trap")
                        || (matches!(name, "awk" | "gawk" | "mawk" | "make") && arguments.iter().any(reads))
                }
            }
        }
    }
}

fn redirections(command: &Command) -> &[Redirection] {
    match command {
        Command::Simple(simple) => &simple.redirections,
        Command::Compound(compound) => &compound.redirections,
    }
}

/// The words of a command, and where its redirections lead.
fn words_of(command: &Command) -> impl Iterator<Item = &Word> {
    let led = redirections(command).iter().filter_map(|redirection| match &redirection.target {
        Target::Read(word)
        | Target::Write(word)
        | Target::Append(word)
        | Target::ReadWrite(word)
        | Target::Dialect(word) => Some(word),
        Target::Descriptor(_) | Target::Closed | Target::HereDocument(_) => None,
    });
    let own = match command {
        Command::Simple(simple) => &simple.words,
        Command::Compound(compound) => &compound.words,
    };
    own.iter().chain(led)
}
