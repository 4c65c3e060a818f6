//! Whether a policy fits this machine: the accounts it names, the programs it starts, the file it is in.
//!
//! None of it makes a policy invalid. It may be written for another machine, or before the game is installed.

use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use shepherd_config::Loaded;
use shepherd_host_linux::{LinuxHostOptions, Missing, rehearse};
use shepherd_ipc::{Accounts, resolve};
use shepherd_util::Chain;

/// All that does not fit, in sentences.
pub(crate) fn warnings(loaded: &Loaded, file: &Path) -> Vec<String> {
    let policy = &loaded.policy;
    let mut warnings = strangers(loaded);
    // Nothing is started, so nothing is kept anywhere.
    let options = LinuxHostOptions::new(PathBuf::new());
    warnings.extend(rehearse(policy, &options).into_iter().map(|Missing { entries, sentence }| {
        let names: Vec<String> = entries.iter().map(|entry| format!("`{entry}`")).collect();
        let noun = if names.len() == 1 { "entry" } else { "entries" };
        format!("{noun} {}: {sentence}", names.join(", "))
    }));
    warnings.extend(shepherdd::exposed_policy(file));
    warnings
}

/// Accounts that nobody has here.
fn strangers(loaded: &Loaded) -> Vec<String> {
    let rules = loaded.policy.rules();
    match Accounts::read() {
        Ok(accounts) => {
            let (_, faults) = resolve(&rules.access, &rules.profiles, geteuid().as_raw(), &accounts);
            faults.iter().map(ToString::to_string).collect()
        }
        Err(error) => vec![Chain(&error).to_string()],
    }
}
