//! Programs of earlier daemons of which nobody knows whether they still run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shepherd_util::SessionId;

/// They are shared between the thread that takes back and those that start: nothing is started while there is one.
#[derive(Clone, Default)]
pub(crate) struct UnresolvedSessions(Arc<Mutex<BTreeMap<SessionId, String>>>);

impl UnresolvedSessions {
    /// Whether it is a new one.
    pub(crate) fn add(&self, session_id: &SessionId, detail: &str) -> bool {
        self.lock().insert(session_id.clone(), detail.to_owned()).is_none()
    }

    pub(crate) fn resolve(&self, session_id: &SessionId) {
        self.lock().remove(session_id);
    }

    /// One of them, and why.
    pub(crate) fn first(&self) -> Option<(SessionId, String)> {
        self.lock().first_key_value().map(|(session_id, detail)| (session_id.clone(), detail.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
