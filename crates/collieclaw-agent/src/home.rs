//! Where CollieClaw keeps what is its own.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// `~/.collieclaw`, or what `COLLIECLAW_HOME` names. No tool may reach into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentHome {
    folder: PathBuf,
}

impl AgentHome {
    /// A folder, wherever it is.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Makes the folder, for its owner alone. Whether it was not there.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn create(&self) -> io::Result<bool> {
        if self.folder.is_dir() {
            return Ok(false);
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map(|()| true)
    }

    /// The folder itself.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The configuration that a person edits.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.folder.join("config.toml")
    }

    /// Its presence stops every tool (C11).
    #[must_use]
    pub fn estop(&self) -> PathBuf {
        self.folder.join("ESTOP")
    }

    /// Calls that have begun and have no receipt yet.
    #[must_use]
    pub fn intents(&self) -> PathBuf {
        self.folder.join("intents")
    }

    /// What the operator has said yes to for good.
    #[must_use]
    pub fn approvals(&self) -> PathBuf {
        self.folder.join("approvals")
    }

    /// Procedures, each in a folder of its own.
    #[must_use]
    pub fn sops(&self) -> PathBuf {
        self.folder.join("workspace/sops")
    }

    /// The journals of procedures that were begun.
    #[must_use]
    pub fn sop_runs(&self) -> PathBuf {
        self.folder.join("sop-runs")
    }

    /// What receipts are signed with.
    #[must_use]
    pub fn receipts_key(&self) -> PathBuf {
        self.folder.join("receipts.key")
    }

    /// What was decided about tool calls, for whoever looks after the machine.
    #[must_use]
    pub fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }

    /// What was asked of models, and what it took.
    #[must_use]
    pub fn usage(&self) -> PathBuf {
        self.folder.join("usage.db")
    }

    /// What requests to the gateway bear.
    #[must_use]
    pub fn gateway_token(&self) -> PathBuf {
        self.folder.join("gateway.token")
    }

    /// Tools of others, each in a folder of its own.
    #[must_use]
    pub fn plugins(&self) -> PathBuf {
        self.folder.join("plugins")
    }

    /// What was approved of MCP servers.
    #[must_use]
    pub fn mcp(&self) -> PathBuf {
        self.folder.join("mcp")
    }

    /// What requests to `mcp serve --http` bear.
    #[must_use]
    pub fn mcp_token(&self) -> PathBuf {
        self.folder.join("mcp.token")
    }

    /// What was typed at the prompt.
    #[must_use]
    pub fn history(&self) -> PathBuf {
        self.folder.join("history")
    }
}
