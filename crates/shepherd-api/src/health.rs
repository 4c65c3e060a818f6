//! The health of the daemon (S13.2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Millis;

/// The health of the daemon. A daemon that sends it is alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HealthView {
    /// True if every check passed, so that the daemon can do its work.
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
    /// The path of the audit log, for programs that read and verify the log themselves.
    #[serde(default)]
    pub audit_log: Option<String>,
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
