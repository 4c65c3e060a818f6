//! Tools that others wrote, as programs in folders of the home (C6.3).
//!
//! A folder with a [`PluginManifest`] is copied into the home by [`install`], which pins every file of it. From then on its
//! tools go through the door like ours: arguments against their schema, gate, approval, sandbox, receipt. What runs was
//! looked at before: a folder that is not as it was installed runs nothing.
//!
//! Nothing here reads a plugin from the workspace, and no plugin can write to its own folder.

mod folder;
mod installed;
mod manifest;
mod output;
mod tool;

pub use folder::{PluginFiles, PluginFolderError};
pub use installed::{InstalledPlugin, PluginInstallError, PluginRegistry, install, remove};
pub use manifest::{PluginManifest, PluginTool};
