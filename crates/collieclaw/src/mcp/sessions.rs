//! Servers that run on between two turns, so that none is started for each.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use collieclaw_gate::GatePolicy;

use super::pins::Pinned;
use super::session::Session;
use crate::config::McpServer;

/// The servers that run and that nobody uses at this moment, known to all turns of one process. A turn takes one for as
/// long as it lasts, so that no turn waits for another's call or loses its server with it. They end with the process,
/// with the emergency stop, and when nobody asks them anything for long.
#[derive(Clone, Default)]
pub struct Sessions {
    idle: Arc<Mutex<Vec<Kept>>>,
}

/// A server that runs, and what it was started with and compared to: under other terms another is started.
pub(super) struct Kept {
    pub(super) session: Session,
    pub(super) settings: McpServer,
    pub(super) pinned: Pinned,
    pub(super) policy: GatePolicy,
}

impl Sessions {
    /// The server that was given back last, if it runs under these terms. Those of its name under others are ended.
    pub(super) fn take(&self, settings: &McpServer, pinned: &Pinned, policy: &GatePolicy) -> Option<Kept> {
        let fits =
            |kept: &Kept| kept.settings == *settings && kept.pinned == *pinned && kept.policy == *policy;
        let mut idle = self.idle();
        idle.retain(|kept| !kept.session.is_over() && (kept.pinned.server != pinned.server || fits(kept)));
        let last = idle.iter().rposition(fits)?;
        Some(idle.remove(last))
    }

    /// Keeps a server for the next turn.
    pub(super) fn give_back(&self, kept: Kept) {
        let mut idle = self.idle();
        idle.retain(|kept| !kept.session.is_over());
        if !kept.session.is_over() {
            idle.push(kept);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
