//! The folder in which CollieClaw keeps its own files, and their names.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// CollieClaw's own folder: `COLLIECLAW_HOME`, or `~/.collieclaw` by default. Tools have no access to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentHome {
    folder: PathBuf,
}

impl AgentHome {
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Creates the folder, accessible to its owner only. Returns false if the folder exists already.
    ///
    /// # Errors
    /// Fails if the folder can't be created.
    pub fn create(&self) -> io::Result<bool> {
        if self.folder.is_dir() {
            return Ok(false);
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map(|()| true)
    }

    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.folder.join("config.toml")
    }

    /// Returns the path of the emergency stop file. Tools are stopped as long as the file exists (C11).
    #[must_use]
    pub fn estop(&self) -> PathBuf {
        self.folder.join("ESTOP")
    }

    /// Returns the folder with the intents of calls that have started and have no receipt yet.
    #[must_use]
    pub fn intents(&self) -> PathBuf {
        self.folder.join("intents")
    }

    /// Returns the folder with the operator's permanent approvals.
    #[must_use]
    pub fn approvals(&self) -> PathBuf {
        self.folder.join("approvals")
    }

    /// Returns the folder with the files that the tool `file_delete` took away.
    #[must_use]
    pub fn trash(&self) -> PathBuf {
        self.folder.join("trash")
    }

    /// Returns the folder that holds one subfolder for each trusted workspace, with its rules.
    #[must_use]
    pub fn workspaces(&self) -> PathBuf {
        self.folder.join("workspaces")
    }

    /// Returns the folder that holds one subfolder for each procedure.
    #[must_use]
    pub fn sops(&self) -> PathBuf {
        self.folder.join("workspace/sops")
    }

    /// Returns the folder with the journals of procedure runs.
    #[must_use]
    pub fn sop_runs(&self) -> PathBuf {
        self.folder.join("sop-runs")
    }

    /// Returns the path of the key that signs receipts.
    #[must_use]
    pub fn receipts_key(&self) -> PathBuf {
        self.folder.join("receipts.key")
    }

    /// Returns the path of the log of decisions about tool calls, for the machine's administrator.
    #[must_use]
    pub fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }

    /// Returns the path of the database of model requests and their cost.
    #[must_use]
    pub fn usage(&self) -> PathBuf {
        self.folder.join("usage.db")
    }

    /// Returns the path of the token that clients of the gateway have to send.
    #[must_use]
    pub fn gateway_token(&self) -> PathBuf {
        self.folder.join("gateway.token")
    }

    /// Returns the folder that holds one subfolder for each installed plugin.
    #[must_use]
    pub fn plugins(&self) -> PathBuf {
        self.folder.join("plugins")
    }

    /// Returns the folder that records the approved MCP servers.
    #[must_use]
    pub fn mcp(&self) -> PathBuf {
        self.folder.join("mcp")
    }

    /// Returns the folder in which an MCP server may keep files. No other tool can reach it.
    #[must_use]
    pub fn mcp_state(&self, server: &str) -> PathBuf {
        self.folder.join("mcp-state").join(server)
    }

    /// Returns the path of the token that clients of `mcp serve --http` have to send.
    #[must_use]
    pub fn mcp_token(&self) -> PathBuf {
        self.folder.join("mcp.token")
    }

    /// Returns the path of the prompt's input history.
    #[must_use]
    pub fn history(&self) -> PathBuf {
        self.folder.join("history")
    }
}
