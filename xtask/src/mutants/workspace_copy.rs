//! A copy of the workspace, in which a crate is rewritten and built.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::switch;
use crate::workspace::CargoWorkspace;

/// A copy of the workspace below its target folder.
pub(crate) struct WorkspaceCopy {
    pub(crate) root: PathBuf,
    /// The target folder of the copy. The workspace's own isn't shared, because its programs would be replaced.
    pub(crate) target: PathBuf,
}

impl WorkspaceCopy {
    /// Copies the files that git knows or would add. Files in `rewritten` are left to the caller. A file that hasn't
    /// changed isn't touched, so that cargo doesn't build it again.
    pub(crate) fn create(
        workspace: &CargoWorkspace,
        name: &str,
        rewritten: &BTreeSet<PathBuf>,
    ) -> Result<Self> {
        let folder = workspace.target.join("mutants");
        let copy = Self { root: folder.join(name).join("workspace"), target: folder.join("target") };
        let files = versioned_files(&workspace.root)?;
        for file in &files {
            let source = workspace.root.join(file);
            if !rewritten.contains(&source) && source.is_file() {
                let content =
                    fs::read(&source).with_context(|| format!("could not read {}", source.display()))?;
                write_if_changed(&copy.root.join(file), &content)?;
            }
        }
        copy.remove_others(&copy.root, &files)?;
        Ok(copy)
    }

    /// Returns the path in the copy of a path in the workspace.
    pub(crate) fn path_of(&self, workspace: &CargoWorkspace, path: &Path) -> PathBuf {
        self.root.join(workspace.relative(path))
    }

    /// Removes files that are no longer in the workspace, such as inputs that failing tests kept.
    fn remove_others(&self, folder: &Path, files: &BTreeSet<PathBuf>) -> Result<()> {
        for entry in fs::read_dir(folder).with_context(|| format!("could not list {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                self.remove_others(&path, files)?;
            } else if path.strip_prefix(&self.root).is_ok_and(|file| !files.contains(file))
                && path.file_stem() != Some(switch::MODULE.as_ref())
            {
                fs::remove_file(&path).with_context(|| format!("could not remove {}", path.display()))?;
            }
        }
        Ok(())
    }
}

/// Writes a file unless it already has this content.
pub(crate) fn write_if_changed(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|present| present == content) {
        return Ok(());
    }
    let folder = path.parent().context("a file has a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("could not create {}", folder.display()))?;
    fs::write(path, content).with_context(|| format!("could not write {}", path.display()))
}

fn versioned_files(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("could not start git")?;
    if !output.status.success() {
        bail!("git ls-files failed:\n{}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    let names = String::from_utf8(output.stdout).context("a file name isn't UTF-8")?;
    Ok(names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect())
}
