//! The folders of toolchains in the user's home, without the secrets in them (C16).
//!
//! Landlock can only allow. A folder with a secret is therefore opened part by part, without the secret, so a
//! secret that appears later is closed too.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::super::toolchain_access::ToolchainAccess;
use super::trees::exclude_closed;

/// The maximum number of files that are compared with a secret that has several hard links. A folder with
/// more files is not opened.
const MAX_COMPARED_FILES: usize = 200_000;

/// The trees of toolchains that exist.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ToolchainTrees {
    /// Trees that can be read and executed.
    pub(super) execute: Vec<PathBuf>,
    /// Cache folders.
    pub(super) write: Vec<PathBuf>,
}

/// Returns the trees of the toolchains, without their secrets and without paths that are closed anyway.
pub(super) fn open_toolchain(toolchain: &ToolchainAccess, closed: &[&Path]) -> ToolchainTrees {
    let folders: BTreeSet<PathBuf> =
        toolchain.read.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let mut secrets: BTreeSet<PathBuf> = toolchain.closed.iter().flat_map(|path| all_names(path)).collect();
    let linked: BTreeSet<(u64, u64)> = secrets.iter().filter_map(|path| linked_file(path)).collect();
    let mut execute = Vec::new();
    for folder in folders {
        let mut budget = MAX_COMPARED_FILES;
        if !linked.is_empty() && !find_links(&folder, &linked, &mut secrets, &mut budget) {
            continue;
        }
        let all_closed: Vec<&Path> =
            closed.iter().copied().chain(secrets.iter().map(PathBuf::as_path)).collect();
        execute.extend(exclude_closed(&folder, &all_closed));
    }
    let write = toolchain.write.iter().filter(|path| path.is_dir()).cloned().collect();
    ToolchainTrees { execute, write }
}

/// Returns a path as written, with its folder resolved, and with all symlinks resolved. The last form closes
/// the target of a secret that is a symlink.
fn all_names(path: &Path) -> Vec<PathBuf> {
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    let in_folder = folder.zip(path.file_name()).map(|(folder, name)| folder.join(name));
    [Some(path.to_owned()), in_folder, path.canonicalize().ok()].into_iter().flatten().collect()
}

/// Returns the identity of a file that has more than one name.
fn linked_file(path: &Path) -> Option<(u64, u64)> {
    let status = path.metadata().ok().filter(|status| status.is_file() && status.nlink() > 1)?;
    Some((status.dev(), status.ino()))
}

/// Adds the other names of linked secrets in a folder. Returns false if the folder has too many files.
fn find_links(
    folder: &Path,
    linked: &BTreeSet<(u64, u64)>,
    secrets: &mut BTreeSet<PathBuf>,
    budget: &mut usize,
) -> bool {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Some(left) = budget.checked_sub(1) else { return false };
        *budget = left;
        let Ok(status) = entry.metadata() else { continue };
        let is_complete = if status.is_dir() {
            find_links(&entry.path(), linked, secrets, budget)
        } else {
            if linked.contains(&(status.dev(), status.ino())) {
                secrets.insert(entry.path());
            }
            true
        };
        if !is_complete {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Creates `home/.cargo` with a secret, and returns the readable parts.
    fn opened(prepare: impl Fn(&Path)) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join(".cargo/bin")).unwrap();
        fs::create_dir_all(root.join(".cargo/registry")).unwrap();
        prepare(&root);
        let toolchain = ToolchainAccess {
            read: vec![root.join(".cargo"), root.join("missing")],
            closed: vec![root.join(".cargo/credentials.toml")],
            ..ToolchainAccess::default()
        };
        let mut trees: Vec<String> = open_toolchain(&toolchain, &[])
            .execute
            .iter()
            .map(|path| path.strip_prefix(&root).unwrap().display().to_string())
            .collect();
        trees.sort();
        trees
    }

    #[test]
    fn a_secret_is_left_out_whether_it_exists_or_not() {
        let parts = [".cargo/bin", ".cargo/registry"];
        assert_eq!(opened(|_| ()), parts);
        assert_eq!(opened(|root| fs::write(root.join(".cargo/credentials.toml"), "x").unwrap()), parts);
    }

    #[test]
    fn the_target_of_a_secret_that_is_a_symlink_is_left_out() {
        let trees = opened(|root| {
            fs::write(root.join(".cargo/registry/real"), "x").unwrap();
            fs::write(root.join(".cargo/registry/index"), "x").unwrap();
            symlink("registry/real", root.join(".cargo/credentials.toml")).unwrap();
        });
        assert_eq!(trees, [".cargo/bin", ".cargo/registry/index"]);
    }

    #[test]
    fn other_names_of_a_secret_are_left_out() {
        let trees = opened(|root| {
            fs::write(root.join(".cargo/credentials.toml"), "x").unwrap();
            fs::hard_link(root.join(".cargo/credentials.toml"), root.join(".cargo/bin/copy")).unwrap();
            fs::write(root.join(".cargo/bin/cargo"), "x").unwrap();
        });
        assert_eq!(trees, [".cargo/bin/cargo", ".cargo/registry"]);
    }

    #[test]
    fn a_toolchain_behind_a_symlink_keeps_its_secrets_closed() {
        let trees = opened(|root| {
            fs::rename(root.join(".cargo"), root.join("elsewhere")).unwrap();
            symlink("elsewhere", root.join(".cargo")).unwrap();
            fs::write(root.join("elsewhere/credentials.toml"), "x").unwrap();
        });
        assert_eq!(trees, ["elsewhere/bin", "elsewhere/registry"]);
    }
}
