//! `cargo xtask tidy`: checks rules of the workspace that the compiler can't check.
//!
//! Every check is a pure function that takes a [`SourceTree`] and returns the faults it finds, so its tests use small
//! trees that break its rule.

mod dependency_rules;
mod lexer;
mod manifests;
mod markdown;
mod modules;
mod requirements;
mod sources;
mod texts;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::located_error::LocatedError;
use crate::workspace::{CargoPackage, CargoWorkspace};

/// Folders at the root that contain no sources.
const NOT_SOURCES: &[&str] = &[".git", "bench-results", "target"];

/// The input of all checks.
#[derive(Debug, Default)]
struct SourceTree {
    /// The members, with paths relative to the root.
    packages: Vec<CargoPackage>,
    /// Every text file by its path from the root.
    texts: BTreeMap<PathBuf, String>,
    /// Every file, including binary files.
    files: Vec<PathBuf>,
    /// Folders of this machine that no source may name.
    private_folders: Vec<String>,
}

const CHECKS: &[fn(&SourceTree) -> Vec<LocatedError>] = &[
    dependency_rules::product_boundaries,
    dependency_rules::collieclaw_arrows,
    dependency_rules::pure_crates,
    manifests::inheritance,
    modules::orphans,
    modules::integration_binaries,
    sources::headers,
    sources::banned_words,
    sources::confined_libraries,
    texts::sizes,
    texts::merge_markers,
    texts::private_paths,
    markdown::expected_documents,
    markdown::links,
    markdown::architecture,
    requirements::citations,
    requirements::shown_by_tests,
];

/// Runs every check and reports all faults at once.
pub(crate) fn run(workspace: &CargoWorkspace) -> Result<()> {
    let model = SourceTree::read(workspace)?;
    let mut faults: Vec<_> = CHECKS.iter().flat_map(|check| check(&model)).collect();
    faults.sort();
    if faults.is_empty() {
        println!("{} files, {} checks, no faults", model.files.len(), CHECKS.len());
        return Ok(());
    }
    // The faults are part of the error, so that they are printed last.
    let list: Vec<_> = faults.iter().map(LocatedError::to_string).collect();
    bail!("faults found: {}\n{}", faults.len(), list.join("\n"));
}

impl SourceTree {
    fn read(workspace: &CargoWorkspace) -> Result<Self> {
        let mut model =
            Self { private_folders: vec![workspace.root.display().to_string()], ..Self::default() };
        let mut skipped: Vec<_> = NOT_SOURCES.iter().map(|name| workspace.root.join(name)).collect();
        skipped.push(workspace.target.clone());
        model.read_folder(workspace, &workspace.root, &skipped)?;
        model.files.sort();
        model.packages = workspace.packages.clone();
        for package in &mut model.packages {
            package.manifest_path = workspace.relative(&package.manifest_path).to_owned();
            for target in &mut package.targets {
                target.src_path = workspace.relative(&target.src_path).to_owned();
            }
        }
        Ok(model)
    }

    fn read_folder(&mut self, workspace: &CargoWorkspace, folder: &Path, skipped: &[PathBuf]) -> Result<()> {
        for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let path = entry.path();
            let kind = entry.file_type()?;
            if kind.is_dir() && !skipped.contains(&path) {
                self.read_folder(workspace, &path, skipped)?;
            } else if kind.is_file() {
                let relative = workspace.relative(&path).to_owned();
                if let Ok(text) = String::from_utf8(fs::read(&path)?) {
                    self.texts.insert(relative.clone(), text);
                }
                self.files.push(relative);
            }
        }
        Ok(())
    }

    fn text(&self, path: &Path) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    fn texts_ending_with<'model>(
        &'model self,
        extension: &'model str,
    ) -> impl Iterator<Item = (&'model Path, &'model str)> {
        self.texts
            .iter()
            .filter(move |(path, _)| path.extension().is_some_and(|own| own == extension))
            .map(|(path, text)| (path.as_path(), text.as_str()))
    }
}

/// Formats `path:line`, as editors and compilers do.
fn at_line(path: &Path, line: usize) -> String {
    format!("{}:{line}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{CargoDependency, CargoTarget};

    impl SourceTree {
        /// A model of these files alone.
        pub(super) fn of_texts(texts: &[(&str, &str)]) -> Self {
            let texts: BTreeMap<_, _> =
                texts.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect();
            Self { files: texts.keys().cloned().collect(), texts, ..Self::default() }
        }

        /// The same with one more member, whose dependencies are `name` or `kind name`.
        pub(super) fn with_package(mut self, name: &str, dependencies: &[&str]) -> Self {
            self.packages.push(package(name, dependencies));
            self
        }

        /// The same with one more target in the last member.
        pub(super) fn with_target(mut self, kind: &str, path: &str) -> Self {
            let target =
                CargoTarget { name: "t".to_owned(), kind: vec![kind.to_owned()], src_path: path.into() };
            self.packages.last_mut().unwrap().targets.push(target);
            self
        }
    }

    fn dependency(name: &str, kind: Option<&str>) -> CargoDependency {
        CargoDependency {
            name: name.to_owned(),
            req: "^1".to_owned(),
            path: None,
            kind: kind.map(str::to_owned),
        }
    }

    fn package(name: &str, dependencies: &[&str]) -> CargoPackage {
        let dependencies = dependencies.iter().map(|line| match line.split_once(' ') {
            Some((kind, name)) => dependency(name, Some(kind)),
            None => dependency(line, None),
        });
        CargoPackage {
            name: name.to_owned(),
            manifest_path: format!("crates/{name}/Cargo.toml").into(),
            dependencies: dependencies.collect(),
            targets: Vec::new(),
        }
    }

    #[test]
    fn the_model_has_every_file_but_those_that_are_results() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in [
            "crates/ward-a/src/lib.rs",
            "README.md",
            "target/debug/x.rs",
            ".git/HEAD",
            "bench-results/b.json",
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), "text").unwrap();
        }
        fs::write(root.join("picture.png"), [0xff, 0xfe]).unwrap();
        let mut member = package("ward-a", &[]);
        member.manifest_path = root.join("crates/ward-a/Cargo.toml");
        let workspace =
            CargoWorkspace { root: root.to_owned(), target: root.join("target"), packages: vec![member] };

        let model = SourceTree::read(&workspace).unwrap();

        let expected = ["README.md", "crates/ward-a/src/lib.rs", "picture.png"].map(PathBuf::from);
        assert_eq!(model.files, expected);
        assert_eq!(model.texts.keys().collect::<Vec<_>>(), expected.iter().take(2).collect::<Vec<_>>());
        assert_eq!(model.packages[0].manifest_path, Path::new("crates/ward-a/Cargo.toml"));
    }

    /// Returns the messages of a check for a model, one fault a line, without the help.
    pub(super) fn messages(check: fn(&SourceTree) -> Vec<LocatedError>, model: &SourceTree) -> Vec<String> {
        let first_line =
            |fault: &LocatedError| fault.to_string().lines().next().unwrap_or_default().to_owned();
        check(model).iter().map(first_line).collect()
    }
}
