//! Idle MCP servers that stay running between two turns, so a turn rarely has to start one.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use collieclaw_agent::config::McpServerSettings;
use collieclaw_gate::GatePolicy;

use super::pins::PinnedServer;
use super::session::McpSession;

/// The longest time that a revoked server keeps running if no turn starts in between.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// The running servers that no turn uses now, shared by all turns of one process. A turn takes a server for
/// its whole duration, so no turn waits for another turn's call or loses its server. An idle server ends with
/// the process, with the emergency stop, when its configuration, approval or policy changes, and after a long
/// time without requests.
#[derive(Clone, Default)]
pub struct McpSessionPool {
    idle: Arc<Mutex<Vec<PooledSession>>>,
}

/// A configured server and its approved tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovedServer {
    pub(super) settings: McpServerSettings,
    pub(super) pinned: PinnedServer,
}

/// A running server with the approval and policy it was started under. A turn with other terms starts a new
/// server.
pub(super) struct PooledSession {
    pub(super) session: McpSession,
    pub(super) approved: ApprovedServer,
    pub(super) policy: GatePolicy,
}

impl McpSessionPool {
    /// Removes and returns the server that was returned last, if it runs under these terms.
    pub(super) fn take(&self, approved: &ApprovedServer, policy: &GatePolicy) -> Option<PooledSession> {
        self.end_unless(|pooled| !pooled.session.is_closed_or_idle());
        let mut idle = self.idle();
        let last =
            idle.iter().rposition(|pooled| pooled.approved == *approved && pooled.policy == *policy)?;
        Some(idle.remove(last))
    }

    /// Keeps a server for the next turn.
    pub(super) fn return_session(&self, pooled: PooledSession) {
        self.idle().push(pooled);
        self.end_unless(|pooled| !pooled.session.is_closed_or_idle());
    }

    /// Ends servers whose approval or policy is no longer in force, and servers that were unused for too
    /// long.
    pub fn end_revoked(&self, in_force: &[ApprovedServer], policy: &GatePolicy) {
        self.end_unless(|pooled| {
            in_force.contains(&pooled.approved)
                && pooled.policy == *policy
                && !pooled.session.is_closed_or_idle()
        });
    }

    pub fn end_all(&self) {
        self.end_unless(|_| false);
    }

    /// Calls `end_stale` regularly while the pool has idle servers, until the pool is dropped. `end_stale`
    /// must not hold a strong reference to the pool.
    ///
    /// # Errors
    /// Fails if no thread can be started.
    pub fn watch(&self, end_stale: impl Fn() + Send + 'static) -> io::Result<()> {
        let idle = Arc::downgrade(&self.idle);
        let has_idle = move || Some(!Self { idle: idle.upgrade()? }.idle().is_empty());
        let watch = move || {
            while let Some(has_idle_now) = has_idle() {
                if has_idle_now {
                    end_stale();
                }
                std::thread::sleep(CHECK_INTERVAL);
            }
        };
        std::thread::Builder::new().name("mcp-idle".to_owned()).spawn(watch).map(drop)
    }

    /// Ends sessions after the lock is released, because killing processes takes time.
    fn end_unless(&self, keep: impl Fn(&PooledSession) -> bool) {
        let ended: Vec<PooledSession> = self.idle().extract_if(.., |pooled| !keep(pooled)).collect();
        drop(ended);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<PooledSession>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
