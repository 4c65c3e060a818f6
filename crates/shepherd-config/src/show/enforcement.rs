//! Describes accounts, permissions and the way entries run.

use shepherd_api::ClientRole;
use shepherd_core::policy::{
    AccessPolicy, CompositorConfig, IdleTime, LoginCounting, LoginEnd, LoginPolicy, LoginWithoutDaemon,
    PolicyRules, ReloadOnChange, ResourceLimits, RunPolicy, SystemAccount, WindowDisplay,
};
use shepherd_util::ExactDuration;

use super::formatting::join_words;
use crate::read::format_size;

/// Describes the settings for the whole household.
pub(super) fn describe_enforcement(rules: &PolicyRules) -> Vec<String> {
    let mut lines = Vec::new();
    for profile in rules.profiles.values().filter(|profile| !profile.accounts.is_empty()) {
        let accounts: Vec<String> = profile.accounts.iter().map(describe_account).collect();
        lines.push(format!("Accounts of {}: {}.", profile.label, join_words(&accounts)));
    }
    lines.extend(describe_roles(&rules.access));
    match &rules.compositor {
        None => {}
        Some(CompositorConfig::Connect { socket: None }) => {
            lines.push("Uses the running Sway compositor.".to_owned());
        }
        Some(CompositorConfig::Connect { socket: Some(socket) }) => {
            lines.push(format!("Uses the running Sway compositor at {}.", socket.display()));
        }
        Some(CompositorConfig::Start { argv, user: None }) => {
            lines.push(format!("Starts the compositor `{}`.", argv.join(" ")));
        }
        Some(CompositorConfig::Start { argv, user: Some(user) }) => {
            lines.push(format!("Starts the compositor `{}` as user `{user}`.", argv.join(" ")));
        }
    }
    if rules.reload_on_change == ReloadOnChange::Yes {
        lines.push("Changes of the policy file apply as soon as it is saved.".to_owned());
    }
    lines
}

fn describe_roles(access: &AccessPolicy) -> Vec<String> {
    let mut lines = Vec::new();
    for (role, may) in [
        (ClientRole::Admin, "do everything"),
        (ClientRole::Shell, "launch entries"),
        (ClientRole::Observer, "watch"),
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
        None => "Nobody else may do anything, except root and the user that runs Shepherd.".to_owned(),
        Some(ClientRole::Observer) => "Everybody else may watch.".to_owned(),
        Some(ClientRole::Shell) => "Everybody else may launch entries.".to_owned(),
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

/// Describes how a login is counted, refused and ended.
pub(super) fn describe_login(login: &LoginPolicy) -> Vec<String> {
    let counted = match login.counts {
        LoginCounting::Active => "while it is in the foreground",
        LoginCounting::Unlocked => "while it is in the foreground and not locked",
        LoginCounting::Always => "until the log-out",
    };
    let idle = match login.idle {
        IdleTime::Counts => "",
        IdleTime::Free => ", but not without input",
    };
    let end = match login.end {
        LoginEnd::Terminate => "Everything that the account runs is ended with it.",
        LoginEnd::Lock => "At its end, the screen is locked.",
    };
    let mut lines =
        vec![format!("Being logged in to this computer: counts {counted}{idle}."), end.to_owned()];
    if login.without_daemon == LoginWithoutDaemon::Allow {
        lines.push("Anybody may log in while Shepherd doesn't run.".to_owned());
    }
    lines
}

/// Describes how an entry runs, as far as it differs from the usual.
pub(super) fn describe_run(run: &RunPolicy) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(user) = &run.user {
        lines.push(format!("Runs as {user}."));
    }
    match run.display {
        WindowDisplay::Unchanged => {}
        WindowDisplay::Foreground => lines.push("Shown in the foreground.".to_owned()),
        WindowDisplay::Fullscreen => lines.push("Shown in full screen.".to_owned()),
    }
    let limits = describe_resource_limits(&run.limits);
    if !limits.is_empty() {
        lines.push(format!("May use {}.", join_words(&limits)));
    }
    if let Some(grace) = run.stop_grace {
        lines.push(format!("Has {} to exit when asked to.", ExactDuration(grace)));
    }
    if let Some(kept) = run.output_limit {
        lines.push(format!("Up to {} of its output is kept.", format_size(kept)));
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
