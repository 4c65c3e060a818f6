//! A crate with all its mutants built in.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::compiler::{self, BuildOutcome, CompileError};
use super::enumerate::{FileMutants, find_mutants};
use super::mutant::Mutant;
use super::rewrite::{RewrittenFile, rewrite};
use super::source_tree::library_files;
use super::switch;
use super::workspace_copy::{WorkspaceCopy, write_if_changed};
use crate::workspace::{CargoPackage, CargoWorkspace};

/// A crate whose mutants are built into one program.
pub(crate) struct MutantCrate {
    pub(crate) package: String,
    /// The folder of the crate in the copy.
    pub(crate) folder: PathBuf,
    copy: WorkspaceCopy,
    root_file: PathBuf,
    files: Vec<SourceFile>,
    count: u32,
    /// Mutants that the compiler rejects.
    rejected: BTreeSet<u32>,
}

struct SourceFile {
    /// The path in the copy.
    path: PathBuf,
    source: String,
    found: FileMutants,
}

impl MutantCrate {
    /// Copies the workspace and finds the mutants of a package.
    pub(crate) fn prepare(workspace: &CargoWorkspace, package: &CargoPackage) -> Result<Self> {
        let library = package.targets.iter().find(|target| target.has_kind("lib"));
        let root = &library.with_context(|| format!("`{}` has no library", package.name))?.src_path;
        let folder = package.manifest_path.parent().context("a manifest has a folder")?;
        let paths = library_files(root)?;
        let copy = WorkspaceCopy::create(workspace, &package.name, &paths.iter().cloned().collect())?;
        let mut files = Vec::new();
        let mut count = 0;
        for path in paths {
            let source =
                fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
            let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
            let found = find_mutants(&name, &source, count)?;
            count += u32::try_from(found.mutants.len() + found.constant.len())?;
            files.push(SourceFile { path: copy.path_of(workspace, &path), source, found });
        }
        Ok(Self {
            package: package.name.clone(),
            folder: copy.path_of(workspace, folder),
            root_file: copy.path_of(workspace, root),
            copy,
            files,
            count,
            rejected: BTreeSet::new(),
        })
    }

    /// Returns the mutants that the compiler accepts.
    pub(crate) fn viable(&self) -> impl Iterator<Item = &Mutant> {
        let mutants = self.files.iter().flat_map(|file| &file.found.mutants);
        mutants.filter(|mutant| !self.rejected.contains(&mutant.id))
    }

    /// Returns the mutants of constants, which can't be switched on in a built program.
    pub(crate) fn constant(&self) -> impl Iterator<Item = &Mutant> {
        self.files.iter().flat_map(|file| &file.found.constant)
    }

    /// Returns the number of mutants that the compiler rejects.
    pub(crate) fn rejected_count(&self) -> usize {
        self.rejected.len()
    }

    /// Builds the crate's tests with the mutants, without those that don't compile. Returns the test programs.
    pub(crate) fn build(&mut self) -> Result<Vec<PathBuf>> {
        let kept = self.copy.root.with_file_name("rejected.json");
        let sources = self.hash_sources();
        let last = fs::read(&kept).ok().and_then(|text| serde_json::from_slice(&text).ok());
        if let Some((_, rejected)) = last.filter(|(of, _): &(u64, BTreeSet<u32>)| *of == sources) {
            self.rejected = rejected;
        }
        let programs = self.build_viable()?;
        write_if_changed(&kept, &serde_json::to_vec(&(sources, &self.rejected))?)?;
        Ok(programs)
    }

    /// Returns a hash of the sources. Equal sources have the same mutants that don't compile.
    fn hash_sources(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.files.iter().for_each(|file| file.source.hash(&mut hasher));
        hasher.finish()
    }

    fn build_viable(&mut self) -> Result<Vec<PathBuf>> {
        for arguments in [&["check", "--lib"][..], &["test", "--no-run", "--tests"]] {
            loop {
                let rewritten = self.write_sources()?;
                let outcome =
                    compiler::build(self.cargo_command().args(arguments).args(["--package", &self.package]))?;
                if outcome.is_built {
                    if arguments.contains(&"test") {
                        return Ok(outcome.test_programs);
                    }
                    break;
                }
                self.reject_mutants(&outcome, &rewritten)?;
            }
        }
        bail!("cargo built no tests of `{}`", self.package)
    }

    fn cargo_command(&self) -> Command {
        let mut command = crate::workspace::bare_cargo();
        command.current_dir(&self.copy.root).env("CARGO_TARGET_DIR", &self.copy.target);
        // Tests run thousands of times, so a slower build that makes them faster pays.
        command
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
            .args(["--quiet", "--locked"]);
        command
    }

    /// Writes the rewritten files to the copy. Returns them by their paths below the root of the copy.
    fn write_sources(&self) -> Result<BTreeMap<PathBuf, RewrittenFile>> {
        let mut rewritten = BTreeMap::new();
        for file in &self.files {
            let mut result = rewrite(&file.source, &file.found.sites, &self.rejected);
            if file.path == self.root_file {
                result.surround(switch::ALLOWED_LINTS, switch::DECLARATION);
                let module = file.path.with_file_name(format!("{}.rs", switch::MODULE));
                write_if_changed(&module, switch::module_source(self.count).as_bytes())?;
            }
            write_if_changed(&file.path, result.text.as_bytes())?;
            let relative = file.path.strip_prefix(&self.copy.root).unwrap_or(&file.path);
            rewritten.insert(relative.to_owned(), result);
        }
        Ok(rewritten)
    }

    /// Leaves out the mutants that the compiler's errors are about.
    fn reject_mutants(
        &mut self,
        outcome: &BuildOutcome,
        rewritten: &BTreeMap<PathBuf, RewrittenFile>,
    ) -> Result<()> {
        let before = self.rejected.len();
        let mut unexplained = None;
        for error in &outcome.errors {
            let guilty = guilty_mutants(error, rewritten);
            if guilty.is_empty() {
                unexplained = unexplained.or(error.rendered.clone());
            }
            self.rejected.extend(guilty);
        }
        println!("  {} mutants don't compile", self.rejected.len());
        if self.rejected.len() == before {
            let error = unexplained.as_ref().unwrap_or(&outcome.messages);
            bail!(
                "could not build `{}` with its mutants: no mutant contains this error\n{error}",
                self.package
            );
        }
        Ok(())
    }
}

/// Returns the mutants that contain a main place of the error; else those that contain another place of it; else those
/// of the site around it, whose mutants may have changed a type.
fn guilty_mutants(error: &CompileError, rewritten: &BTreeMap<PathBuf, RewrittenFile>) -> Vec<u32> {
    let [main, others] = error.places();
    let file = |path: &Path| rewritten.get(path);
    for places in [&main, &others] {
        let found: Vec<u32> = places
            .iter()
            .flat_map(|(path, bytes)| file(path).map(|file| file.mutants_at(bytes)).unwrap_or_default())
            .collect();
        if !found.is_empty() {
            return found;
        }
    }
    main.iter()
        .flat_map(|(path, bytes)| file(path).map(|file| file.site_at(bytes)).unwrap_or_default())
        .collect()
}
