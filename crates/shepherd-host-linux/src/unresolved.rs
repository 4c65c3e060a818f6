//! Sessions of earlier daemons whose programs may still run, but could not be reattached yet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shepherd_util::SessionId;

/// Shared between the worker and the threads that start programs: nothing is started while a session is unresolved.
#[derive(Clone, Default)]
pub(crate) struct UnresolvedSessions(Arc<Mutex<BTreeMap<SessionId, String>>>);

impl UnresolvedSessions {
    /// Adds a session. Returns whether it is new.
    pub(crate) fn add(&self, session_id: &SessionId, detail: &str) -> bool {
        self.lock().insert(session_id.clone(), detail.to_owned()).is_none()
    }

    pub(crate) fn resolve(&self, session_id: &SessionId) {
        self.lock().remove(session_id);
    }

    /// Returns an unresolved session and the reason, if there is one.
    pub(crate) fn first(&self) -> Option<(SessionId, String)> {
        self.lock().first_key_value().map(|(session_id, detail)| (session_id.clone(), detail.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
