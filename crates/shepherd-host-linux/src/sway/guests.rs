//! What a Sway of ours has started while a session ran (`swaymsg exec`): it is in nobody's session, so it ends when the
//! session does, before that is said.
//!
//! Who was there before the session stays: Sway itself, a bar of its configuration. Where nobody knows who was, because
//! Sway came up while the session ran, all of it ends, and the watcher starts another.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use shepherd_util::SessionId;
use ward_process::{Census, Tree};

/// How long guests are killed one by one. Those who still come then are faster than that, and end with Sway.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shared by whoever starts sessions, ends them, and starts Sway.
#[derive(Clone, Default)]
pub(super) struct Guests(Arc<Mutex<House>>);

#[derive(Default)]
struct House {
    /// Those that run or are being started.
    sessions: BTreeSet<SessionId>,
    sway: Option<Sway>,
    /// Who was there before the first of the sessions, if that is known.
    residents: Option<Census>,
    /// Since when guests of a session that is over are being killed.
    clearing: Option<Instant>,
}

struct Sway {
    tree: Arc<Mutex<Tree>>,
    /// Its configuration has been read.
    listens: bool,
}

impl Guests {
    /// A session is about to start.
    pub(super) fn expect(&self, session_id: &SessionId) {
        let mut house = self.enter();
        if house.sessions.is_empty() {
            let listening = house.sway.as_ref().filter(|sway| sway.listens);
            // One that is being ended has nobody who stays.
            house.residents = listening.and_then(|sway| Some(sway.tree.try_lock().ok()?.census()));
        }
        house.sessions.insert(session_id.clone());
    }

    /// A session runs. One that nobody expected was taken back, and has run all along.
    pub(super) fn runs(&self, session_id: &SessionId) {
        let mut house = self.enter();
        if house.sessions.insert(session_id.clone()) {
            house.residents = None;
        }
    }

    /// A session did not start.
    pub(super) fn forget(&self, session_id: &SessionId) {
        self.enter().sessions.remove(session_id);
    }

    /// A session is over: strikes once at what Sway has started meanwhile. Whether nothing of it is left; until then it
    /// is to be called again. Never waits.
    pub(super) fn clear_away(&self, session_id: &SessionId) -> bool {
        let mut house = self.enter();
        let is_clear = !house.sessions.contains(session_id) || house.strike();
        if is_clear {
            house.sessions.remove(session_id);
            house.clearing = None;
        }
        is_clear
    }

    /// Whether a session runs or is being started.
    pub(super) fn are_in_session(&self) -> bool {
        !self.enter().sessions.is_empty()
    }

    /// Another Sway is being started, or an earlier one was taken back.
    pub(super) fn move_in(&self, tree: &Arc<Mutex<Tree>>) {
        let mut house = self.enter();
        house.sway = Some(Sway { tree: Arc::clone(tree), listens: false });
        house.residents = None;
    }

    /// It answers.
    pub(super) fn listens(&self) {
        if let Some(sway) = &mut self.enter().sway {
            sway.listens = true;
        }
    }

    /// Nothing is left of it.
    pub(super) fn move_out(&self) {
        self.enter().sway = None;
    }

    /// Each change of it is whole, so that one who panicked has not spoilt it.
    fn enter(&self) -> MutexGuard<'_, House> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl House {
    fn strike(&mut self) -> bool {
        let Some(sway) = &self.sway else { return true };
        // Whoever holds it for longer is ending it.
        let Ok(mut tree) = sway.tree.try_lock() else { return false };
        let since = *self.clearing.get_or_insert_with(Instant::now);
        match &self.residents {
            Some(residents) if since.elapsed() < PATIENCE => tree.kill_others(residents) == 0,
            _ => {
                tree.kill();
                matches!(tree.poll_ended(), Ok(Some(_)))
            }
        }
    }
}
