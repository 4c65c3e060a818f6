//! What destroys, however it is spelled (C7.2).

use crate::programs::{Argument, ForEach, Found, Meaning, Nature, Program, found_in};
use crate::shell::{At, Command, CompoundKind, Pipeline, Script, Simple, Target, UnknownKind, Word};

/// Words of commands inside commands that are looked at.
const MOST_INNER_WORDS: usize = 2_000;

/// Of a line inside a command.
const MOST_LINE_WORDS: usize = 16;

/// What a program with these words destroys, if anything.
pub(super) fn of_program(name: &str, arguments: &[Argument]) -> Option<&'static str> {
    let texts = || arguments.iter().filter_map(|argument| argument.text.as_deref());
    let has = |letter: char, long: &str| {
        texts().take_while(|text| *text != "--").any(|text| match text.strip_prefix("--") {
            Some(cut) => !cut.is_empty() && long.starts_with(cut),
            None => text.starts_with('-') && text.contains(letter),
        })
    };
    let recursive = has('R', "recursive") || (name == "rm" && has('r', "recursive"));
    match name {
        "rm" if recursive && texts().any(is_everything) => Some("deletes everything"),
        "mkfs" | "mke2fs" | "mkswap" | "wipefs" | "blkdiscard" => Some("wipes a disk"),
        _ if name.starts_with("mkfs.") => Some("wipes a disk"),
        "dd" if texts().any(|text| text.starts_with("if=") || text.starts_with("of=")) => {
            Some("copies over a disk or a file")
        }
        "shutdown" | "reboot" | "halt" | "poweroff" | "kexec" => Some("turns the machine off"),
        "init" | "telinit" if texts().any(|text| matches!(text, "0" | "6")) => Some("turns the machine off"),
        "systemctl" if texts().any(turns_off) => Some("turns the machine off"),
        "chmod" if recursive && texts().any(is_everything) => Some("changes the rights of everything"),
        "chown" | "chgrp" if recursive => Some("changes the owner of everything beneath"),
        _ => None,
    }
}

fn turns_off(text: &str) -> bool {
    matches!(
        text,
        "poweroff"
            | "reboot"
            | "halt"
            | "kexec"
            | "soft-reboot"
            | "suspend"
            | "hibernate"
            | "emergency"
            | "rescue"
    )
}

/// Whether a path stands for everything there is: the root, a home, all of a folder.
fn is_everything(path: &str) -> bool {
    let path = path.trim_end_matches(['/', '*', '.']);
    path.is_empty()
        || path == "~"
        || path == "$HOME"
        || matches!(path, "/home" | "/root" | "/usr" | "/etc" | "/var")
}

/// Whether a function in a script calls itself in a pipe or in the background: a fork bomb.
pub(super) fn in_script(script: &Script) -> bool {
    commands(script).any(|command| match command {
        Command::Compound(compound) => match &compound.kind {
            CompoundKind::Function(name) => compound.scripts.iter().any(|body| multiplies(body, name)),
            _ => false,
        },
        Command::Simple(_) => false,
    })
}

fn multiplies(script: &Script, name: &str) -> bool {
    let calls = |command: &Command| match command {
        Command::Simple(simple) => simple.words.first().and_then(Word::literal).as_deref() == Some(name),
        Command::Compound(compound) => compound.scripts.iter().any(|inner| multiplies(inner, name)),
    };
    script.lists.iter().any(|list| {
        list.pipelines().any(|pipeline| {
            let in_background = list.background.is_some() || pipeline.commands.len() > 1;
            pipeline.commands.iter().any(|command| match command {
                Command::Simple(_) => in_background && calls(command),
                Command::Compound(_) => calls(command),
            })
        })
    })
}

fn commands(script: &Script) -> impl Iterator<Item = &Command> {
    script.lists.iter().flat_map(|list| list.pipelines().flat_map(|pipeline| &pipeline.commands))
}

/// Whether what one command fetches from the network is what another one runs: `curl … | sh`. `here` are the texts of
/// here-documents.
pub(super) fn runs_what_it_fetches(pipeline: &Pipeline, here: &[Word]) -> bool {
    let mut fetched = false;
    let last = pipeline.commands.len().saturating_sub(1);
    pipeline.commands.iter().enumerate().any(|(place, command)| {
        let runs = match command {
            Command::Simple(simple) => {
                (fetched && passes_to_text(simple))
                    || ((fetched || is_given_fetched(simple, here)) && runs_text(simple))
            }
            Command::Compound(compound) => fetched && compound.scripts.iter().any(any_runs_text),
        };
        fetched |= place < last && fetches(command);
        runs
    })
}

fn any_runs_text(script: &Script) -> bool {
    commands(script).any(|command| match command {
        Command::Simple(simple) => runs_text(simple),
        Command::Compound(compound) => compound.scripts.iter().any(any_runs_text),
    })
}

/// Whether a command has the words of another one that runs text: `tee >(sh)`.
fn passes_to_text(simple: &Simple) -> bool {
    words_of(simple).any(|word| holds(word, any_runs_text))
}

/// Whether a word or a redirection of a command holds what another command fetches.
fn is_given_fetched(simple: &Simple, here: &[Word]) -> bool {
    let documents = simple.redirections.iter().filter_map(|redirection| match redirection.target {
        Target::HereDocument(id) => here.get(id.0),
        _ => None,
    });
    words_of(simple).chain(documents).any(|word| holds(word, any_fetches))
}

/// The words of a command, and where its redirections lead.
fn words_of(simple: &Simple) -> impl Iterator<Item = &Word> {
    let led = simple.redirections.iter().filter_map(|redirection| match &redirection.target {
        Target::Read(word)
        | Target::Write(word)
        | Target::Append(word)
        | Target::ReadWrite(word)
        | Target::Dialect(word) => Some(word),
        Target::Descriptor(_) | Target::Closed | Target::HereDocument(_) => None,
    });
    simple.words.iter().chain(led)
}

/// Whether a command that is substituted in a word is such a one.
fn holds(word: &Word, is: impl Fn(&Script) -> bool) -> bool {
    word.unknowns().any(|unknown| {
        matches!(unknown.kind, UnknownKind::CommandSubstitution | UnknownKind::ProcessSubstitution)
            && unknown.scripts.iter().any(&is)
    })
}

fn any_fetches(script: &Script) -> bool {
    commands(script).any(fetches)
}

fn fetches(command: &Command) -> bool {
    match command {
        Command::Simple(simple) => any_program(simple, |name| {
            matches!(name, "curl" | "wget" | "fetch" | "aria2c" | "lynx" | "http" | "nc" | "ncat")
        }),
        Command::Compound(compound) => compound.scripts.iter().any(any_fetches),
    }
}

/// Whether a command runs text that it is given.
fn runs_text(simple: &Simple) -> bool {
    any_program(simple, |name| {
        // `python3.11` is a `python`.
        let plain = name.trim_end_matches(|letter: char| letter == '.' || letter.is_ascii_digit());
        let nature = [name, plain].into_iter().find_map(Program::named).map(|program| program.nature);
        matches!(name, "eval" | "source" | ".") || matches!(nature, Some(Nature::Shell | Nature::Interprets))
    })
}

/// Whether one of the programs that a command runs, behind all wrappers, is such a one. Where too many words may be its
/// name, it may be.
fn any_program(simple: &Simple, is: impl Fn(&str) -> bool) -> bool {
    let words = simple.words.iter().map(|word| Argument { text: word.literal(), at: word.at }).collect();
    let mut commands: Vec<Vec<Argument>> = vec![words];
    let mut left = MOST_INNER_WORDS;
    while let Some(words) = commands.pop() {
        let Some((first, arguments)) = words.split_first() else { continue };
        let Some(name) = first.text.as_deref() else { continue };
        let name = name.rsplit('/').next().unwrap_or(name);
        if is(name) {
            return true;
        }
        let Some(program) = Program::named(name) else { continue };
        for found in found_in(program, arguments) {
            let inner = match found {
                Found::Command(words) | Found::CommandForEach(ForEach { words, .. }) => words.to_vec(),
                Found::Value(Meaning::Line, line) => first_words(line, first.at),
                _ => continue,
            };
            let Some(rest) = left.checked_sub(inner.len() + 1) else { return true };
            left = rest;
            commands.push(inner);
        }
    }
    false
}

/// The words of a line that another shell reads, as far as they are plain: enough to see what it runs.
fn first_words(line: &str, at: At) -> Vec<Argument> {
    let words = line.split_whitespace().take(MOST_LINE_WORDS);
    words.map(|word| Argument { text: Some(word.to_owned()), at }).collect()
}
