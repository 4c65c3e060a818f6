//! What a Sway of ours has started while a session ran (`swaymsg exec`): it is in nobody's session, so it ends when the
//! session does, before that is said.
//!
//! Who was there before the session stays: Sway itself, a bar of its configuration. Where nobody knows who was, because
//! Sway came up while the session ran, all of it ends, and the watcher starts another.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use shepherd_util::SessionId;
use ward_process::{MemberSnapshot, ProcessTree};

/// How long guests are killed one by one. Those who still come then are faster than that, and end with Sway.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// Shared by whoever starts sessions, ends them, and starts Sway.
#[derive(Clone, Default)]
pub(super) struct SwayChildren(Arc<Mutex<SwayChildrenState>>);

#[derive(Default)]
struct SwayChildrenState {
    /// Those that run or are being started.
    sessions: BTreeSet<SessionId>,
    sway: Option<SwayProcess>,
    /// Who was there before the first of the sessions, if that is known.
    initial_processes: Option<MemberSnapshot>,
    /// Since when guests of a session that is over are being killed.
    killing_since: Option<Instant>,
}

struct SwayProcess {
    tree: Arc<Mutex<ProcessTree>>,
    /// Its configuration has been read.
    is_ready: bool,
}

impl SwayChildren {
    /// A session is about to start.
    pub(super) fn session_starting(&self, session_id: &SessionId) {
        let mut house = self.lock_state();
        if house.sessions.is_empty() {
            let listening = house.sway.as_ref().filter(|sway| sway.is_ready);
            // One that is being ended has nobody who stays.
            house.initial_processes =
                listening.and_then(|sway| Some(sway.tree.try_lock().ok()?.member_snapshot()));
        }
        house.sessions.insert(session_id.clone());
    }

    /// A session runs. One that nobody expected was taken back, and has run all along.
    pub(super) fn session_running(&self, session_id: &SessionId) {
        let mut house = self.lock_state();
        if house.sessions.insert(session_id.clone()) {
            house.initial_processes = None;
        }
    }

    /// A session did not start.
    pub(super) fn session_failed(&self, session_id: &SessionId) {
        self.lock_state().sessions.remove(session_id);
    }

    /// A session is over: strikes once at what Sway has started meanwhile. Whether nothing of it is left; until then it
    /// is to be called again. Never waits.
    pub(super) fn kill_started_since(&self, session_id: &SessionId) -> bool {
        let mut house = self.lock_state();
        let is_clear = !house.sessions.contains(session_id) || house.kill_once();
        if is_clear {
            house.sessions.remove(session_id);
            house.killing_since = None;
        }
        is_clear
    }

    /// Whether a session runs or is being started.
    pub(super) fn has_sessions(&self) -> bool {
        !self.lock_state().sessions.is_empty()
    }

    /// Another Sway is being started, or an earlier one was taken back.
    pub(super) fn set_sway(&self, tree: &Arc<Mutex<ProcessTree>>) {
        let mut house = self.lock_state();
        house.sway = Some(SwayProcess { tree: Arc::clone(tree), is_ready: false });
        house.initial_processes = None;
    }

    /// It answers.
    pub(super) fn set_ready(&self) {
        if let Some(sway) = &mut self.lock_state().sway {
            sway.is_ready = true;
        }
    }

    /// Nothing is left of it.
    pub(super) fn clear_sway(&self) {
        self.lock_state().sway = None;
    }

    /// Each change of it is whole, so that one who panicked has not spoilt it.
    fn lock_state(&self) -> MutexGuard<'_, SwayChildrenState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SwayChildrenState {
    fn kill_once(&mut self) -> bool {
        let Some(sway) = &self.sway else { return true };
        // Whoever holds it for longer is ending it.
        let Ok(mut tree) = sway.tree.try_lock() else { return false };
        let since = *self.killing_since.get_or_insert_with(Instant::now);
        match &self.initial_processes {
            Some(residents) if since.elapsed() < KILL_TIMEOUT => tree.kill_all_except(residents) == 0,
            _ => {
                tree.kill();
                matches!(tree.poll_ended(), Ok(Some(_)))
            }
        }
    }
}
