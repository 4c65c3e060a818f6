//! Where procedures are found: in the home, each in a folder of its own, written by nobody but its owner.

use std::fs;
use std::io;
use std::path::Path;

use collieclaw::sop::{NAME_RULE, Sop, is_name};
use collieclaw::tools::Tool;
use ward_diag::{Report, Source};

use crate::cli::environment::Environment;
use crate::cli::failure::Failure;
use crate::cli::open;

/// The text of a procedure.
pub(super) struct Found {
    /// Its folder.
    pub(super) name: String,
    /// What faults call it.
    pub(super) shown: String,
    pub(super) text: String,
}

/// A procedure, or why it is none.
pub(super) type Read = (String, Result<Sop, Unfit>);

/// Why something is no procedure.
pub(super) enum Unfit {
    /// It has these faults.
    Faults(Report),
    /// It can't be read, or not be trusted.
    Unread(String),
}

pub(super) const FILE: &str = "SOP.toml";

pub(super) fn one(name: &str, environment: &Environment) -> Result<Found, Failure> {
    if !is_name(name) {
        return Err(Failure::Wrong {
            what: format!("`{name}` can't be the name of a procedure"),
            cure: NAME_RULE,
        });
    }
    let path = environment.home.sops().join(name).join(FILE);
    if matches!(fs::metadata(&path), Err(error) if error.kind() == io::ErrorKind::NotFound) {
        return Err(Failure::Wrong {
            what: format!("there is no procedure `{name}`: no {}", path.display()),
            cure: "`collieclaw sop list` shows them",
        });
    }
    let bytes = trusted(&path, environment)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        Failure::io(format!("read {}", path.display()))(io::Error::new(io::ErrorKind::InvalidData, error))
    })?;
    Ok(Found { name: name.to_owned(), shown: path.display().to_string(), text })
}

/// What others can write is no procedure of yours, nor is what lies elsewhere behind a link.
fn trusted(path: &Path, environment: &Environment) -> Result<Vec<u8>, Failure> {
    let home = environment.home.folder();
    let real = path.canonicalize().map_err(Failure::io(format!("find {}", path.display())))?;
    if !real.starts_with(home) {
        return Err(Failure::Untrusted { path: path.to_owned() });
    }
    for folder in real.ancestors().skip(1).take_while(|folder| folder.starts_with(home)) {
        let known = fs::metadata(folder).map_err(Failure::io(format!("look at {}", folder.display())))?;
        if !collieclaw::security::is_ours(&known) {
            return Err(Failure::Untrusted { path: folder.to_owned() });
        }
    }
    open::trusted(home, &real)
}

pub(super) fn read(found: Found, tools: &[Box<dyn Tool>]) -> Read {
    let source = Source::new(found.shown, &found.text);
    let read = collieclaw::sop::read(source, &found.name, tools);
    (found.name, read.map_err(Unfit::Faults))
}

/// Every procedure there is, by name.
pub(super) fn all(tools: &[Box<dyn Tool>], environment: &Environment) -> Result<Vec<Read>, Failure> {
    let folder = environment.home.sops();
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(Failure::io(format!("list {}", folder.display())))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Failure::io(format!("list {}", folder.display())))?;
        if entry.path().join(FILE).exists() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    let listed = |name: String| match one(&name, environment) {
        Ok(found) => read(found, tools),
        // It hides no other.
        Err(failure) => (name, Err(Unfit::Unread(failure.to_string()))),
    };
    Ok(names.into_iter().map(listed).collect())
}
