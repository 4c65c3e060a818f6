//! Installation of plugins in the home, and checks of installed plugins.

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

/// The prefix of folders that are being installed or removed. A crash may leave such a folder behind.
const UNFINISHED: &str = ".unfinished";

/// The age at which a leftover folder is removed; an installation never takes this long.
const LEFTOVER_AGE: Duration = Duration::from_secs(60 * 60);

/// The maximum size of an installation record.
const MAX_RECORD_BYTES: u64 = 16 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledPlugin {
    /// The manifest as approved at the installation.
    pub manifest: PluginManifest,
    pub folder: PathBuf,
    pub(crate) pins: BTreeMap<String, FilePin>,
}

/// All plugins in the home.
#[derive(Debug, Default)]
pub struct PluginRegistry {
    /// Sorted by name.
    pub installed: Vec<Rc<InstalledPlugin>>,
    /// Plugins that someone put into the folder, and that the operator has not approved. They never run.
    pub waiting: Vec<WaitingPlugin>,
    /// Messages about folders that can't be used.
    pub problems: Vec<String>,
}

/// A plugin that waits for the operator's approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingPlugin {
    /// The manifest as it stands in the folder now. The approval shows it again, with the files it covers.
    pub manifest: PluginManifest,
    pub folder: PathBuf,
}

/// An error during installation or removal.
#[derive(Debug, Error)]
pub enum PluginInstallError {
    #[error("could not write {}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("no such plugin `{0}`")]
    NotInstalled(String),
}

impl InstalledPlugin {
    /// Returns the manifest and the hashes of all files, which differ between versions.
    #[must_use]
    pub fn fingerprint(&self) -> serde_json::Value {
        serde_json::json!({ "plugin": self.manifest, "files": self.pins })
    }

    /// Returns a description of the first change since the installation, if there is one.
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
    /// Loads all plugins. Unusable ones are reported in `problems` and don't affect the others.
    #[must_use]
    pub fn load(home: &AgentHome) -> Self {
        let folder = home.plugins();
        let mut plugins = Self::default();
        let listed = match fs::read_dir(&folder) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return plugins,
            Err(error) => {
                plugins.problems.push(format!("could not read {}: {error}", folder.display()));
                return plugins;
            }
        };
        if !fs::metadata(&folder).is_ok_and(|metadata| is_securely_owned(&metadata)) {
            plugins
                .problems
                .push(format!("{} can be changed by other users, so no plugin is loaded", folder.display()));
            return plugins;
        }
        let mut names: Vec<_> = listed.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        for name in names {
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let place = folder.join(&name);
            if place.join(RECORD_FILE).symlink_metadata().is_err() {
                match read_waiting(&place) {
                    Ok(plugin) if *plugin.manifest.name == *name => plugins.waiting.push(plugin),
                    Ok(_) => plugins.problems.push(format!("the plugin in {name:?} has a different name")),
                    Err(fault) => {
                        plugins.problems.push(format!("the folder {name:?} is not a plugin: {fault}"));
                    }
                }
                continue;
            }
            match read_installed(&place) {
                Ok(installed) if *installed.manifest.name == *name => plugins.installed.push(Rc::new(installed)),
                Ok(_) => plugins.problems.push(format!("the plugin in {name:?} has a different name")),
                Err(error) => plugins.problems.push(format!(
                    "the plugin in {name:?} was not loaded ({error}); install it with `collieclaw plugin install`"
                )),
            }
        }
        plugins
    }
}

/// Reads a plugin without a record of its installation. Nothing of it is run.
fn read_waiting(folder: &Path) -> Result<WaitingPlugin, String> {
    let contents = PluginFiles::read(folder).map_err(|error| error.to_string())?;
    let manifest = PluginManifest::read(&contents, folder, &[]).map_err(|report| {
        report.lines().into_iter().next().unwrap_or_else(|| "its manifest is invalid".to_owned())
    })?;
    Ok(WaitingPlugin { manifest, folder: folder.to_owned() })
}

fn read_installed(folder: &Path) -> io::Result<InstalledPlugin> {
    let path = folder.join(RECORD_FILE);
    let metadata = fs::symlink_metadata(&path)?;
    if !metadata.is_file() || metadata.len() > MAX_RECORD_BYTES {
        return Err(io::Error::other("its installation record is invalid"));
    }
    if !is_securely_owned(&metadata) || !is_securely_owned(&fs::symlink_metadata(folder)?) {
        return Err(io::Error::other("it can be changed by other users"));
    }
    let InstallRecord { manifest, files } = serde_json::from_slice(&fs::read(&path)?)?;
    Ok(InstalledPlugin { manifest, folder: folder.to_owned(), pins: files })
}

/// Installs a plugin, and replaces an older one of the same name. A crash leaves either the old or the new
/// one.
///
/// # Errors
/// Fails if the plugin can't be written.
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
    let cleaned_up = fs::remove_dir_all(&unfinished);
    written.map_err(failed(&place))?;
    // If no older plugin was replaced, there is nothing to remove, and the removal has failed.
    drop(cleaned_up);
    File::open(&all).and_then(|all| all.sync_all()).map_err(failed(&all))?;
    Ok(place)
}

/// Removes a plugin.
///
/// # Errors
/// Fails if there is no such plugin, or if it can't be removed.
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

/// Moves a folder to its place. An existing folder is exchanged with it and can be removed afterwards.
fn swap_into_place(folder: &Path, place: &Path) -> io::Result<()> {
    match renameat_with(CWD, folder, CWD, place, RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => Ok(renameat_with(CWD, folder, CWD, place, RenameFlags::EXCHANGE)?),
        done => Ok(done?),
    }
}

/// Removes folders that crashes have left behind. Failures are ignored.
fn remove_leftovers(all: &Path) {
    let now = SystemTime::now();
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let is_old = |metadata: fs::Metadata| {
            metadata.modified().is_ok_and(|then| now.duration_since(then).is_ok_and(|age| age > LEFTOVER_AGE))
        };
        let unfinished = entry.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes());
        if unfinished && entry.metadata().is_ok_and(is_old) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
