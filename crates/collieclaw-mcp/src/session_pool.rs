//! Servers that run on between two turns, so that none is started for each.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use collieclaw_agent::config::McpServerSettings;
use collieclaw_gate::GatePolicy;

use super::pins::PinnedServer;
use super::session::McpSession;

/// So long a server may run on after it was taken back, if no turn begins in between.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// The servers that run and that nobody uses at this moment, known to all turns of one process. A turn takes one for as
/// long as it lasts, so that no turn waits for another's call or loses its server with it. They end with the process,
/// with the emergency stop, with what they were started under, and when nobody asks them anything for long.
#[derive(Clone, Default)]
pub struct McpSessionPool {
    idle: Arc<Mutex<Vec<PooledSession>>>,
}

/// A server of the configuration, and what somebody approved of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovedServer {
    pub(super) settings: McpServerSettings,
    pub(super) pinned: PinnedServer,
}

/// A server that runs, and what it was started with and compared to: under other terms another is started.
pub(super) struct PooledSession {
    pub(super) session: McpSession,
    pub(super) approved: ApprovedServer,
    pub(super) policy: GatePolicy,
}

impl McpSessionPool {
    /// The server that was given back last, if it runs under these terms.
    pub(super) fn take(&self, approved: &ApprovedServer, policy: &GatePolicy) -> Option<PooledSession> {
        self.end_unless(|kept| !kept.session.is_closed_or_idle());
        let mut idle = self.idle();
        let last = idle.iter().rposition(|kept| kept.approved == *approved && kept.policy == *policy)?;
        Some(idle.remove(last))
    }

    /// Keeps a server for the next turn.
    pub(super) fn return_session(&self, kept: PooledSession) {
        self.idle().push(kept);
        self.end_unless(|kept| !kept.session.is_closed_or_idle());
    }

    /// Ends all that none of these servers matches: what is in force now. And what nobody has asked for long.
    pub fn end_revoked(&self, in_force: &[ApprovedServer], policy: &GatePolicy) {
        self.end_unless(|kept| {
            in_force.contains(&kept.approved) && kept.policy == *policy && !kept.session.is_closed_or_idle()
        });
    }

    /// Ends all.
    pub fn end_all(&self) {
        self.end_unless(|_| false);
    }

    /// Lets `look` end what is not in force any more, again and again while there is anything to end, as long as there are
    /// these sessions. It must not keep them itself.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub fn watch(&self, look: impl Fn() + Send + 'static) -> io::Result<()> {
        let idle = Arc::downgrade(&self.idle);
        let is_any = move || Some(!Self { idle: idle.upgrade()? }.idle().is_empty());
        let watch = move || {
            while let Some(any) = is_any() {
                if any {
                    look();
                }
                std::thread::sleep(CHECK_INTERVAL);
            }
        };
        std::thread::Builder::new().name("mcp-idle".to_owned()).spawn(watch).map(drop)
    }

    /// Nobody waits while one is being ended.
    fn end_unless(&self, stays: impl Fn(&PooledSession) -> bool) {
        let ended: Vec<PooledSession> = self.idle().extract_if(.., |kept| !stays(kept)).collect();
        drop(ended);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<PooledSession>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
