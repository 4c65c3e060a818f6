//! Entries: programs, machines and media that can be launched, and whether they can be launched now.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::EntryId;

use crate::{GrantKind, Millis, ReasonCode};

/// The kind of an entry, with what is needed to start it (S2.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EntryKind {
    /// A program on this machine.
    Process {
        /// The program, followed by its arguments.
        argv: Vec<String>,
        /// Environment variables for the program.
        #[serde(default)]
        env: BTreeMap<String, String>,
        /// The folder in which the program starts.
        #[serde(default)]
        cwd: Option<String>,
    },
    /// A virtual machine.
    Vm {
        /// The driver that runs the machine: `qemu` or `command`.
        driver: String,
        /// Arguments for the driver.
        args: BTreeMap<String, serde_json::Value>,
    },
    /// Films, music or pictures of a library.
    Media {
        /// The media library of the policy.
        library_id: String,
        /// Arguments for the media player.
        #[serde(default)]
        args: Vec<String>,
    },
    /// Any other kind, started by a configured driver.
    Custom {
        /// The name of the driver.
        type_name: String,
        /// Arguments for the driver.
        payload: serde_json::Value,
    },
}

impl EntryKind {
    /// The type of a custom entry that stands for being logged in to the machine (S19.2). No driver has this name.
    pub const LOGIN_TYPE: &str = "login";

    /// Returns the kind of an entry that stands for being logged in to the machine.
    #[must_use]
    pub fn login() -> Self {
        Self::Custom { type_name: Self::LOGIN_TYPE.to_owned(), payload: serde_json::Value::Null }
    }

    /// Returns whether the entry stands for being logged in to the machine. Such an entry can't be launched.
    #[must_use]
    pub fn is_login(&self) -> bool {
        matches!(self, Self::Custom { type_name, .. } if type_name == Self::LOGIN_TYPE)
    }

    /// Returns the stable name of the kind.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Process { .. } => "process",
            Self::Vm { .. } => "vm",
            Self::Media { .. } => "media",
            Self::Custom { type_name, .. } if type_name == Self::LOGIN_TYPE => Self::LOGIN_TYPE,
            Self::Custom { .. } => "custom",
        }
    }
}

/// The availability of an entry at one moment (S3.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EntryView {
    /// The id of the entry.
    #[schemars(with = "String")]
    pub entry_id: EntryId,
    /// The label that people read.
    pub label: String,
    /// The name of an icon, which only front ends interpret.
    pub icon_ref: Option<String>,
    /// `process`, `vm`, `media`, `login` or `custom`.
    pub kind: String,
    /// True if the entry can be launched.
    pub enabled: bool,
    /// All reasons against a launch; show the first.
    pub reasons: Vec<ReasonCode>,
    /// The longest possible run from that moment on; absent if there is no limit or the entry can't be launched.
    pub max_run_if_started_now: Option<Millis>,
    /// The next moment at which the entry can be launched, if that can be known.
    pub next_available: Option<Timestamp>,
    /// The time that quotas and budgets leave for that day, including grants; absent if there is no such limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_today: Option<Millis>,
    /// The grants that are valid for the entry at that moment, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<EntryGrantView>,
}

/// A grant that helps an entry, as its child sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EntryGrantView {
    /// The extra permission.
    pub gift: GrantKind,
    /// The author of the grant.
    pub by: String,
    /// The time at which the grant lapses.
    pub lapses_at: Timestamp,
}
