//! What destroys, however it is spelled (C7.2).

use crate::programs::{Argument, Found, Nature, Program, found_in};
use crate::shell::{Command, CompoundKind, Pipeline, Script, Simple, Target, UnknownKind, Word};

/// What is wrapped more often is refused for that alone.
const DEEPEST_WRAPPER: usize = 16;

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

/// Whether what one command fetches from the network is what another one runs: `curl … | sh`.
pub(super) fn runs_what_it_fetches(pipeline: &Pipeline) -> bool {
    let mut fetched = false;
    pipeline.commands.iter().any(|command| {
        let runs = match command {
            Command::Simple(simple) => runs_text(simple) && (fetched || is_given_fetched(simple)),
            Command::Compound(compound) => fetched && compound.scripts.iter().any(any_runs_text),
        };
        fetched |= fetches(command);
        runs
    })
}

fn any_runs_text(script: &Script) -> bool {
    commands(script).any(|command| match command {
        Command::Simple(simple) => runs_text(simple),
        Command::Compound(compound) => compound.scripts.iter().any(any_runs_text),
    })
}

/// Whether a word or a redirection of a command holds what another command fetches.
fn is_given_fetched(simple: &Simple) -> bool {
    let in_word = |word: &Word| {
        word.unknowns().any(|unknown| {
            matches!(unknown.kind, UnknownKind::CommandSubstitution | UnknownKind::ProcessSubstitution)
                && unknown.scripts.iter().any(any_fetches)
        })
    };
    simple.words.iter().any(in_word)
        || simple.redirections.iter().any(|redirection| match &redirection.target {
            Target::Read(word) | Target::Dialect(word) => in_word(word),
            _ => false,
        })
}

fn any_fetches(script: &Script) -> bool {
    commands(script).any(fetches)
}

fn fetches(command: &Command) -> bool {
    match command {
        Command::Simple(simple) => innermost(simple).is_some_and(|name| {
            matches!(name.as_str(), "curl" | "wget" | "fetch" | "aria2c" | "lynx" | "http" | "nc" | "ncat")
        }),
        Command::Compound(compound) => compound.scripts.iter().any(any_fetches),
    }
}

/// Whether a command runs text that it is given.
fn runs_text(simple: &Simple) -> bool {
    innermost(simple).is_some_and(|name| {
        matches!(name.as_str(), "eval" | "source" | ".")
            || Program::named(&name)
                .is_some_and(|program| matches!(program.nature, Nature::Shell | Nature::Interprets))
    })
}

/// The name of the program that a command runs in the end, behind all wrappers.
fn innermost(simple: &Simple) -> Option<String> {
    let mut words: Vec<_> =
        simple.words.iter().map(|word| Argument { text: word.literal(), at: word.at }).collect();
    for _ in 0..DEEPEST_WRAPPER {
        let (first, arguments) = words.split_first()?;
        let name = first.text.as_deref()?;
        let name = name.rsplit('/').next().unwrap_or(name).to_owned();
        let inner = Program::named(&name).and_then(|program| {
            found_in(program, arguments).into_iter().find_map(|found| match found {
                Found::Command(words) | Found::CommandForEach(words) => Some(words.to_vec()),
                _ => None,
            })
        });
        match inner {
            Some(inner) if !inner.is_empty() && inner.len() < words.len() => words = inner,
            _ => return Some(name),
        }
    }
    None
}
