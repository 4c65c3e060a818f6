//! What somebody has looked at and said yes to: the tools of a server, word by word.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use collieclaw_agent::config::McpServerSettings;
use collieclaw_agent::home::AgentHome;
use collieclaw_agent::ids;
use collieclaw_agent::receipts::hash_json;
use collieclaw_agent::security::is_securely_owned;
use collieclaw_mcp_ipc::PinnedTool;
use serde::{Deserialize, Serialize};
use serde_json::json;
use thiserror::Error;

/// The longest list that is kept.
const MAX_PIN_BYTES: u64 = 16 << 20;

/// The tools of a server, as they were approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedServer {
    /// The server.
    pub server: String,
    /// What it was, as a hash of its connection: another program has not been looked at.
    connection: String,
    /// Its tools.
    pub tools: Vec<PinnedTool>,
    /// Their hash.
    hash: String,
}

/// How a tool differs from what was approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PinnedToolChange {
    /// It is there now.
    Added(PinnedTool),
    /// It is there no more.
    Removed(PinnedTool),
    /// It is another now.
    Changed {
        /// As it was approved.
        before: PinnedTool,
        /// As it is.
        now: PinnedTool,
    },
}

/// Why pins can't be read or written.
#[derive(Debug, Error)]
pub enum ToolPinError {
    /// The machine says no.
    #[error("{} can't be used", .path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not as we wrote it.
    #[error("{} is not as it was written: {why}", .path.display())]
    Invalid {
        /// Where.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

impl PinnedServer {
    /// To be kept.
    #[must_use]
    pub fn new(server: &str, settings: &McpServerSettings, tools: Vec<PinnedTool>) -> Self {
        let hash = hash_tools(&tools);
        Self { server: server.to_owned(), connection: hash_connection(settings), tools, hash }
    }

    /// What was approved of a server, if anything was.
    ///
    /// # Errors
    /// When it is there and can't be used.
    pub fn load(home: &AgentHome, server: &str) -> Result<Option<Self>, ToolPinError> {
        let path = pin_path(home, server);
        let failed = |source| ToolPinError::Io { path: path.clone(), source };
        let known = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            known => known.map_err(failed)?,
        };
        let unsound = |why: &str| ToolPinError::Invalid { path: path.clone(), why: why.to_owned() };
        if !known.is_file() || known.len() > MAX_PIN_BYTES || !is_securely_owned(&known) {
            return Err(unsound("it must be a plain file that only you can change"));
        }
        let pinned: Self = serde_json::from_slice(&fs::read(&path).map_err(failed)?)
            .map_err(|error| unsound(&error.to_string()))?;
        if pinned.server != server || hash_tools(&pinned.tools) != pinned.hash {
            return Err(unsound("its hash is another"));
        }
        Ok(Some(pinned))
    }

    /// Keeps it, in the place of what was approved before.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn save(&self, home: &AgentHome) -> Result<PathBuf, ToolPinError> {
        let path = pin_path(home, &self.server);
        write_atomically(&path, &serde_json::to_vec_pretty(self).unwrap_or_default())
            .map_err(|source| ToolPinError::Io { path: path.clone(), source })?;
        Ok(path)
    }

    /// Forgets what was approved. Whether there was anything.
    ///
    /// # Errors
    /// When it can't be removed.
    pub fn remove(home: &AgentHome, server: &str) -> Result<bool, ToolPinError> {
        let path = pin_path(home, server);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(ToolPinError::Io { path, source }),
        }
    }

    /// The names of all servers of which something was approved.
    #[must_use]
    pub fn pinned_servers(home: &AgentHome) -> Vec<String> {
        let listed = fs::read_dir(home.mcp()).into_iter().flatten().flatten();
        let name = |entry: fs::DirEntry| Some(entry.file_name().to_str()?.strip_suffix(".json")?.to_owned());
        let mut names: Vec<String> = listed.filter_map(name).filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }

    /// Whether it was this very program or address that was approved.
    #[must_use]
    pub fn matches_connection(&self, settings: &McpServerSettings) -> bool {
        self.connection == hash_connection(settings)
    }

    /// What is not as it was approved.
    #[must_use]
    pub fn changes(&self, now: &[PinnedTool]) -> Vec<PinnedToolChange> {
        let find = |tools: &[PinnedTool], name: &str| tools.iter().find(|tool| tool.name == name).cloned();
        let mut changes: Vec<PinnedToolChange> = Vec::new();
        for before in &self.tools {
            match find(now, &before.name) {
                None => changes.push(PinnedToolChange::Removed(before.clone())),
                Some(now) if now != *before => {
                    changes.push(PinnedToolChange::Changed { before: before.clone(), now });
                }
                Some(_) => {}
            }
        }
        let new = now.iter().filter(|tool| find(&self.tools, &tool.name).is_none());
        changes.extend(new.cloned().map(PinnedToolChange::Added));
        changes
    }
}

/// A list without a canonical form has no hash that another one has.
fn hash_tools(tools: &[PinnedTool]) -> String {
    hash_json(&json!(tools)).unwrap_or_else(|_| ids::random_id("no-hash"))
}

fn hash_connection(settings: &McpServerSettings) -> String {
    hash_json(&json!(settings.connection)).unwrap_or_else(|_| ids::random_id("no-hash"))
}

fn pin_path(home: &AgentHome, server: &str) -> PathBuf {
    // The name comes from a configuration that allows no slash, or from a command line that may hold one.
    home.mcp().join(format!("{}.json", server.replace(['/', '.'], "_")))
}

fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let beside = folder.join(format!(".{}", ids::random_id("pin")));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    let written =
        file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written?;
    fs::File::open(folder)?.sync_all()
}
