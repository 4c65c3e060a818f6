//! Rules about which crate may depend on which.

use std::collections::BTreeMap;

use super::SourceTree;
use crate::located_error::LocatedError;
use crate::workspace::CargoPackage;

/// Crates that decide, or that define the vocabulary of decisions. They get everything as arguments and do no I/O.
const PURE_CRATES: &[&str] = &["shepherd-core", "shepherd-api", "collieclaw-gate"];

/// Crates that do I/O. A pure crate must not depend on them, not even through another member.
const RUNTIMES: &[&str] =
    &["async-io", "axum", "hyper", "mio", "reqwest", "rusqlite", "smol", "tokio", "tokio-postgres", "ureq"];

/// Crates for system calls. A pure crate must not depend on them directly; members that it uses may.
const SYSTEM_CRATES: &[&str] =
    &["cap-std", "getrandom", "libc", "nix", "rand", "rustix", "tempfile", "tracing"];

/// The crates of CollieClaw, each with those of them that it may use. All dependencies point towards the core; only the
/// program uses all crates.
const COLLIECLAW_ARROWS: &[(&str, &[&str])] = &[
    ("collieclaw-gate", &[]),
    ("collieclaw-providers", &["collieclaw-gate"]),
    ("collieclaw-agent", &["collieclaw-gate", "collieclaw-providers"]),
    ("collieclaw-listen", &["collieclaw-providers"]),
    ("collieclaw-mcp-ipc", &["collieclaw-providers"]),
    ("collieclaw-mcp-adapter", &["collieclaw-listen", "collieclaw-mcp-ipc"]),
    (
        "collieclaw-mcp",
        &[
            "collieclaw-agent",
            "collieclaw-gate",
            "collieclaw-listen",
            "collieclaw-mcp-ipc",
            "collieclaw-providers",
        ],
    ),
    (
        "collieclaw-gateway",
        &["collieclaw-agent", "collieclaw-gate", "collieclaw-listen", "collieclaw-providers"],
    ),
];

/// Libraries that reach the network or a database, with the only crates of CollieClaw that may depend on them.
const COLLIECLAW_LIBRARIES: &[(&str, &[&str])] = &[
    ("axum", &["collieclaw-gateway"]),
    ("hyper", &["collieclaw-gateway", "collieclaw-mcp-adapter"]),
    ("rmcp", &["collieclaw-mcp-adapter"]),
    ("rusqlite", &["collieclaw-agent"]),
    ("tokio", &["collieclaw-gateway", "collieclaw-listen", "collieclaw-mcp-adapter"]),
    ("ureq", &["collieclaw-providers"]),
    ("ward-sqlite", &["collieclaw-agent"]),
];

/// The product that a crate belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CrateOwner {
    Shared,
    Shepherd,
    CollieClaw,
    Automation,
}

fn owner_of(name: &str) -> Option<CrateOwner> {
    if name == "xtask" {
        Some(CrateOwner::Automation)
    } else if name.starts_with("ward-") {
        Some(CrateOwner::Shared)
    } else if name == "shepherdd" || name.starts_with("shepherd-") {
        Some(CrateOwner::Shepherd)
    } else if name == "collieclaw" || name.starts_with("collieclaw-") {
        Some(CrateOwner::CollieClaw)
    } else {
        None
    }
}

fn may_depend_on(user: CrateOwner, used: CrateOwner) -> bool {
    match user {
        CrateOwner::Shared | CrateOwner::Automation => used == CrateOwner::Shared,
        CrateOwner::Shepherd | CrateOwner::CollieClaw => used == CrateOwner::Shared || used == user,
    }
}

/// Reports dependencies between the products, and of shared crates on a product.
pub(super) fn product_boundaries(model: &SourceTree) -> Vec<LocatedError> {
    let mut faults = Vec::new();
    for package in &model.packages {
        let place = package.manifest_path.display().to_string();
        let Some(user) = owner_of(&package.name) else {
            let fault = format!("crate `{}` belongs to no product", package.name);
            faults.push(LocatedError::new(
                place,
                fault,
                "begin its name with `ward-`, `shepherd-` or `collieclaw-`",
            ));
            continue;
        };
        for dependency in &package.dependencies {
            let is_member = model.packages.iter().any(|member| member.name == dependency.name);
            if is_member && owner_of(&dependency.name).is_some_and(|used| !may_depend_on(user, used)) {
                let fault = format!("`{}` must not depend on `{}`", package.name, dependency.name);
                let cure = "move the shared code into a `ward-` crate, or invert the dependency";
                faults.push(LocatedError::new(place.as_str(), fault, cure));
            }
        }
    }
    faults
}

/// Reports dependencies of CollieClaw's crates that the tables above don't allow.
pub(super) fn collieclaw_arrows(model: &SourceTree) -> Vec<LocatedError> {
    let mut faults = Vec::new();
    let ours =
        model.packages.iter().filter(|package| owner_of(&package.name) == Some(CrateOwner::CollieClaw));
    for package in ours {
        let name = package.name.as_str();
        let allowed = COLLIECLAW_ARROWS.iter().find(|(user, _)| *user == name).map(|(_, used)| *used);
        for dependency in package.dependencies.iter().filter(|dependency| dependency.kind.is_none()) {
            let used = dependency.name.as_str();
            let is_ours = owner_of(used) == Some(CrateOwner::CollieClaw);
            let against_arrow = is_ours && allowed.is_some_and(|allowed| !allowed.contains(&used));
            let confined = COLLIECLAW_LIBRARIES.iter().find(|(library, _)| *library == used);
            if against_arrow || confined.is_some_and(|(_, users)| !users.contains(&name)) {
                let place = package.manifest_path.display().to_string();
                let cure = "move the code to a crate that may, or invert the dependency with a trait";
                faults.push(LocatedError::new(place, format!("`{name}` must not depend on `{used}`"), cure));
            }
        }
    }
    faults
}

/// Reports pure crates that depend on a crate for system calls directly, or on a crate that does I/O through any path.
pub(super) fn pure_crates(model: &SourceTree) -> Vec<LocatedError> {
    let members: BTreeMap<_, _> =
        model.packages.iter().map(|member| (member.name.as_str(), member)).collect();
    let mut faults = Vec::new();
    for package in model.packages.iter().filter(|package| PURE_CRATES.contains(&package.name.as_str())) {
        for path in dependency_paths(package, &members) {
            let Some(end) = path.last() else { continue };
            if RUNTIMES.contains(end) || (path.len() == 2 && SYSTEM_CRATES.contains(end)) {
                let place = package.manifest_path.display().to_string();
                let fault =
                    format!("the pure crate `{}` depends on `{end}`: {}", package.name, path.join(" → "));
                let cure = "pass the value as an argument, and do the I/O in the calling crate";
                faults.push(LocatedError::new(place, fault, cure));
            }
        }
    }
    faults
}

/// Returns a shortest dependency path from a crate to each of its dependencies, through the members of the workspace.
fn dependency_paths<'model>(
    package: &'model CargoPackage,
    members: &BTreeMap<&str, &'model CargoPackage>,
) -> Vec<Vec<&'model str>> {
    let mut paths: Vec<Vec<&str>> = vec![vec![package.name.as_str()]];
    let mut next = 0;
    while let Some(path) = paths.get(next).cloned() {
        next += 1;
        let Some(member) = path.last().and_then(|name| members.get(name)) else { continue };
        let linked = member.dependencies.iter().filter(|dependency| dependency.kind.is_none());
        for dependency in linked.map(|dependency| dependency.name.as_str()) {
            if paths.iter().all(|known| known.last() != Some(&dependency)) {
                paths.push(path.iter().copied().chain([dependency]).collect());
            }
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::super::tests::messages;
    use super::*;

    #[test]
    fn the_allowed_arrows_are_allowed() {
        let model = SourceTree::default()
            .with_package("ward-ledger", &["serde"])
            .with_package("ward-process", &["dev ward-ledger"])
            .with_package("shepherd-core", &["serde", "jiff"])
            .with_package("shepherdd", &["shepherd-core", "ward-process", "tokio"])
            .with_package("collieclaw", &["ward-ledger"])
            .with_package("xtask", &["ward-ledger"]);
        assert_eq!(messages(product_boundaries, &model), [""; 0]);
        assert_eq!(messages(pure_crates, &model), [""; 0]);
    }

    #[test]
    fn products_that_know_each_other_are_found_even_in_tests() {
        // S1.
        let model = SourceTree::default()
            .with_package("shepherd-core", &[])
            .with_package("collieclaw", &["dev shepherd-core"])
            .with_package("ward-ledger", &["shepherd-core"])
            .with_package("shepherd-cli", &["xtask"])
            .with_package("xtask", &[])
            .with_package("helper", &[]);
        assert_eq!(
            messages(product_boundaries, &model),
            [
                "crates/collieclaw/Cargo.toml: `collieclaw` must not depend on `shepherd-core`",
                "crates/ward-ledger/Cargo.toml: `ward-ledger` must not depend on `shepherd-core`",
                "crates/shepherd-cli/Cargo.toml: `shepherd-cli` must not depend on `xtask`",
                "crates/helper/Cargo.toml: crate `helper` belongs to no product",
            ]
        );
    }

    #[test]
    fn an_arrow_against_the_core_or_a_library_in_the_wrong_crate_is_found() {
        let model = SourceTree::default()
            .with_package("collieclaw-providers", &["collieclaw-gate", "ureq", "collieclaw-agent"])
            .with_package("collieclaw-agent", &["collieclaw-providers", "rusqlite", "dev tokio"])
            .with_package("collieclaw-gateway", &["collieclaw-agent", "axum", "collieclaw-mcp"])
            .with_package("collieclaw", &["collieclaw-agent", "collieclaw-gateway", "rmcp", "ward-sqlite"])
            .with_package("shepherd-store", &["rusqlite"]);
        assert_eq!(
            messages(collieclaw_arrows, &model),
            [
                "crates/collieclaw-providers/Cargo.toml: `collieclaw-providers` must not depend on `collieclaw-agent`",
                "crates/collieclaw-gateway/Cargo.toml: `collieclaw-gateway` must not depend on `collieclaw-mcp`",
                "crates/collieclaw/Cargo.toml: `collieclaw` must not depend on `rmcp`",
                "crates/collieclaw/Cargo.toml: `collieclaw` must not depend on `ward-sqlite`",
            ]
        );
    }

    #[test]
    fn a_pure_crate_that_depends_on_a_runtime_is_reported_with_the_path() {
        // (S1), (C1), S3.9.
        let model = SourceTree::default()
            .with_package("shepherd-core", &["shepherd-util", "libc", "dev tokio"])
            .with_package("shepherd-util", &["rustix", "tokio"]);
        assert_eq!(
            messages(pure_crates, &model),
            [
                "crates/shepherd-core/Cargo.toml: the pure crate `shepherd-core` depends on `libc`: \
                 shepherd-core → libc",
                "crates/shepherd-core/Cargo.toml: the pure crate `shepherd-core` depends on `tokio`: \
                 shepherd-core → shepherd-util → tokio",
            ]
        );
    }
}
