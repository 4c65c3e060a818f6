//! Who may ask, and how entries are run, in words.

use shepherd_api::ClientRole;
use shepherd_core::policy::{
    AccessPolicy, CompositorConfig, PolicyRules, ReloadOnChange, ResourceLimits, RunPolicy, SystemAccount,
    WindowDisplay,
};

use super::formatting::{format_short_duration, join_words};
use crate::read::format_size;

/// What is said once for everybody.
pub(super) fn describe_enforcement(rules: &PolicyRules) -> Vec<String> {
    let mut lines = Vec::new();
    for profile in rules.profiles.values().filter(|profile| !profile.accounts.is_empty()) {
        let accounts: Vec<String> = profile.accounts.iter().map(describe_account).collect();
        lines.push(format!("On the time of {}: {}.", profile.label, join_words(&accounts)));
    }
    lines.extend(describe_roles(&rules.access));
    match &rules.compositor {
        None => {}
        Some(CompositorConfig::Connect { socket: None }) => lines.push("Works with Sway.".to_owned()),
        Some(CompositorConfig::Connect { socket: Some(socket) }) => {
            lines.push(format!("Works with Sway at {}.", socket.display()));
        }
        Some(CompositorConfig::Start { argv }) => {
            lines.push(format!("Starts `{}` for windows.", argv.join(" ")));
        }
    }
    if rules.reload_on_change == ReloadOnChange::Yes {
        lines.push("These rules apply as soon as their file has been written.".to_owned());
    }
    lines
}

fn describe_roles(access: &AccessPolicy) -> Vec<String> {
    let mut lines = Vec::new();
    for (role, may) in [
        (ClientRole::Admin, "do everything"),
        (ClientRole::Shell, "start entries"),
        (ClientRole::Observer, "look"),
    ] {
        let named = access.rules.iter().filter(|(_, other)| *other == role);
        let named: Vec<String> = named.map(|(account, _)| describe_account(account)).collect();
        if !named.is_empty() {
            lines.push(format!("May {may}: {}.", join_words(&named)));
        }
    }
    if lines.is_empty() && access.others.is_none() {
        return lines;
    }
    lines.push(match access.others {
        None => "Nobody else may do anything, except root and whoever runs Shepherd.".to_owned(),
        Some(ClientRole::Observer) => "Everybody else may look.".to_owned(),
        Some(ClientRole::Shell) => "Everybody else may start entries.".to_owned(),
        Some(ClientRole::Admin) => "Everybody else may do everything.".to_owned(),
    });
    lines
}

fn describe_account(account: &SystemAccount) -> String {
    match account {
        SystemAccount::User(name) => name.clone(),
        SystemAccount::Uid(number) => format!("user {number}"),
        SystemAccount::Group(name) => format!("the group {name}"),
        SystemAccount::Gid(number) => format!("group {number}"),
    }
}

/// How one entry is run; nothing where it is as usual.
pub(super) fn describe_run(run: &RunPolicy) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(user) = &run.user {
        lines.push(format!("Runs as {user}."));
    }
    match run.display {
        WindowDisplay::Unchanged => {}
        WindowDisplay::Foreground => lines.push("Shown in front.".to_owned()),
        WindowDisplay::Fullscreen => lines.push("Fills the screen.".to_owned()),
    }
    let bounds = describe_resource_limits(&run.limits);
    if !bounds.is_empty() {
        lines.push(format!("May use {}.", join_words(&bounds)));
    }
    if let Some(grace) = run.stop_grace {
        lines.push(format!("Has {} to end when it is asked to.", format_short_duration(grace)));
    }
    if let Some(kept) = run.output_limit {
        lines.push(format!("Keeps {} of what it says.", format_size(kept)));
    }
    lines
}

fn describe_resource_limits(limits: &ResourceLimits) -> Vec<String> {
    let memory = limits.memory.map(|bytes| format!("{} of memory", format_size(bytes)));
    let processes = limits.processes.map(|count| format!("{count} processes"));
    let cpu = limits.cpu_percent.map(|percent| format!("{percent}% of a processor"));
    let files = limits.open_files.map(|count| format!("{count} open files"));
    let size = limits.file_size.map(|bytes| format!("files of up to {}", format_size(bytes)));
    [memory, processes, cpu, files, size].into_iter().flatten().collect()
}
