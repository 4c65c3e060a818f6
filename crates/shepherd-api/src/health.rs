//! The health of the daemon (S13.2).

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Millis;

/// The health of the daemon. A daemon that sends it is alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HealthView {
    /// True if every check passed, so that the daemon can do its work. A daemon that keeps its previous policy, because
    /// the file has a fault, is ready.
    pub ready: bool,
    /// The version of the daemon program.
    pub daemon_version: String,
    /// The time since the daemon started.
    pub uptime: Millis,
    /// The results of the checks.
    pub checks: Vec<HealthCheck>,
    /// The limitations of this machine, as sentences for people (S13.3).
    pub limitations: Vec<String>,
    /// The mechanism that holds a program and its descendants, by its stable name: `cgroup`, `pid_namespace`,
    /// `subreaper` or `process_group` (S6.2).
    #[serde(default)]
    pub containment: Option<String>,
    /// The policy file that doesn't apply, if its last read failed. The policy before it still applies, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected_policy: Option<RejectedPolicyView>,
    /// The path of the audit log, for programs that read and verify the log themselves.
    #[serde(default)]
    pub audit_log: Option<String>,
}

/// A policy file that doesn't apply, because it has faults or can't be read (S7.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RejectedPolicyView {
    /// The path of the file.
    pub path: String,
    /// The time since which the file doesn't apply.
    pub since: Timestamp,
    /// The number of faults.
    pub fault_count: usize,
    /// The reason in words, for people.
    pub sentence: String,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HealthCheck {
    /// The stable name of the check: `policy`, `host`, `store`, `heartbeat` or `clock`.
    pub name: String,
    /// True if the check passed.
    pub passed: bool,
    /// The result in words, for people.
    pub detail: String,
}
