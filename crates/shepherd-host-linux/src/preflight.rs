//! What a policy asks of this machine and would not get: everything that can be known before anything is started.

use std::io;
use std::path::Path;

use shepherd_core::policy::{Policy, PolicyEntry};
use shepherd_util::EntryId;

use crate::environment;
use crate::launch_command::{LaunchCommandBuilder, LaunchResources};
use crate::options::LinuxHostOptions;
use crate::start_job::{LaunchError, find_user, resolve_program};

/// Entries that can't be started here, and why; entries with the same trouble come together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRequirement {
    /// Which, in the order of the policy.
    pub entries: Vec<EntryId>,
    /// What is missing, and what helps.
    pub sentence: String,
}

/// Looks at all entries of a policy as a host with these options would, and starts nothing.
///
/// What only the kernel can tell is not known: whether a user may read a folder, whether a program works.
#[must_use]
pub fn find_missing_requirements(policy: &Policy, options: &LinuxHostOptions) -> Vec<MissingRequirement> {
    let rules = policy.rules();
    let catalogue = LaunchResources { libraries: rules.libraries.clone(), drivers: rules.drivers.clone() };
    let mut missing: Vec<MissingRequirement> = Vec::new();
    for entry in policy.entries() {
        for LaunchError { message: fault, help: cure } in check_entry(entry, &catalogue, options) {
            let sentence = format!("{fault}; {cure}");
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
    catalogue: &LaunchResources,
    options: &LinuxHostOptions,
) -> Vec<LaunchError> {
    let (user, nobody) = match entry.run.user.as_deref().map(find_user) {
        Some(Ok(user)) => (Some(user), None),
        Some(Err(fault)) => (None, Some(fault)),
        None => (None, None),
    };
    let environment = environment::base(&options.environment, &options.search_path, user.as_ref());
    let kitchen =
        LaunchCommandBuilder { resources: catalogue, environment, socket_folder: &options.socket_folder };
    nobody.into_iter().chain(check_program(entry, &kitchen).err()).collect()
}

fn check_program(entry: &PolicyEntry, kitchen: &LaunchCommandBuilder<'_>) -> Result<(), LaunchError> {
    let recipe = kitchen.build(&entry.kind)?;
    let name = recipe.argv.first().ok_or_else(|| LaunchError::new("it names no program", "name one"))?;
    let program = resolve_program(name, &recipe.environment)?;
    if is_missing(&program) {
        let fault = format!("there is no program `{}`", program.display());
        return Err(LaunchError::new(fault, "install it, or correct its path"));
    }
    match recipe.directory.filter(|folder| is_missing(folder)) {
        Some(folder) => Err(LaunchError::new(
            format!("its folder `{}` is not there", folder.display()),
            "make it, or correct `cwd`",
        )),
        None => Ok(()),
    }
}

/// Where we can't look, something may be.
fn is_missing(path: &Path) -> bool {
    path.metadata()
        .is_err_and(|error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
}
