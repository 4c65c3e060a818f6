//! Recognises destructive commands and fork bombs, however they are spelled (C7.2).

use crate::programs::CommandArgument;
use crate::shell::{CompoundKind, ShellCommand, ShellScript, ShellWord};

/// Returns the damage that a program does with these arguments, as a verb phrase after "it".
pub(super) fn destructive_effect(name: &str, arguments: &[CommandArgument]) -> Option<&'static str> {
    let texts = || arguments.iter().filter_map(|argument| argument.text.as_deref());
    let has = |letter: char, long: &str| {
        texts().take_while(|text| *text != "--").any(|text| match text.strip_prefix("--") {
            Some(cut) => long.starts_with(cut),
            None => text.starts_with('-') && text.contains(letter),
        })
    };
    let recursive = has('R', "recursive") || (name == "rm" && has('r', "recursive"));
    match name {
        "rm" if recursive && texts().any(covers_everything) => Some("deletes everything"),
        "mkfs" | "mke2fs" | "mkswap" | "wipefs" | "blkdiscard" => Some("wipes a disk"),
        _ if name.starts_with("mkfs.") => Some("wipes a disk"),
        "dd" if texts().any(|text| text.starts_with("if=") || text.starts_with("of=")) => {
            Some("overwrites a disk or a file")
        }
        "shutdown" | "reboot" | "halt" | "poweroff" | "kexec" => Some("turns the machine off"),
        "init" | "telinit" if texts().any(|text| matches!(text, "0" | "6")) => Some("turns the machine off"),
        "systemctl" if texts().any(is_shutdown_verb) => Some("turns the machine off"),
        "chmod" if recursive && texts().any(covers_system) => Some("changes the permissions of everything"),
        "chown" | "chgrp" if recursive => Some("changes the owner of everything in a folder"),
        _ => None,
    }
}

fn is_shutdown_verb(text: &str) -> bool {
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

/// Returns true for paths that mean the whole system or a home. Everything in a folder of the workspace doesn't
/// count.
fn covers_system(path: &str) -> bool {
    path.starts_with(['/', '~', '$']) && covers_everything(path)
}

/// Returns true for paths that mean everything: the root, a home, all files of a folder, a system folder.
fn covers_everything(path: &str) -> bool {
    let path = path.trim_end_matches(['/', '*', '.']);
    path.is_empty()
        || path == "~"
        || path == "$HOME"
        || matches!(path, "/home" | "/root" | "/usr" | "/etc" | "/var")
}

/// Returns true if a function in a script calls itself in a pipeline or in the background, as a fork bomb
/// does.
pub(super) fn has_fork_bomb(script: &ShellScript) -> bool {
    script_commands(script).any(|command| match command {
        ShellCommand::Compound(compound) => match &compound.kind {
            CompoundKind::Function(name) => compound.scripts.iter().any(|body| forks_itself(body, name)),
            _ => false,
        },
        ShellCommand::Simple(_) => false,
    })
}

fn forks_itself(script: &ShellScript, name: &str) -> bool {
    let calls = |command: &ShellCommand| match command {
        ShellCommand::Simple(simple) => {
            simple.words.first().and_then(ShellWord::literal).as_deref() == Some(name)
        }
        ShellCommand::Compound(compound) => compound.scripts.iter().any(|inner| forks_itself(inner, name)),
    };
    script.lists.iter().any(|list| {
        list.pipelines().any(|pipeline| {
            let in_background = list.background.is_some() || pipeline.commands.len() > 1;
            pipeline.commands.iter().any(|command| match command {
                ShellCommand::Simple(_) => in_background && calls(command),
                ShellCommand::Compound(_) => calls(command),
            })
        })
    })
}

pub(super) fn script_commands(script: &ShellScript) -> impl Iterator<Item = &ShellCommand> {
    script.lists.iter().flat_map(|list| list.pipelines().flat_map(|pipeline| &pipeline.commands))
}
