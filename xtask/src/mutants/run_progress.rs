//! The verdicts of a run so far, so that an interrupted run can go on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};

use super::mutant::Mutant;
use super::test_suite::{MutantVerdict, TestChoice};

/// The verdicts on mutants of the same test programs, each on a line of a file.
pub(crate) struct RunProgress {
    path: PathBuf,
    programs: u64,
    choice: TestChoice,
    known: BTreeMap<u32, MutantVerdict>,
    file: Mutex<File>,
}

#[derive(Serialize, Deserialize)]
struct ProgressLine {
    /// A hash of the test programs.
    programs: u64,
    choice: TestChoice,
    mutant: u32,
    verdict: MutantVerdict,
}

impl RunProgress {
    /// Reads the verdicts of an interrupted run. Verdicts on other test programs are dropped, and survivors of quick
    /// tests if all tests are chosen.
    pub(crate) fn open(path: &Path, programs: &[PathBuf], choice: TestChoice) -> Result<Self> {
        let programs = hash_files(programs)?;
        let text = fs::read_to_string(path).unwrap_or_default();
        // A line that was cut off by the interruption doesn't parse.
        let lines = text.lines().filter_map(|line| serde_json::from_str::<ProgressLine>(line).ok());
        let lines: Vec<_> = lines.filter(|line| line.programs == programs).collect();
        let known = lines
            .iter()
            .filter(|line| line.choice == choice || line.verdict.is_caught())
            .map(|line| (line.mutant, line.verdict))
            .collect();
        if lines.is_empty() {
            let _ = fs::remove_file(path);
        }
        let file = OpenOptions::new().append(true).create(true).open(path);
        let file = file.with_context(|| format!("could not open {}", path.display()))?;
        Ok(Self { path: path.to_owned(), programs, choice, known, file: Mutex::new(file) })
    }

    /// Returns the verdict of the interrupted run on a mutant.
    pub(crate) fn verdict_on(&self, mutant: &Mutant) -> Option<MutantVerdict> {
        self.known.get(&mutant.id).copied()
    }

    pub(crate) fn record(&self, mutant: &Mutant, verdict: MutantVerdict) -> Result<()> {
        let Self { programs, choice, .. } = *self;
        let line = serde_json::to_string(&ProgressLine { programs, choice, mutant: mutant.id, verdict })?;
        let mut file = self.file.lock().map_err(|_| anyhow!("a worker failed"))?;
        writeln!(file, "{line}").with_context(|| format!("could not write {}", self.path.display()))
    }

    /// Forgets the verdicts, so that the next run tries every mutant again.
    pub(crate) fn clear(&self) -> Result<()> {
        fs::remove_file(&self.path).with_context(|| format!("could not remove {}", self.path.display()))
    }
}

/// Returns a hash of the content of files. Cargo lists the same programs in another order from time to time, so their
/// order doesn't matter.
fn hash_files(paths: &[PathBuf]) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    for path in paths.iter().collect::<BTreeSet<_>>() {
        fs::read(path).with_context(|| format!("could not read {}", path.display()))?.hash(&mut hasher);
    }
    Ok(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::super::mutant::MutantName;
    use super::*;

    #[test]
    fn verdicts_are_kept_until_a_test_program_changes() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second, path] =
            ["first", "second", "progress.jsonl"].map(|name| folder.path().join(name));
        fs::write(&first, "1").unwrap();
        fs::write(&second, "2").unwrap();
        let name = MutantName { file: String::new(), function: String::new(), change: String::new() };
        let mutant = Mutant { id: 7, name, line: 1 };
        let open = |programs: [&PathBuf; 2]| {
            RunProgress::open(&path, &programs.map(PathBuf::clone), TestChoice::All).unwrap()
        };
        open([&first, &second]).record(&mutant, MutantVerdict::Survived).unwrap();
        assert_eq!(open([&second, &first]).verdict_on(&mutant), Some(MutantVerdict::Survived));
        fs::write(&second, "3").unwrap();
        assert_eq!(open([&first, &second]).verdict_on(&mutant), None);
    }
}
