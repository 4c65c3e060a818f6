//! Entries: what can be launched, and how it stands with it now.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::EntryId;

use crate::{Millis, ReasonCode};

/// What an entry is, and what it takes to start it (S2.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EntryKind {
    /// A program.
    Process {
        /// The program and its arguments.
        argv: Vec<String>,
        /// Variables for it.
        #[serde(default)]
        env: BTreeMap<String, String>,
        /// Where it starts.
        #[serde(default)]
        cwd: Option<String>,
    },
    /// A virtual machine.
    Vm {
        /// What runs it: `qemu` or `command`.
        driver: String,
        /// For the driver.
        args: BTreeMap<String, serde_json::Value>,
    },
    /// Films, music or pictures of a library.
    Media {
        /// Which library of the policy.
        library_id: String,
        /// For the player.
        #[serde(default)]
        args: Vec<String>,
    },
    /// Anything else, for a driver that knows it.
    Custom {
        /// What the driver is called.
        type_name: String,
        /// For the driver.
        payload: serde_json::Value,
    },
}

impl EntryKind {
    /// The stable name of the kind.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Process { .. } => "process",
            Self::Vm { .. } => "vm",
            Self::Media { .. } => "media",
            Self::Custom { .. } => "custom",
        }
    }
}

/// How it stands with an entry at a moment (S3.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EntryView {
    /// Which entry.
    #[schemars(with = "String")]
    pub entry_id: EntryId,
    /// For people.
    pub label: String,
    /// Opaque; the shell interprets it.
    pub icon_ref: Option<String>,
    /// `process`, `vm`, `media` or `custom`.
    pub kind: String,
    /// Whether it could be launched.
    pub enabled: bool,
    /// Why not: all reasons, the first is the one to show.
    pub reasons: Vec<ReasonCode>,
    /// How long it could run if it were launched at that moment; absent if without end, or not enabled.
    pub max_run_if_started_now: Option<Millis>,
    /// When it could be launched again, where that can be known.
    pub next_available: Option<Timestamp>,
}
