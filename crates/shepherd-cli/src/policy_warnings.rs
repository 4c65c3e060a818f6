//! Warnings about a policy that does not fit this machine: missing accounts and programs, and an unsafe policy file.
//!
//! Warnings do not make a policy invalid. It may be for another machine, or written before a game is installed.

use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use shepherd_api::{Command, CommandReply};
use shepherd_config::LoadedPolicy;
use shepherd_host_linux::{LinuxHostOptions, MissingRequirement, find_missing_requirements};
use shepherd_ipc::{BlockingClient, ClientOptions, SystemAccounts, resolve_access};
use shepherd_util::ErrorChain;

use crate::context::CommandContext;
use ward_terminal::escape_label;

pub(crate) fn collect_warnings(loaded: &LoadedPolicy, file: &Path, context: &CommandContext) -> Vec<String> {
    let policy = &loaded.policy;
    let mut warnings = unknown_accounts(loaded);
    // Nothing is started, so the folder for session logs is not used.
    let options = LinuxHostOptions::new(PathBuf::new());
    warnings.extend(find_missing_requirements(policy, &options).into_iter().map(
        |MissingRequirement { entries, sentence }| {
            let names: Vec<String> = entries.iter().map(|entry| format!("`{entry}`")).collect();
            let noun = if names.len() == 1 { "entry" } else { "entries" };
            format!("{noun} {}: {sentence}", names.join(", "))
        },
    ));
    warnings.extend(shepherdd::policy_exposure_warnings(file));
    warnings.extend(failed_host_check(context));
    warnings
}

/// Returns the detail of the daemon's host check if a daemon runs and can't launch anything.
fn failed_host_check(context: &CommandContext) -> Option<String> {
    let options = ClientOptions::new(context.socket().ok()?, "shepherd policy check");
    let reply = BlockingClient::connect(&options).ok()?.call(Command::Health {}).ok()?;
    let CommandReply::Health { health } = reply else { return None };
    let failed = health.checks.into_iter().find(|check| check.name == "host" && !check.passed)?;
    Some(format!("the daemon on this machine: {}", escape_label(&failed.detail)))
}

/// Returns a warning for each account of the policy that this machine does not have.
fn unknown_accounts(loaded: &LoadedPolicy) -> Vec<String> {
    let rules = loaded.policy.rules();
    match SystemAccounts::read() {
        Ok(accounts) => {
            let (_, faults) = resolve_access(&rules.access, &rules.profiles, geteuid().as_raw(), &accounts);
            faults.iter().map(ToString::to_string).collect()
        }
        Err(error) => vec![ErrorChain(&error).to_string()],
    }
}
