//! Finds procedures in the home. Each procedure has its own folder, and is refused if other users can change it.

use std::fs;
use std::io;
use std::path::Path;

use collieclaw_agent::sop::{NAME_RULE, Sop, is_sop_name};
use collieclaw_agent::tools::Tool;
use ward_diag::{FaultReport, SourceText};

use crate::cli::environment::CliEnvironment;
use crate::cli::failure::CommandFailure;
use crate::cli::wiring;

/// The text of a procedure file.
pub(super) struct SopFile {
    pub(super) name: String,
    /// The name used in error messages.
    pub(super) display_name: String,
    pub(super) text: String,
}

/// A valid procedure, or the reason why it is invalid.
pub(super) type SopLoadResult = (String, Result<Sop, SopLoadError>);

/// The reason why a file is not a valid procedure.
pub(super) enum SopLoadError {
    Faults(FaultReport),
    /// The file could not be read, or others can change it.
    Unreadable(String),
}

pub(super) const SOP_FILE_NAME: &str = "SOP.toml";

pub(super) fn load(name: &str, environment: &CliEnvironment) -> Result<SopFile, CommandFailure> {
    if !is_sop_name(name) {
        return Err(CommandFailure::InvalidInput {
            what: format!("invalid procedure name `{name}`"),
            cure: NAME_RULE,
        });
    }
    let path = environment.home.sops().join(name).join(SOP_FILE_NAME);
    if matches!(fs::metadata(&path), Err(error) if error.kind() == io::ErrorKind::NotFound) {
        return Err(CommandFailure::InvalidInput {
            what: format!("no such procedure `{name}`: {} does not exist", path.display()),
            cure: "run `collieclaw sop list` to see the procedures",
        });
    }
    let bytes = read_trusted(&path, environment)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        CommandFailure::io(format!("read {}", path.display()))(io::Error::new(
            io::ErrorKind::InvalidData,
            error,
        ))
    })?;
    Ok(SopFile { name: name.to_owned(), display_name: path.display().to_string(), text })
}

/// Reads a file in the home. Rejects a file that other users can change, and a symlink that leads out of the home.
fn read_trusted(path: &Path, environment: &CliEnvironment) -> Result<Vec<u8>, CommandFailure> {
    let home = environment.home.folder();
    let real = path.canonicalize().map_err(CommandFailure::io(format!("find {}", path.display())))?;
    if !real.starts_with(home) {
        return Err(CommandFailure::Untrusted { path: path.to_owned() });
    }
    for folder in real.ancestors().skip(1).take_while(|folder| folder.starts_with(home)) {
        let metadata =
            fs::metadata(folder).map_err(CommandFailure::io(format!("inspect {}", folder.display())))?;
        if !collieclaw_agent::security::is_securely_owned(&metadata) {
            return Err(CommandFailure::Untrusted { path: folder.to_owned() });
        }
    }
    wiring::read_trusted_file(home, &real)
}

pub(super) fn parse(found: SopFile, tools: &[Box<dyn Tool>]) -> SopLoadResult {
    let source = SourceText::new(found.display_name, &found.text);
    let read = collieclaw_agent::sop::read_sop(source, &found.name, tools);
    (found.name, read.map_err(SopLoadError::Faults))
}

/// Returns every procedure, sorted by name.
pub(super) fn load_all(
    tools: &[Box<dyn Tool>],
    environment: &CliEnvironment,
) -> Result<Vec<SopLoadResult>, CommandFailure> {
    let folder = environment.home.sops();
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(CommandFailure::io(format!("list {}", folder.display())))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(CommandFailure::io(format!("list {}", folder.display())))?;
        if entry.path().join(SOP_FILE_NAME).exists() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    let listed = |name: String| match load(&name, environment) {
        Ok(found) => parse(found, tools),
        // An invalid procedure doesn't hide the others.
        Err(failure) => (name, Err(SopLoadError::Unreadable(failure.to_string()))),
    };
    Ok(names.into_iter().map(listed).collect())
}
