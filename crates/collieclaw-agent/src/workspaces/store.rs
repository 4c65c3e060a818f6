//! The store of workspaces in the home: one folder for each, with a file for its rules.
//!
//! Writers hold a lock, and a file is replaced as a whole, so that several processes can change rules at the same time.
//! Drafts are written to the folder of all workspaces, so the time of its last change tells of every change.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use thiserror::Error;

use super::rules::WorkspaceRules;
use crate::home::AgentHome;
use crate::receipts::hash_text;

/// The trusted workspaces of a home.
#[derive(Debug, Clone)]
pub struct WorkspaceStore {
    folder: PathBuf,
}

/// An error of the workspace store. Rules that can't be read allow nothing.
#[derive(Debug, Error)]
pub enum WorkspaceError {
    #[error("could not {step} {}", .path.display())]
    File {
        /// The failed operation, as a verb.
        step: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// Other users could have written the file.
    #[error("{} can be changed by others, so its rules don't count", .path.display())]
    Untrusted { path: PathBuf },
    #[error("the rules in {} are not valid: {fault}", .path.display())]
    Invalid { path: PathBuf, fault: String },
}

/// The maximum size of a file of rules.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The number of digits of the hash that names a workspace.
const ID_DIGITS: usize = 16;

impl WorkspaceStore {
    #[must_use]
    pub fn new(home: &AgentHome) -> Self {
        Self { folder: home.workspaces() }
    }

    /// Returns the id of the workspace at a real path.
    #[must_use]
    pub fn id(path: &Path) -> String {
        let hash = hash_text(&path.to_string_lossy());
        hash.get(..ID_DIGITS).unwrap_or(&hash).to_owned()
    }

    /// Returns the rules of the workspace at a real path, if the home has any.
    ///
    /// # Errors
    /// Fails if there are rules that can't be read or aren't trusted.
    pub fn find(&self, path: &Path) -> Result<Option<WorkspaceRules>, WorkspaceError> {
        match self.read(&Self::id(path))? {
            Some(rules) if rules.path == path => Ok(Some(rules)),
            Some(_) => Err(self.invalid(&Self::id(path), "they belong to another folder")),
            None => Ok(None),
        }
    }

    /// Returns the rules of the innermost workspace that contains a real path.
    ///
    /// # Errors
    /// Fails if there are rules that can't be read or aren't trusted.
    pub fn find_enclosing(&self, path: &Path) -> Result<Option<WorkspaceRules>, WorkspaceError> {
        for ancestor in path.ancestors() {
            if let Some(rules) = self.find(ancestor)? {
                return Ok(Some(rules));
            }
        }
        Ok(None)
    }

    /// Returns the rules of all workspaces, ordered by path, or the reason why they can't be read.
    ///
    /// # Errors
    /// Fails if the folder can't be listed.
    pub fn list(&self) -> Result<Vec<Result<WorkspaceRules, WorkspaceError>>, WorkspaceError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(file_error("list", &self.folder))?,
        };
        let mut listed = Vec::new();
        for entry in entries {
            let name = entry.map_err(file_error("list", &self.folder))?.file_name();
            let id = name.to_str().filter(|name| {
                name.len() == ID_DIGITS && name.bytes().all(|digit| digit.is_ascii_hexdigit())
            });
            listed.extend(id.and_then(|id| self.read(id).transpose()));
        }
        listed.sort_by(|a, b| {
            let path =
                |rules: &Result<WorkspaceRules, _>| rules.as_ref().ok().map(|rules| rules.path.clone());
            path(a).cmp(&path(b))
        });
        Ok(listed)
    }

    /// Changes the rules of a workspace while no other process can. `change` gets the current rules, if there are any.
    ///
    /// # Errors
    /// Fails if the rules can't be read or written, or with the error of `change`. Then nothing is changed.
    pub fn update<E: From<WorkspaceError>>(
        &self,
        path: &Path,
        change: impl FnOnce(Option<WorkspaceRules>) -> Result<WorkspaceRules, E>,
    ) -> Result<WorkspaceRules, E> {
        let _lock = self.lock()?;
        let before = self.find(path)?;
        let rules = change(before.clone())?;
        if before.as_ref() != Some(&rules) {
            self.write(&rules)?;
        }
        Ok(rules)
    }

    /// Removes a workspace with its rules. Returns false if there is none.
    ///
    /// # Errors
    /// Fails if the rules can't be removed.
    pub fn remove(&self, path: &Path) -> Result<bool, WorkspaceError> {
        let _lock = self.lock()?;
        let folder = self.folder.join(Self::id(path));
        let file = folder.join(FILE);
        // Moved out first, so that a reader sees all rules or none, and the change is noticed.
        let away = self.folder.join(crate::ids::random_id("old"));
        match fs::rename(&file, &away) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            moved => moved.map_err(file_error("remove", &file))?,
        }
        fs::remove_file(&away).map_err(file_error("remove", &away))?;
        // Left alone if somebody put other files there.
        let _ = fs::remove_dir(&folder);
        Ok(true)
    }

    fn write(&self, rules: &WorkspaceRules) -> Result<(), WorkspaceError> {
        let id = Self::id(&rules.path);
        let folder = self.folder.join(&id);
        create_private_folder(&folder)?;
        let path = folder.join(FILE);
        let text = toml::to_string_pretty(rules).map_err(|error| self.invalid(&id, error.to_string()))?;
        let text = format!("{HEADER}{text}");
        let draft = self.folder.join(crate::ids::random_id("new"));
        let written = (|| {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&draft, &path)?;
            File::open(&folder)?.sync_all()
        })();
        if written.is_err() {
            let _ = fs::remove_file(&draft);
        }
        written.map_err(file_error("write", &path))
    }

    /// Reads the rules with an id. Only the files of the home's owner count.
    fn read(&self, id: &str) -> Result<Option<WorkspaceRules>, WorkspaceError> {
        let folder = self.folder.join(id);
        let path = folder.join(FILE);
        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
        let file = match File::options().read(true).custom_flags(flags.bits().cast_signed()).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(_) if fs::symlink_metadata(&path).is_ok_and(|known| known.is_symlink()) => {
                return Err(WorkspaceError::Untrusted { path });
            }
            file => file.map_err(file_error("open", &path))?,
        };
        for place in [&self.folder, &folder] {
            let known = fs::symlink_metadata(place).map_err(file_error("inspect", place))?;
            if !known.is_dir() || !is_private(&known) {
                return Err(WorkspaceError::Untrusted { path: place.clone() });
            }
        }
        let known = file.metadata().map_err(file_error("inspect", &path))?;
        if !known.is_file() || !is_private(&known) {
            return Err(WorkspaceError::Untrusted { path });
        }
        let mut text = String::new();
        file.take(MAX_FILE_BYTES).read_to_string(&mut text).map_err(file_error("read", &path))?;
        toml::from_str(&text).map(Some).map_err(|error| self.invalid(id, error.message()))
    }

    /// Waits until no other process changes rules, and keeps them out while the lock is held.
    fn lock(&self) -> Result<File, WorkspaceError> {
        create_private_folder(&self.folder)?;
        let path = self.folder.join(".lock");
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        let options = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .custom_flags(flags)
            .clone();
        let file = options.open(&path).map_err(file_error("open", &path))?;
        loop {
            match flock(&file, FlockOperation::LockExclusive) {
                Err(rustix::io::Errno::INTR) => {}
                locked => {
                    return locked.map(|()| file).map_err(|error| file_error("lock", &path)(error.into()));
                }
            }
        }
    }

    fn invalid(&self, id: &str, fault: impl Into<String>) -> WorkspaceError {
        WorkspaceError::Invalid { path: self.folder.join(id).join(FILE), fault: fault.into() }
    }
}

const FILE: &str = "workspace.toml";

const HEADER: &str =
    "# The rules of one workspace. Change them with `collieclaw allow`, `disallow` and `workspace`.\n";

fn create_private_folder(folder: &Path) -> Result<(), WorkspaceError> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(file_error("create", folder)(error))
        }
        _ => Ok(()),
    }
}

/// Returns true if a file or folder belongs to us, and others can't write to it.
fn is_private(known: &fs::Metadata) -> bool {
    known.uid() == rustix::process::geteuid().as_raw() && known.mode() & 0o022 == 0
}

fn file_error(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> WorkspaceError {
    let path = path.to_owned();
    move |source| WorkspaceError::File { step, path, source }
}
