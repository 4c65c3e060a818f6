//! Pinned servers: the tools of an MCP server, exactly as the operator approved them.

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

const MAX_PIN_BYTES: u64 = 16 << 20;

/// The approved tools of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedServer {
    pub server: String,
    /// A hash of the approved program or address. A changed connection needs a new approval.
    connection: String,
    pub tools: Vec<PinnedTool>,
    /// A hash of `tools`.
    hash: String,
}

/// A difference between the approved tools and the tools that the server lists now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PinnedToolChange {
    Added(PinnedTool),
    Removed(PinnedTool),
    Changed { before: PinnedTool, now: PinnedTool },
}

/// The reason why pins could not be read or written.
#[derive(Debug, Error)]
pub enum ToolPinError {
    #[error("could not read or write {}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The file was changed or damaged since it was written.
    #[error("{} was changed or damaged: {why}", .path.display())]
    Invalid { path: PathBuf, why: String },
}

impl PinnedServer {
    /// Creates a pin from a server's settings and its current tools.
    #[must_use]
    pub fn new(server: &str, settings: &McpServerSettings, tools: Vec<PinnedTool>) -> Self {
        let hash = hash_tools(&tools);
        Self { server: server.to_owned(), connection: hash_connection(settings), tools, hash }
    }

    /// Loads the pin of a server. Returns `None` if the server was never approved.
    ///
    /// # Errors
    /// Fails if the pin exists but can't be used.
    pub fn load(home: &AgentHome, server: &str) -> Result<Option<Self>, ToolPinError> {
        let path = pin_path(home, server);
        let failed = |source| ToolPinError::Io { path: path.clone(), source };
        let metadata = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            metadata => metadata.map_err(failed)?,
        };
        let invalid = |why: &str| ToolPinError::Invalid { path: path.clone(), why: why.to_owned() };
        if !metadata.is_file() || metadata.len() > MAX_PIN_BYTES || !is_securely_owned(&metadata) {
            return Err(invalid("it must be a regular file that only you can change"));
        }
        let pinned: Self = serde_json::from_slice(&fs::read(&path).map_err(failed)?)
            .map_err(|error| invalid(&error.to_string()))?;
        if pinned.server != server || hash_tools(&pinned.tools) != pinned.hash {
            return Err(invalid("its hash doesn't match"));
        }
        Ok(Some(pinned))
    }

    /// Stores the pin, replacing any earlier pin of the server.
    ///
    /// # Errors
    /// Fails if the pin can't be written.
    pub fn save(&self, home: &AgentHome) -> Result<PathBuf, ToolPinError> {
        let path = pin_path(home, &self.server);
        write_atomically(&path, &serde_json::to_vec_pretty(self).unwrap_or_default())
            .map_err(|source| ToolPinError::Io { path: path.clone(), source })?;
        Ok(path)
    }

    /// Removes the pin of a server. Returns false if there was none.
    ///
    /// # Errors
    /// Fails if the file can't be removed.
    pub fn remove(home: &AgentHome, server: &str) -> Result<bool, ToolPinError> {
        let path = pin_path(home, server);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(ToolPinError::Io { path, source }),
        }
    }

    /// Returns the names of all approved servers.
    #[must_use]
    pub fn pinned_servers(home: &AgentHome) -> Vec<String> {
        let listed = fs::read_dir(home.mcp()).into_iter().flatten().flatten();
        let name = |entry: fs::DirEntry| Some(entry.file_name().to_str()?.strip_suffix(".json")?.to_owned());
        let mut names: Vec<String> = listed.filter_map(name).filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }

    /// Returns true if the settings name the approved program or address.
    #[must_use]
    pub fn matches_connection(&self, settings: &McpServerSettings) -> bool {
        self.connection == hash_connection(settings)
    }

    /// Returns the differences between the approved tools and `now`.
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

/// Hashes a list of tools. A list without a canonical form gets a random hash that never matches.
fn hash_tools(tools: &[PinnedTool]) -> String {
    hash_json(&json!(tools)).unwrap_or_else(|_| ids::random_id("no-hash"))
}

fn hash_connection(settings: &McpServerSettings) -> String {
    hash_json(&json!(settings.connection)).unwrap_or_else(|_| ids::random_id("no-hash"))
}

fn pin_path(home: &AgentHome, server: &str) -> PathBuf {
    // A name from the configuration has no slash, but a name from the command line may have one.
    home.mcp().join(format!("{}.json", server.replace(['/', '.'], "_")))
}

fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let temporary = folder.join(format!(".{}", ids::random_id("pin")));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let written =
        file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written?;
    fs::File::open(folder)?.sync_all()
}
