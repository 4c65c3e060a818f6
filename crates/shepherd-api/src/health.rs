//! The health of the daemon (S13.2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Millis;

/// The health of the daemon. An answer at all shows that the daemon is alive.
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
    /// The limitations of this host, in sentences (S13.3).
    pub limitations: Vec<String>,
    /// The mechanism that holds a program and its descendants, by its stable name: `cgroup`, `pid_namespace`,
    /// `subreaper` or `process_group` (S6.2).
    #[serde(default)]
    pub containment: Option<String>,
    /// The path of the audit log, for a tool that verifies the log from outside and may read it.
    #[serde(default)]
    pub audit_log: Option<String>,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HealthCheck {
    /// The stable name: `policy`, `host`, `store`, `clock`.
    pub name: String,
    /// True if the check passed.
    pub passed: bool,
    /// The result in words, for people.
    pub detail: String,
}
