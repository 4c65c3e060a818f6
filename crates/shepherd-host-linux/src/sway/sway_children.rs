//! The programs that the daemon's Sway starts during a session (`swaymsg exec`). They belong to no session's tree, so they
//! are killed when the session ends, before its end is reported.
//!
//! Processes from before the session stay: Sway itself, and the bar of its configuration. If Sway started during the
//! session, these processes are not known. Then the whole Sway is killed, and the watcher starts another.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use shepherd_util::SessionId;
use ward_process::{MemberSnapshot, ProcessTree};

/// The time in which children are killed one by one. If new ones still appear after it, Sway is killed with them.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// Shared by the threads that start sessions, stop sessions, and start Sway.
#[derive(Clone, Default)]
pub(super) struct SwayChildren(Arc<Mutex<SwayChildrenState>>);

#[derive(Default)]
struct SwayChildrenState {
    /// The sessions that run or are being started.
    sessions: BTreeSet<SessionId>,
    sway: Option<SwayProcess>,
    /// The processes from before the first of the sessions, if they are known.
    initial_processes: Option<MemberSnapshot>,
    /// The time since which the children of an ended session are being killed.
    killing_since: Option<Instant>,
}

struct SwayProcess {
    tree: Arc<Mutex<ProcessTree>>,
    /// True once Sway has read its configuration.
    is_ready: bool,
}

impl SwayChildren {
    /// Records that a session is about to start, and which processes Sway has at that time.
    pub(super) fn session_starting(&self, session_id: &SessionId) {
        let mut state = self.lock_state();
        if state.sessions.is_empty() {
            let ready = state.sway.as_ref().filter(|sway| sway.is_ready);
            // The lock is held while Sway is being stopped. Then none of its processes stays.
            state.initial_processes =
                ready.and_then(|sway| Some(sway.tree.try_lock().ok()?.member_snapshot()));
        }
        state.sessions.insert(session_id.clone());
    }

    /// Records that a session runs. A session that was not starting is a reattached one, and has run before.
    pub(super) fn session_running(&self, session_id: &SessionId) {
        let mut state = self.lock_state();
        if state.sessions.insert(session_id.clone()) {
            state.initial_processes = None;
        }
    }

    pub(super) fn session_failed(&self, session_id: &SessionId) {
        self.lock_state().sessions.remove(session_id);
    }

    /// Kills once what Sway has started during a session that is over. Returns whether nothing is left; until then, the
    /// caller calls again. Never waits.
    pub(super) fn kill_started_since(&self, session_id: &SessionId) -> bool {
        let mut state = self.lock_state();
        let is_clear = !state.sessions.contains(session_id) || state.kill_once();
        if is_clear {
            state.sessions.remove(session_id);
            state.killing_since = None;
        }
        is_clear
    }

    /// Returns whether a session runs or is being started.
    pub(super) fn has_sessions(&self) -> bool {
        !self.lock_state().sessions.is_empty()
    }

    /// Sets the Sway that is being started or was reattached.
    pub(super) fn set_sway(&self, tree: &Arc<Mutex<ProcessTree>>) {
        let mut state = self.lock_state();
        state.sway = Some(SwayProcess { tree: Arc::clone(tree), is_ready: false });
        state.initial_processes = None;
    }

    /// Records that Sway answers.
    pub(super) fn set_ready(&self) {
        if let Some(sway) = &mut self.lock_state().sway {
            sway.is_ready = true;
        }
    }

    pub(super) fn clear_sway(&self) {
        self.lock_state().sway = None;
    }

    /// Locks the state. Each change leaves it consistent, so a panic in another thread does no harm.
    fn lock_state(&self) -> MutexGuard<'_, SwayChildrenState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SwayChildrenState {
    fn kill_once(&mut self) -> bool {
        let Some(sway) = &self.sway else { return true };
        // The lock is only held for long while Sway is being stopped.
        let Ok(mut tree) = sway.tree.try_lock() else { return false };
        let since = *self.killing_since.get_or_insert_with(Instant::now);
        match &self.initial_processes {
            Some(initial) if since.elapsed() < KILL_TIMEOUT => tree.kill_all_except(initial) == 0,
            _ => {
                tree.kill();
                matches!(tree.poll_ended(), Ok(Some(_)))
            }
        }
    }
}
