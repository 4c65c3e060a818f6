//! The packages that cargo would link for one platform, read from `cargo tree`.
//!
//! `cargo metadata` would be easier to parse, but it also lists optional packages that only a feature such as
//! `time?/std` mentions and that cargo never builds.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};

use crate::workspace::CargoWorkspace;

/// The packages of one platform, and which of them uses which.
#[derive(Debug, Default)]
pub(super) struct DependencyGraph {
    pub(super) packages: BTreeSet<DependencyPackage>,
    /// Names of user and used.
    edges: BTreeSet<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DependencyPackage {
    pub(super) name: String,
    pub(super) origin: PackageOrigin,
    /// An SPDX expression; empty if the package states none.
    pub(super) licence: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PackageOrigin {
    Member,
    Registry,
    /// A repository or a second registry.
    Elsewhere(String),
}

impl DependencyGraph {
    pub(super) fn load(workspace: &CargoWorkspace, target: &str) -> Result<Self> {
        let mut command = workspace.cargo_command();
        command.args(["tree", "--workspace", "--all-features", "--locked", "--offline", "--target", target]);
        let output = command.args(["--prefix", "depth", "--format", "|{p}|{l}"]).output();
        let output = output.context("could not start cargo tree")?;
        if !output.status.success() {
            bail!("cargo tree failed:\n{}", String::from_utf8_lossy(&output.stderr).trim_end());
        }
        Self::parse(&String::from_utf8_lossy(&output.stdout))
    }

    /// Reads lines of the form `DEPTH|NAME vVERSION (ORIGIN)|LICENCE`, each below the package that uses it.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut graph = Self::default();
        let mut above: Vec<String> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let (depth, package) = parse_line(line).with_context(|| format!("cargo tree wrote `{line}`"))?;
            above.truncate(depth);
            if let Some(user) = above.last() {
                graph.edges.insert((user.clone(), package.name.clone()));
            }
            above.push(package.name.clone());
            graph.packages.insert(package);
        }
        Ok(graph)
    }

    /// Returns the names of the packages that link the crate `name` directly.
    pub(super) fn direct_users_of(&self, name: &str) -> impl Iterator<Item = &str> {
        self.edges.iter().filter(move |(_, used)| used == name).map(|(user, _)| user.as_str())
    }
}

fn parse_line(line: &str) -> Option<(usize, DependencyPackage)> {
    let mut fields = line.split('|');
    let (depth, package, licence) = (fields.next()?, fields.next()?, fields.next()?);
    // cargo marks a package whose own dependencies are shown further up.
    let licence = licence.trim_end_matches("(*)").trim();
    let (name, rest) = package.split_once(' ')?;
    let origin = match rest.split_once(" (").map(|(_, origin)| origin.trim_end_matches(')')) {
        None | Some("proc-macro") => PackageOrigin::Registry,
        Some(path) if path.starts_with('/') => PackageOrigin::Member,
        Some(other) => PackageOrigin::Elsewhere(other.to_owned()),
    };
    let package = DependencyPackage { name: name.to_owned(), origin, licence: licence.to_owned() };
    Some((depth.parse().ok()?, package))
}
