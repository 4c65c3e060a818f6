//! The survivors that a crate accepts, each with a reason, in the file `mutants.toml` beside its manifest.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::mutant::MutantName;

/// The name of the file.
pub(crate) const FILE: &str = "mutants.toml";

/// The content of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct AcceptedFile {
    #[serde(default)]
    survivor: Vec<AcceptedSurvivor>,
}

/// A mutant that no test has to catch.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AcceptedSurvivor {
    file: String,
    function: String,
    change: String,
    /// A sentence that says why the change is harmless.
    reason: String,
}

impl AcceptedSurvivor {
    fn name(self) -> MutantName {
        MutantName { file: self.file, function: self.function, change: self.change }
    }
}

/// Reads the names of the accepted survivors of the crate in this folder; none if there's no file.
pub(crate) fn load(folder: &Path) -> Result<BTreeSet<MutantName>> {
    let path = folder.join(FILE);
    if !path.exists() {
        return Ok(BTreeSet::new());
    }
    let text = fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
    let file: AcceptedFile =
        toml::from_str(&text).with_context(|| format!("could not parse {}", path.display()))?;
    if let Some(without) = file.survivor.iter().find(|survivor| survivor.reason.trim().is_empty()) {
        bail!("{}: `{}` in `{}` has no reason", path.display(), without.change, without.function);
    }
    Ok(file.survivor.into_iter().map(AcceptedSurvivor::name).collect())
}
