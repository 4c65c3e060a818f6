//! The capabilities of a host (S5.1). The engine decides by capability, never by platform.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The capabilities of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the names and their independence are given by the specification"
)]
pub struct HostCapabilities {
    /// The kinds of entries that the host can run: `process`, `vm`, `media`, `custom`, and `login` if it is told when
    /// somebody logs in.
    pub spawn_kinds_supported: BTreeSet<String>,
    pub can_kill_forcefully: bool,
    pub can_graceful_stop: bool,
    /// The host ends a program with all its descendants.
    pub can_group_process_tree: bool,
    /// The stable name of the containment, if the host reports it (S6.2).
    pub containment: Option<String>,
    pub can_observe_exit: bool,
    pub can_observe_window_ready: bool,
    pub can_force_foreground: bool,
    pub can_force_fullscreen: bool,
    pub can_lock_to_single_app: bool,
    /// The host would run a program as root if the policy names no user. No limit can be enforced on such a program.
    pub needs_account: bool,
    pub can_switch_user: bool,
    /// The logins that the policy names and this machine doesn't have. No program can be started as one of them.
    #[serde(default)]
    pub missing_logins: BTreeSet<String>,
}

impl HostCapabilities {
    /// Returns all capabilities, for questions about a policy that don't depend on a host.
    #[must_use]
    pub fn all_supported() -> Self {
        Self {
            spawn_kinds_supported: ["process", "vm", "media", "login", "custom"].map(str::to_owned).into(),
            can_kill_forcefully: true,
            can_graceful_stop: true,
            can_group_process_tree: true,
            containment: None,
            can_observe_exit: true,
            can_observe_window_ready: true,
            can_force_foreground: true,
            can_force_fullscreen: true,
            can_lock_to_single_app: true,
            needs_account: false,
            can_switch_user: true,
            missing_logins: BTreeSet::new(),
        }
    }
}
