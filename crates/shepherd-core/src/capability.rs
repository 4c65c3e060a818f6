//! What the host says it can do (S5.1). The core decides by capability, never by platform.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// What a host can do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the names and their independence are given by the specification"
)]
pub struct HostCapabilities {
    /// Kinds of entries that it can start: `process`, `vm`, `media`, `custom`.
    pub spawn_kinds_supported: BTreeSet<String>,
    /// It can end a program against its will.
    pub can_kill_forcefully: bool,
    /// It can ask a program to end.
    pub can_graceful_stop: bool,
    /// It ends a program with everything that came of it.
    pub can_group_process_tree: bool,
    /// By what it does so, as a stable name, if it says (S6.2).
    pub containment: Option<String>,
    /// It notices when a program ends.
    pub can_observe_exit: bool,
    /// It notices when a program shows a window.
    pub can_observe_window_ready: bool,
    /// It can bring a window to the front.
    pub can_force_foreground: bool,
    /// It can make a window fill the screen.
    pub can_force_fullscreen: bool,
    /// It can keep everything else from being used.
    pub can_lock_to_single_app: bool,
    /// It would run a program as root if nobody says as whom: then nothing could hold the program.
    pub needs_account: bool,
    /// It can run a program as another user than its own.
    pub can_switch_user: bool,
}

impl HostCapabilities {
    /// A host that lacks nothing, for questions that are not about a host.
    #[must_use]
    pub fn all_supported() -> Self {
        Self {
            spawn_kinds_supported: ["process", "vm", "media", "custom"].map(str::to_owned).into(),
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
        }
    }
}
