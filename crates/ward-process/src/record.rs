//! The record of a tree that lets a later supervisor process take the tree back.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::containment::Containment;
use crate::process_spec::{EscapeePolicy, UserIdentity};

/// The name of a tree. The caller chooses it before the spawn, so that it can be stored first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TreeId(String);

/// Length of the longest id, short enough for a cgroup directory name with a prefix.
const MAX_ID: usize = 100;

/// Environment variable that marks the members of a tree with its id. It is no security boundary, because any
/// program can set or remove it.
pub const MARKER: &str = "WARD_TREE";

impl TreeId {
    /// Returns an id for the tree of a stop command. Callers can't form such an id because of its dots, and
    /// the time makes it differ from those of earlier processes.
    pub(crate) fn for_stop_command() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        Self(format!("stop.{}.{now:x}.{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Returns the name of the tree's cgroup.
    pub(crate) fn group_name(&self) -> String {
        format!("ward-{}", self.0)
    }

    /// Returns the marker as `NAME=value`, as it appears in the environment of members.
    pub(crate) fn marker_entry(&self) -> Vec<u8> {
        format!("{MARKER}={}", self.0).into_bytes()
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An error for a text that isn't a valid tree id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid tree id `{0}`: use 1 to {MAX_ID} characters of a-z, A-Z, 0-9, `-` and `_`")]
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

/// A record that identifies a tree forever: no earlier or later tree has the same record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeRecord {
    /// Name of the tree.
    pub id: TreeId,
    /// Mechanism that holds the tree together.
    pub containment: Containment,
    /// Root process of the tree. A tree in a cgroup that lets escapees go can be reattached without it.
    pub root: Option<ProcessIdentity>,
    /// Treatment of escapees. With [`EscapeePolicy::Held`] the root is a keeper that adopts them.
    #[serde(default, rename = "leavers")]
    pub escapees: EscapeePolicy,
    /// Id of the boot in which the tree runs.
    pub boot: String,
    /// Inode of the tree's cgroup, if it has one.
    pub cgroup: Option<u64>,
    /// Limits of the tree's cgroup: the text of each file. A later supervisor writes them again, because the
    /// kernel forgets them when [`release_controllers`](crate::release_controllers) disables a controller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cgroup_limits: Vec<(String, String)>,
    /// User that the tree and its stop command run as, if it isn't the supervisor's.
    pub identity: Option<UserIdentity>,
    /// Temporary folder of the sandbox, to be removed when the tree has ended.
    pub private_folder: Option<PathBuf>,
}

/// The identity of a process within a boot. Pids are reused, but no two processes share a pid and a start
/// time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// Process id as the supervisor sees it.
    pub pid: i32,
    /// Start time in clock ticks after boot, from `/proc/PID/stat`.
    pub start_time: u64,
}

/// Returns the kernel's random id of the current boot.
pub(crate) fn read_boot_id() -> std::io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_valid_ids() {
        for good in ["a", "session-01J_x", &"x".repeat(MAX_ID)] {
            assert_eq!(good.parse::<TreeId>().unwrap().as_str(), good);
        }
        for bad in ["", "..", "a/b", "a b", "a\0", "ü", &"x".repeat(MAX_ID + 1)] {
            assert!(bad.parse::<TreeId>().is_err(), "{bad:?}");
        }
        assert!(serde_json::from_str::<TreeId>("\"../x\"").is_err());
    }
}
