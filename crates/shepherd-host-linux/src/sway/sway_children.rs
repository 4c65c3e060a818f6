//! The programs that the daemon's Sway starts during a session (`swaymsg exec`). They belong to no session's tree, so they
//! are killed when the session ends, before its end is reported.
//!
//! Processes from before the session stay: Sway itself, and the bar of its configuration. If Sway started during the
//! session, these processes are not known. Then the whole Sway is killed, and the watcher starts another.
//!
//! While other sessions run, Sway and its own helpers stay: Xwayland, which may show their windows, and the bars of
//! `bar` blocks. They are in the same session (`setsid(2)`) as Sway, and Sway starts programs for clients in new ones. All
//! else that was started since the ended session began is killed, because nothing tells for which session it was started.

use std::collections::BTreeMap;
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
    /// The sessions that run, are being started, or are over and still have children.
    sessions: BTreeMap<SessionId, SessionChildren>,
    sway: Option<SwayProcess>,
    /// The processes from before the first of the sessions, if they are known.
    initial_processes: Option<MemberSnapshot>,
}

#[derive(Default)]
struct SessionChildren {
    /// The processes from before the session, if they are known.
    earlier_processes: Option<MemberSnapshot>,
    /// The time since which the children are being killed, because the session is over.
    killing_since: Option<Instant>,
}

struct SwayProcess {
    tree: Arc<Mutex<ProcessTree>>,
    /// The process id of Sway itself, once it has read its configuration.
    pid: Option<i32>,
}

impl SwayChildren {
    /// Records that a session is about to start, and which processes Sway has at that time.
    pub(super) fn session_starting(&self, session_id: &SessionId) {
        let mut state = self.lock_state();
        let ready = state.sway.as_ref().filter(|sway| sway.pid.is_some());
        // The lock is held while Sway is being stopped. Then none of its processes stays.
        let earlier_processes = ready.and_then(|sway| Some(sway.tree.try_lock().ok()?.member_snapshot()));
        if state.sessions.is_empty() {
            state.initial_processes.clone_from(&earlier_processes);
        }
        let children = SessionChildren { earlier_processes, killing_since: None };
        state.sessions.insert(session_id.clone(), children);
    }

    /// Records that a session runs. A session that was not starting is a reattached one, and has run before.
    pub(super) fn session_running(&self, session_id: &SessionId) {
        let mut state = self.lock_state();
        if !state.sessions.contains_key(session_id) {
            state.sessions.insert(session_id.clone(), SessionChildren::default());
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
        let is_clear = state.kill_once(session_id);
        if is_clear {
            state.sessions.remove(session_id);
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
        state.sway = Some(SwayProcess { tree: Arc::clone(tree), pid: None });
        state.initial_processes = None;
        state.sessions.values_mut().for_each(|children| children.earlier_processes = None);
    }

    /// Records that Sway, which is this process, answers.
    pub(super) fn set_ready(&self, pid: i32) {
        if let Some(sway) = &mut self.lock_state().sway {
            sway.pid = Some(pid);
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
    fn kill_once(&mut self, session_id: &SessionId) -> bool {
        // Sessions that are over, and only wait for their children, show nothing.
        let is_other = |(id, children): (&SessionId, &SessionChildren)| {
            id != session_id && children.killing_since.is_none()
        };
        let others_run = self.sessions.iter().any(is_other);
        let Some(children) = self.sessions.get_mut(session_id) else { return true };
        let Some(sway) = &self.sway else { return true };
        // The lock is only held for long while Sway is being stopped.
        let Ok(mut tree) = sway.tree.try_lock() else { return false };
        let since = *children.killing_since.get_or_insert_with(Instant::now);
        let spared = match sway.pid {
            Some(pid) if others_run => {
                let earlier = children.earlier_processes.clone().unwrap_or_default();
                Some(earlier.with_session_of(pid))
            }
            _ => self.initial_processes.clone(),
        };
        match spared {
            Some(spared) if since.elapsed() < KILL_TIMEOUT => tree.kill_all_except(&spared) == 0,
            _ => {
                tree.kill();
                matches!(tree.poll_ended(), Ok(Some(_)))
            }
        }
    }
}
