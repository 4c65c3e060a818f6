//! Plugins: tools by others, installed as programs in folders of the home (C6.3).
//!
//! [`install`] copies a folder with a [`PluginManifest`] into the home and records the hash of every file.
//! Calls of a plugin's tools go through the gateway like those of built-in tools: schema, gate, approval,
//! sandbox, receipt. A folder that someone put there without an installation waits for the operator's approval and
//! never runs before. The files are checked before each call; a changed plugin doesn't run.
//!
//! Plugins are never read from the workspace, and a plugin can't write to its own folder.

mod folder;
mod installed;
mod manifest;
mod output;
mod tool;

pub use folder::{PluginFiles, PluginFolderError};
pub use installed::{InstalledPlugin, PluginInstallError, PluginRegistry, WaitingPlugin, install, remove};
pub use manifest::{PluginManifest, PluginTool};
