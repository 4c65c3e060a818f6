//! What has to be remembered of a tree so that a later process can take it back.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::containment::Containment;
use crate::process_spec::{EscapeePolicy, UserIdentity};

/// The name of a tree, chosen by the caller before the spawn, so that it can be written down first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TreeId(String);

/// Long enough for any id of ours, short enough for a directory name with a prefix.
const MAX_ID: usize = 100;

/// The variable by which members of trees are marked. For telling people: any program can set or remove it.
pub const MARKER: &str = "WARD_TREE";

impl TreeId {
    /// For a stop command: a name that no caller can form, because of its dots, and no earlier process
    /// has left behind.
    pub(crate) fn for_stop_command() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        Self(format!("stop.{}.{now:x}.{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Name of the tree's cgroup.
    pub(crate) fn group_name(&self) -> String {
        format!("ward-{}", self.0)
    }

    /// `NAME=value` as it stands in a member's environment.
    pub(crate) fn marker_entry(&self) -> Vec<u8> {
        format!("{MARKER}={}", self.0).into_bytes()
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text that names no tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no tree id: 1 to {MAX_ID} characters of a-z, A-Z, 0-9, `-` and `_`")]
pub struct InvalidTreeId(String);

impl FromStr for TreeId {
    type Err = InvalidTreeId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if text.is_empty() || text.len() > MAX_ID || !text.bytes().all(allowed) {
            return Err(InvalidTreeId(text.chars().take(MAX_ID).collect()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for TreeId {
    type Error = InvalidTreeId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<TreeId> for String {
    fn from(id: TreeId) -> Self {
        id.0
    }
}

impl fmt::Display for TreeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names one tree for ever: no other, earlier or later, has the same record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeRecord {
    /// Its name.
    pub id: TreeId,
    /// What holds it together.
    pub containment: Containment,
    /// Its root process. A tree that has a cgroup and lets its leavers go can be taken back without.
    pub root: Option<ProcessIdentity>,
    /// Whether the root is a keeper, who holds those that leave the tree's cgroup.
    #[serde(default)]
    pub leavers: EscapeePolicy,
    /// The boot in which it runs.
    pub boot: String,
    /// Inode of its cgroup, where it has one.
    pub cgroup: Option<u64>,
    /// Whom it runs as, if not as its supervisor; its stop command does, too.
    pub identity: Option<UserIdentity>,
    /// The temporary folder of its sandbox, to be removed when it has ended.
    pub private_folder: Option<PathBuf>,
}

/// The process at the root of a tree: the keeper where there is one, else the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// Its number.
    pub pid: i32,
    /// When it started, in clock ticks after boot.
    pub start_time: u64,
}

/// Names the time between two boots of this machine.
pub(crate) fn read_boot_id() -> std::io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_can_be_nothing_but_a_plain_name() {
        for good in ["a", "session-01J_x", &"x".repeat(MAX_ID)] {
            assert_eq!(good.parse::<TreeId>().unwrap().as_str(), good);
        }
        for bad in ["", "..", "a/b", "a b", "a\0", "ü", &"x".repeat(MAX_ID + 1)] {
            assert!(bad.parse::<TreeId>().is_err(), "{bad:?}");
        }
        assert!(serde_json::from_str::<TreeId>("\"../x\"").is_err());
    }
}
