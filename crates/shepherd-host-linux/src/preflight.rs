//! Checks whether the entries of a policy can run on this machine, without starting anything.

use std::io;
use std::path::Path;

use shepherd_core::policy::{Policy, PolicyEntry};
use shepherd_util::EntryId;

use crate::environment;
use crate::launch_command::{LaunchCommandBuilder, LaunchResources};
use crate::launch_error::LaunchError;
use crate::options::LinuxHostOptions;
use crate::start_job::{find_user, resolve_program};

/// A missing requirement, with all entries that can't be started because of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRequirement {
    /// The entries, in the order of the policy.
    pub entries: Vec<EntryId>,
    /// The requirement that is missing, and the cure.
    pub sentence: String,
}

/// Checks all entries of a policy as a host with these options would start them.
///
/// The check can't know what only the kernel decides, such as whether a user may read a folder, or whether a program
/// works.
#[must_use]
pub fn find_missing_requirements(policy: &Policy, options: &LinuxHostOptions) -> Vec<MissingRequirement> {
    let rules = policy.rules();
    let resources = LaunchResources { libraries: rules.libraries.clone(), drivers: rules.drivers.clone() };
    let mut missing: Vec<MissingRequirement> = Vec::new();
    for entry in policy.entries() {
        for LaunchError { message, help } in check_entry(entry, &resources, options) {
            let sentence = format!("{message}; {help}");
            match missing.iter_mut().find(|known| known.sentence == sentence) {
                Some(known) => known.entries.push(entry.entry_id.clone()),
                None => missing.push(MissingRequirement { entries: vec![entry.entry_id.clone()], sentence }),
            }
        }
    }
    missing
}

fn check_entry(
    entry: &PolicyEntry,
    resources: &LaunchResources,
    options: &LinuxHostOptions,
) -> Vec<LaunchError> {
    let (user, unknown_user) = match entry.run.user.as_deref().map(find_user) {
        Some(Ok(user)) => (Some(user), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    let environment = environment::base(&options.environment, &options.search_path, user.as_ref());
    let builder = LaunchCommandBuilder { resources, environment, socket_folder: &options.socket_folder };
    unknown_user.into_iter().chain(check_program(entry, &builder).err()).collect()
}

fn check_program(entry: &PolicyEntry, builder: &LaunchCommandBuilder<'_>) -> Result<(), LaunchError> {
    let command = builder.build(&entry.kind)?;
    let name = command.argv.first().ok_or_else(LaunchError::empty_command)?;
    let program = resolve_program(name, &command.environment)?;
    if is_missing(&program) {
        let message = format!("program `{}` not found", program.display());
        return Err(LaunchError::new(message, "install it, or correct its path"));
    }
    match command.directory.filter(|folder| is_missing(folder)) {
        Some(folder) => Err(LaunchError::new(
            format!("folder `{}` does not exist", folder.display()),
            "create it, or correct `cwd`",
        )),
        None => Ok(()),
    }
}

/// Returns whether a path certainly doesn't exist. A path that can't be accessed may exist.
fn is_missing(path: &Path) -> bool {
    path.metadata()
        .is_err_and(|error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
}
