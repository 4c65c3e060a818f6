//! What destroys, however it is spelled (C7.2).

use crate::programs::Argument;
use crate::shell::{Command, CompoundKind, Script, Word};

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

pub(super) fn commands(script: &Script) -> impl Iterator<Item = &Command> {
    script.lists.iter().flat_map(|list| list.pipelines().flat_map(|pipeline| &pipeline.commands))
}
