//! Checks that manifests inherit versions and lints from the workspace.

use std::path::Path;

use toml::{Table, Value};

use super::{SourceTree, at_line};
use crate::located_error::LocatedError;

const INHERITED: &[&str] = &["version", "edition", "rust-version", "license", "publish"];
const DEPENDENCY_TABLES: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

/// Reports members that don't inherit their package keys, lints and dependency versions.
pub(super) fn inheritance(model: &SourceTree) -> Vec<LocatedError> {
    let mut faults = Vec::new();
    for package in &model.packages {
        let path = package.manifest_path.as_path();
        let Some(text) = model.text(path) else { continue };
        match text.parse::<Table>() {
            Ok(manifest) => faults.extend(check_manifest(path, text, &manifest)),
            Err(error) => {
                faults.push(LocatedError::new(
                    path.display().to_string(),
                    error.message(),
                    "correct the TOML",
                ));
            }
        }
    }
    faults
}

fn check_manifest(path: &Path, text: &str, manifest: &Table) -> Vec<LocatedError> {
    let mut faults = Vec::new();
    let inherits = |table: &str, key: &str| {
        manifest.get(table).and_then(|value| value.get(key)).is_some_and(is_inherited)
    };
    for key in INHERITED.iter().filter(|key| !inherits("package", key)) {
        let fault = format!("`{key}` is not inherited from the workspace");
        faults.push(LocatedError::new(
            place(path, text, key),
            fault,
            format!("write `{key}.workspace = true`"),
        ));
    }
    if !manifest.get("lints").is_some_and(is_inherited) {
        let place = place(path, text, "[lints]");
        let cure = "write `[lints]` with `workspace = true`";
        faults.push(LocatedError::new(place, "the lints are not inherited from the workspace", cure));
    }
    for (name, _) in dependencies(manifest).into_iter().filter(|(_, value)| !is_inherited(value)) {
        let fault = format!("dependency `{name}` does not take its version from the workspace");
        let cure = format!("name it in `[workspace.dependencies]` and write `{name}.workspace = true` here");
        faults.push(LocatedError::new(place(path, text, name), fault, cure));
    }
    faults
}

/// Returns whether a value is `{ workspace = true }`, in any notation.
fn is_inherited(value: &Value) -> bool {
    value.get("workspace").and_then(Value::as_bool) == Some(true)
}

/// Returns the dependencies of every kind, including those for a single platform.
fn dependencies(manifest: &Table) -> Vec<(&str, &Value)> {
    let platforms = manifest.get("target").and_then(Value::as_table);
    let platform_tables = platforms.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    std::iter::once(manifest)
        .chain(platform_tables)
        .flat_map(|table| DEPENDENCY_TABLES.iter().filter_map(|name| table.get(*name)?.as_table()))
        .flatten()
        .map(|(name, value)| (name.as_str(), value))
        .collect()
}

fn place(path: &Path, text: &str, key: &str) -> String {
    let begins =
        |line: &str| line.trim_start().strip_prefix(key).is_some_and(|rest| !rest.starts_with(['-', '_']));
    let line = text.lines().position(begins);
    line.map_or_else(|| path.display().to_string(), |index| at_line(path, index + 1))
}

#[cfg(test)]
mod tests {
    use super::super::tests::messages;
    use super::*;

    const PACKAGE: &str = "[package]\nname = \"a\"\nversion.workspace = true\nedition.workspace = true\n\
        rust-version.workspace = true\nlicense.workspace = true\npublish = { workspace = true }\n";
    const PATH: &str = "crates/ward-a/Cargo.toml";

    fn messages_for(manifest: &str) -> Vec<String> {
        messages(inheritance, &SourceTree::of_texts(&[(PATH, manifest)]).with_package("ward-a", &[]))
    }

    #[test]
    fn a_member_that_inherits_everything_is_in_order() {
        let rest = "[lints]\nworkspace = true\n[dependencies]\nserde.workspace = true\n\
            rustix = { workspace = true, features = [\"fs\"] }\n";
        assert_eq!(messages_for(&format!("{PACKAGE}{rest}")), [""; 0]);
    }

    #[test]
    fn a_version_of_its_own_is_found_in_every_table() {
        let manifest = format!(
            "{}[dependencies]\nserde = \"1\"\n[build-dependencies.cc]\nversion = \"1\"\n\
             [target.'cfg(unix)'.dev-dependencies]\nlibc = {{ version = \"0.2\" }}\n",
            PACKAGE.replace("edition.workspace = true", "edition = \"2021\"")
        );
        assert_eq!(
            messages_for(&manifest),
            [
                "crates/ward-a/Cargo.toml:4: `edition` is not inherited from the workspace",
                "crates/ward-a/Cargo.toml: the lints are not inherited from the workspace",
                "crates/ward-a/Cargo.toml:9: dependency `serde` does not take its version from the workspace",
                "crates/ward-a/Cargo.toml: dependency `cc` does not take its version from the workspace",
                "crates/ward-a/Cargo.toml:13: dependency `libc` does not take its version from the workspace",
            ]
        );
    }
}
