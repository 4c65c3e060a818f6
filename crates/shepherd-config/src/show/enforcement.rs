//! Who may ask, and how entries are run, in words.

use shepherd_api::Role;
use shepherd_core::policy::{Access, Account, Compositor, Display, Rules, RunLimits, RunPolicy, Watch};

use super::words::{listed, short};
use crate::read::format_size;

/// What is said once for everybody.
pub(super) fn household(rules: &Rules) -> Vec<String> {
    let mut lines = Vec::new();
    for profile in rules.profiles.values().filter(|profile| !profile.accounts.is_empty()) {
        let accounts: Vec<String> = profile.accounts.iter().map(who).collect();
        lines.push(format!("On the time of {}: {}.", profile.label, listed(&accounts)));
    }
    lines.extend(roles(&rules.access));
    match &rules.compositor {
        None => {}
        Some(Compositor::Connect { socket: None }) => lines.push("Works with Sway.".to_owned()),
        Some(Compositor::Connect { socket: Some(socket) }) => {
            lines.push(format!("Works with Sway at {}.", socket.display()));
        }
        Some(Compositor::Start { argv }) => lines.push(format!("Starts `{}` for windows.", argv.join(" "))),
    }
    if rules.watch == Watch::Yes {
        lines.push("These rules apply as soon as their file has been written.".to_owned());
    }
    lines
}

fn roles(access: &Access) -> Vec<String> {
    let mut lines = Vec::new();
    for (role, may) in
        [(Role::Admin, "do everything"), (Role::Shell, "start entries"), (Role::Observer, "look")]
    {
        let named = access.rules.iter().filter(|(_, other)| *other == role);
        let named: Vec<String> = named.map(|(account, _)| who(account)).collect();
        if !named.is_empty() {
            lines.push(format!("May {may}: {}.", listed(&named)));
        }
    }
    if lines.is_empty() && access.others.is_none() {
        return lines;
    }
    lines.push(match access.others {
        None => "Nobody else may do anything, except root and whoever runs Shepherd.".to_owned(),
        Some(Role::Observer) => "Everybody else may look.".to_owned(),
        Some(Role::Shell) => "Everybody else may start entries.".to_owned(),
        Some(Role::Admin) => "Everybody else may do everything.".to_owned(),
    });
    lines
}

fn who(account: &Account) -> String {
    match account {
        Account::User(name) => name.clone(),
        Account::Uid(number) => format!("user {number}"),
        Account::Group(name) => format!("the group {name}"),
        Account::Gid(number) => format!("group {number}"),
    }
}

/// How one entry is run; nothing where it is as usual.
pub(super) fn about(run: &RunPolicy) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(user) = &run.user {
        lines.push(format!("Runs as {user}."));
    }
    match run.display {
        Display::AsItIs => {}
        Display::Foreground => lines.push("Shown in front.".to_owned()),
        Display::Fullscreen => lines.push("Fills the screen.".to_owned()),
    }
    let bounds = bounds(&run.limits);
    if !bounds.is_empty() {
        lines.push(format!("May use {}.", listed(&bounds)));
    }
    if let Some(grace) = run.stop_grace {
        lines.push(format!("Has {} to end when it is asked to.", short(grace)));
    }
    if let Some(kept) = run.output_limit {
        lines.push(format!("Keeps {} of what it says.", format_size(kept)));
    }
    lines
}

fn bounds(limits: &RunLimits) -> Vec<String> {
    let memory = limits.memory.map(|bytes| format!("{} of memory", format_size(bytes)));
    let processes = limits.processes.map(|count| format!("{count} processes"));
    let cpu = limits.cpu_percent.map(|percent| format!("{percent}% of a processor"));
    let files = limits.open_files.map(|count| format!("{count} open files"));
    let size = limits.file_size.map(|bytes| format!("files of up to {}", format_size(bytes)));
    [memory, processes, cpu, files, size].into_iter().flatten().collect()
}
