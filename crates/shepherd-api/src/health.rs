//! Whether the daemon is well (S13.2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Millis;

/// Whether the daemon is well. That it answers is its liveness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HealthView {
    /// Whether it can do its work: every check passed.
    pub ready: bool,
    /// The daemon's own version.
    pub daemon_version: String,
    /// How long it has been running.
    pub uptime: Millis,
    /// What was looked at.
    pub checks: Vec<HealthCheck>,
    /// What this host can't do, in sentences (S13.3).
    pub limitations: Vec<String>,
    /// What holds a program and everything that comes of it, by its stable name: `cgroup`, `pid_namespace`,
    /// `subreaper` or `process_group` (S6.2).
    #[serde(default)]
    pub containment: Option<String>,
    /// Where its audit log is, for whoever checks that from outside and may read it.
    #[serde(default)]
    pub audit_log: Option<String>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HealthCheck {
    /// The stable name: `policy`, `host`, `store`, `clock`.
    pub name: String,
    /// Whether it is in order.
    pub passed: bool,
    /// For people.
    pub detail: String,
}
