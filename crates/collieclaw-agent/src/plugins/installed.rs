//! Plugins in the home: put there whole or not at all, and known again.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::folder::{FilePin, PluginFiles, RECORD_FILE, RequiredOwner, find_difference};
use super::manifest::PluginManifest;
use crate::home::AgentHome;
use crate::ids;
use crate::security::is_securely_owned;

/// What is being put in or taken out; a crash may leave it behind.
const UNFINISHED: &str = ".unfinished";

/// Nobody installs for so long.
const LEFTOVER_AGE: Duration = Duration::from_secs(60 * 60);

/// The longest record: manifests and schemas are bounded, too.
const LONGEST_RECORD: u64 = 16 << 20;

/// A plugin in the home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledPlugin {
    /// What it is, as it was when somebody said yes to it.
    pub manifest: PluginManifest,
    /// Where it is.
    pub folder: PathBuf,
    pub(crate) pins: BTreeMap<String, FilePin>,
}

/// All plugins in the home.
#[derive(Debug, Default)]
pub struct PluginRegistry {
    /// By name.
    pub installed: Vec<Rc<InstalledPlugin>>,
    /// What is in their folder and can't be used, in sentences.
    pub problems: Vec<String>,
}

/// Why a plugin can't be put in or taken out.
#[derive(Debug, Error)]
pub enum PluginInstallError {
    /// The machine says no.
    #[error("{} can't be written", .path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is none of this name.
    #[error("there is no plugin `{0}`")]
    NotInstalled(String),
}

impl InstalledPlugin {
    /// What it is, to know it again: another version is another.
    #[must_use]
    pub fn fingerprint(&self) -> serde_json::Value {
        serde_json::json!({ "plugin": self.manifest, "files": self.pins })
    }

    /// What of it is not as it was installed, if anything.
    #[must_use]
    pub fn find_change(&self) -> Option<String> {
        match PluginFiles::read_owned_by(&self.folder, RequiredOwner::Ours) {
            Ok(found) => find_difference(&self.pins, &found.pins()),
            Err(error) => Some(error.to_string()),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct InstallRecord {
    manifest: PluginManifest,
    files: BTreeMap<String, FilePin>,
}

impl PluginRegistry {
    /// What is in the home. One that can't be used is told of, and is in nobody's way.
    #[must_use]
    pub fn load(home: &AgentHome) -> Self {
        let folder = home.plugins();
        let mut plugins = Self::default();
        let listed = match fs::read_dir(&folder) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return plugins,
            Err(error) => {
                plugins.problems.push(format!("{} can't be read: {error}", folder.display()));
                return plugins;
            }
        };
        if !fs::metadata(&folder).is_ok_and(|known| is_securely_owned(&known)) {
            plugins
                .problems
                .push(format!("{} can be changed by others: no plugin is used", folder.display()));
            return plugins;
        }
        let mut names: Vec<_> = listed.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        for name in names {
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            match read_installed(&folder.join(&name)) {
                Ok(installed) if *installed.manifest.name == *name => plugins.installed.push(Rc::new(installed)),
                Ok(_) => plugins.problems.push(format!("the plugin in {name:?} has another name")),
                Err(error) => plugins.problems.push(format!(
                    "the plugin in {name:?} is not used ({error}); install it with `collieclaw plugin install`"
                )),
            }
        }
        plugins
    }
}

fn read_installed(folder: &Path) -> io::Result<InstalledPlugin> {
    let path = folder.join(RECORD_FILE);
    let known = fs::symlink_metadata(&path)?;
    if !known.is_file() || known.len() > LONGEST_RECORD {
        return Err(io::Error::other("its record is none"));
    }
    if !is_securely_owned(&known) || !is_securely_owned(&fs::symlink_metadata(folder)?) {
        return Err(io::Error::other("others can change it"));
    }
    let InstallRecord { manifest, files } = serde_json::from_slice(&fs::read(&path)?)?;
    Ok(InstalledPlugin { manifest, folder: folder.to_owned(), pins: files })
}

/// Puts a plugin into the home, in the place of an older one of its name. A crash leaves the old one or the new one.
///
/// # Errors
/// When it can't be written.
pub fn install(
    home: &AgentHome,
    manifest: &PluginManifest,
    contents: &PluginFiles,
) -> Result<PathBuf, PluginInstallError> {
    let all = home.plugins();
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| PluginInstallError::Io { path, source }
    };
    match private_folder(&all) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made.map_err(failed(&all))?,
    }
    remove_leftovers(&all);
    let (place, unfinished) = (all.join(&manifest.name), all.join(ids::random_id(UNFINISHED)));
    let written =
        write_plugin(&unfinished, manifest, contents).and_then(|()| swap_into_place(&unfinished, &place));
    let forgotten = fs::remove_dir_all(&unfinished);
    written.map_err(failed(&place))?;
    // Where nothing was replaced, nothing is left to be removed.
    drop(forgotten);
    File::open(&all).and_then(|all| all.sync_all()).map_err(failed(&all))?;
    Ok(place)
}

/// Takes a plugin out.
///
/// # Errors
/// When there is none, or it can't be removed.
pub fn remove(home: &AgentHome, name: &str) -> Result<(), PluginInstallError> {
    let all = home.plugins();
    let place = all.join(name);
    if name.is_empty() || name.starts_with('.') || name.contains('/') || !place.is_dir() {
        return Err(PluginInstallError::NotInstalled(name.to_owned()));
    }
    let unfinished = all.join(ids::random_id(UNFINISHED));
    let failed = |source| PluginInstallError::Io { path: place.clone(), source };
    fs::rename(&place, &unfinished).map_err(failed)?;
    fs::remove_dir_all(&unfinished).map_err(failed)
}

fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

fn write_plugin(folder: &Path, manifest: &PluginManifest, contents: &PluginFiles) -> io::Result<()> {
    private_folder(folder)?;
    for (path, file) in &contents.files {
        let place = folder.join(path);
        if let Some(parent) = place.parent() {
            DirBuilder::new().mode(0o700).recursive(true).create(parent)?;
        }
        write_new_file(&place, &file.bytes, if file.executable { 0o700 } else { 0o600 })?;
    }
    let record = InstallRecord { manifest: manifest.clone(), files: contents.pins() };
    write_new_file(&folder.join(RECORD_FILE), &serde_json::to_vec_pretty(&record)?, 0o600)?;
    File::open(folder)?.sync_all()
}

fn write_new_file(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Puts a folder in its place; what was there before is where the folder was, afterwards.
fn swap_into_place(folder: &Path, place: &Path) -> io::Result<()> {
    match renameat_with(CWD, folder, CWD, place, RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => Ok(renameat_with(CWD, folder, CWD, place, RenameFlags::EXCHANGE)?),
        done => Ok(done?),
    }
}

/// What crashes left behind, if anything. It is in nobody's way.
fn remove_leftovers(all: &Path) {
    let now = SystemTime::now();
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let is_old = |known: fs::Metadata| {
            known.modified().is_ok_and(|then| now.duration_since(then).is_ok_and(|age| age > LEFTOVER_AGE))
        };
        let unfinished = entry.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes());
        if unfinished && entry.metadata().is_ok_and(is_old) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
