//! The `dependencies` step: licences, banned crates and sources of everything that is linked into a product.
//!
//! The rules are in `deny.toml`, in the format of `cargo deny`, so that either tool can check them. This check reads
//! only what `cargo tree` says; a fresh machine therefore doesn't compile `cargo deny` to run the tests. Known
//! vulnerabilities need the advisory database, which only `cargo deny` reads: that part runs where both are installed.

mod graph;
mod licence;

use std::fs;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::located_error::LocatedError;
use crate::setup;
use crate::test::StepOutcome;
use crate::workspace::{CargoWorkspace, run_to_end};
use graph::{DependencyGraph, PackageOrigin};

const RULES_FILE: &str = "deny.toml";

/// The part of `deny.toml` that this check reads.
#[derive(Debug, Deserialize)]
struct DependencyRules {
    graph: GraphRules,
    licenses: LicenceRules,
    bans: BanRules,
}

#[derive(Debug, Deserialize)]
struct GraphRules {
    /// The platforms whose dependencies are checked.
    targets: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct LicenceRules {
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct BanRules {
    deny: Vec<BannedCrate>,
}

/// A crate that may not be used, except by the crates in `wrappers`.
#[derive(Debug, Deserialize)]
struct BannedCrate {
    #[serde(rename = "crate")]
    name: String,
    #[serde(default)]
    wrappers: Vec<String>,
    reason: String,
}

/// Checks the dependencies of every platform that `deny.toml` names.
pub(crate) fn run(workspace: &CargoWorkspace) -> Result<StepOutcome> {
    let text = fs::read_to_string(workspace.root.join(RULES_FILE)).context(RULES_FILE)?;
    let rules: DependencyRules = toml::from_str(&text).context(RULES_FILE)?;
    // The manifests of every platform have to be on this machine before cargo can describe them offline.
    run_to_end(workspace.cargo_command().args(["fetch", "--locked", "--quiet"]))?;
    let mut faults = find_wildcards(workspace);
    for target in &rules.graph.targets {
        let graph = DependencyGraph::load(workspace, target)?;
        println!("{target}: {} packages", graph.packages.len());
        faults.extend(find_faults(&rules, &graph));
    }
    faults.sort();
    faults.dedup();
    if !faults.is_empty() {
        let list: Vec<_> = faults.iter().map(LocatedError::to_string).collect();
        bail!("{}", list.join("\n"));
    }
    if setup::cargo_tool("cargo-deny").is_some() && setup::has_advisory_database() {
        run_to_end(workspace.cargo_command().args(["deny", "--offline", "check", "advisories"]))?;
        return Ok(StepOutcome::Passed);
    }
    let reason =
        "advisories were not checked: that needs `cargo install cargo-deny` and `cargo deny fetch db`";
    Ok(StepOutcome::PassedInPart(reason.to_owned()))
}

fn find_faults(rules: &DependencyRules, graph: &DependencyGraph) -> Vec<LocatedError> {
    let mut faults = find_licence_faults(&rules.licenses.allow, graph);
    faults.extend(find_banned(&rules.bans.deny, graph));
    faults.extend(find_foreign_sources(graph));
    faults
}

fn find_licence_faults(allowed: &[String], graph: &DependencyGraph) -> Vec<LocatedError> {
    let mut faults = Vec::new();
    for package in graph.packages.iter().filter(|package| package.origin != PackageOrigin::Member) {
        let (name, licence) = (&package.name, &package.licence);
        if licence::is_allowed(licence, allowed) {
            continue;
        }
        let fault = if licence.is_empty() {
            format!("`{name}` states no licence")
        } else {
            format!("the licence of `{name}`, `{licence}`, is not allowed")
        };
        let cure = "use another crate, or argue in the commit for adding the licence to `licenses.allow`";
        faults.push(LocatedError::new(RULES_FILE, fault, cure));
    }
    faults
}

fn find_banned(banned: &[BannedCrate], graph: &DependencyGraph) -> Vec<LocatedError> {
    let mut faults = Vec::new();
    for ban in banned {
        for user in graph.direct_users_of(&ban.name) {
            if !ban.wrappers.iter().any(|wrapper| wrapper == user) {
                let fault = format!("`{user}` uses the banned crate `{}`", ban.name);
                faults.push(LocatedError::new(RULES_FILE, fault, ban.reason.clone()));
            }
        }
    }
    faults
}

/// Reports packages from anywhere but the workspace and the package registry.
fn find_foreign_sources(graph: &DependencyGraph) -> Vec<LocatedError> {
    let cure = "depend on a version that the package registry has";
    let mut faults = Vec::new();
    for package in &graph.packages {
        if let PackageOrigin::Elsewhere(place) = &package.origin {
            let fault = format!("`{}` comes from {place}", package.name);
            faults.push(LocatedError::new("Cargo.lock", fault, cure));
        }
    }
    faults
}

/// Reports dependencies of members without a version.
fn find_wildcards(workspace: &CargoWorkspace) -> Vec<LocatedError> {
    let packages = workspace.packages.iter();
    let dependencies =
        packages.flat_map(|package| package.dependencies.iter().map(move |used| (package, used)));
    dependencies
        .filter(|(_, used)| used.req == "*" && used.path.is_none())
        .map(|(package, used)| {
            let fault = format!("`{}` takes any version of `{}`", package.name, used.name);
            LocatedError::new("Cargo.toml", fault, "name the lowest version that works")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{CargoDependency, CargoPackage};

    const RULES: &str = r#"
        [graph]
        targets = ["x86_64-unknown-linux-gnu"]
        [licenses]
        allow = ["MIT", "Apache-2.0"]
        [bans]
        deny = [{ crate = "nix", wrappers = ["rustyline"], reason = "system calls are rustix's" }]
    "#;

    fn first_lines(faults: &[LocatedError]) -> Vec<String> {
        faults.iter().map(|fault| fault.to_string().lines().next().unwrap().to_owned()).collect()
    }

    fn check(tree: &str) -> Vec<String> {
        let rules = toml::from_str(RULES).unwrap();
        first_lines(&find_faults(&rules, &DependencyGraph::parse(tree).unwrap()))
    }

    const NO_FAULT: [&str; 0] = [];

    #[test]
    fn a_licence_must_be_on_the_list() {
        assert_eq!(
            check("0|ours v1 (/w/ours)|\n1|a v1|GPL-3.0\n"),
            ["deny.toml: the licence of `a`, `GPL-3.0`, is not allowed"]
        );
        assert_eq!(check("0|a v1|\n"), ["deny.toml: `a` states no licence"]);
        assert_eq!(check("0|a v1 (proc-macro)|GPL-3.0 OR MIT (*)\n"), NO_FAULT);
    }

    #[test]
    fn a_banned_crate_may_be_used_by_its_wrappers_alone() {
        let tree = "0|ours v1 (/w/ours)|MIT\n1|rustyline v1|MIT\n2|nix v1|MIT\n";
        assert_eq!(check(tree), NO_FAULT);
        let fault = "deny.toml: `ours` uses the banned crate `nix`";
        assert_eq!(check(&format!("{tree}1|nix v1|MIT (*)\n")), [fault]);
    }

    #[test]
    fn a_repository_is_not_a_source() {
        let tree = "0|a v1|MIT\n0|b v1 (https://example.org/b#1234)|MIT\n";
        assert_eq!(check(tree), ["Cargo.lock: `b` comes from https://example.org/b#1234"]);
    }

    #[test]
    fn a_member_names_the_version_that_it_needs() {
        let used = |name: &str, req: &str, path: Option<&str>| CargoDependency {
            name: name.to_owned(),
            req: req.to_owned(),
            path: path.map(Into::into),
            kind: None,
        };
        let dependencies = vec![used("b", "*", None), used("c", "*", Some("/w/c")), used("d", "^1", None)];
        let member = CargoPackage {
            name: "a".to_owned(),
            manifest_path: "/w/a/Cargo.toml".into(),
            dependencies,
            targets: Vec::new(),
        };
        let workspace =
            CargoWorkspace { root: "/w".into(), target: "/w/target".into(), packages: vec![member] };
        assert_eq!(first_lines(&find_wildcards(&workspace)), ["Cargo.toml: `a` takes any version of `b`"]);
    }
}
