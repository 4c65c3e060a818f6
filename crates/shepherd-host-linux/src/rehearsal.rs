//! What a policy asks of this machine and would not get: everything that can be known before anything is started.

use std::io;
use std::path::Path;

use shepherd_core::policy::{Entry, Policy};
use shepherd_util::EntryId;

use crate::environment;
use crate::options::LinuxHostOptions;
use crate::recipe::{Catalogue, Kitchen};
use crate::start::{Fault, account, find};

/// Entries that can't be started here, and why; entries with the same trouble come together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Which, in the order of the policy.
    pub entries: Vec<EntryId>,
    /// What is missing, and what helps.
    pub sentence: String,
}

/// Looks at all entries of a policy as a host with these options would, and starts nothing.
///
/// What only the kernel can tell is not known: whether a user may read a folder, whether a program works.
#[must_use]
pub fn rehearse(policy: &Policy, options: &LinuxHostOptions) -> Vec<Missing> {
    let rules = policy.rules();
    let catalogue = Catalogue { libraries: rules.libraries.clone(), drivers: rules.drivers.clone() };
    let mut missing: Vec<Missing> = Vec::new();
    for entry in policy.entries() {
        for Fault { fault, cure } in look_at(entry, &catalogue, options) {
            let sentence = format!("{fault}; {cure}");
            match missing.iter_mut().find(|known| known.sentence == sentence) {
                Some(known) => known.entries.push(entry.entry_id.clone()),
                None => missing.push(Missing { entries: vec![entry.entry_id.clone()], sentence }),
            }
        }
    }
    missing
}

fn look_at(entry: &Entry, catalogue: &Catalogue, options: &LinuxHostOptions) -> Vec<Fault> {
    let (user, nobody) = match entry.run.user.as_deref().map(account) {
        Some(Ok(user)) => (Some(user), None),
        Some(Err(fault)) => (None, Some(fault)),
        None => (None, None),
    };
    let environment = environment::base(&options.environment, &options.search_path, user.as_ref());
    let kitchen = Kitchen { catalogue, environment, sockets: &options.socket_folder };
    nobody.into_iter().chain(look_for_program(entry, &kitchen).err()).collect()
}

fn look_for_program(entry: &Entry, kitchen: &Kitchen<'_>) -> Result<(), Fault> {
    let recipe = kitchen.recipe(&entry.kind)?;
    let name = recipe.argv.first().ok_or_else(|| Fault::new("it names no program", "name one"))?;
    let program = find(name, &recipe.environment)?;
    if is_missing(&program) {
        let fault = format!("there is no program `{}`", program.display());
        return Err(Fault::new(fault, "install it, or correct its path"));
    }
    match recipe.directory.filter(|folder| is_missing(folder)) {
        Some(folder) => Err(Fault::new(
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
