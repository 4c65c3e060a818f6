//! The state of the compositor, shared by all threads.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::display_access::CompositorDisplays;

/// The longest time that a program waits for a compositor that is starting: several times the time that a compositor
/// needs on a slow machine, and about as long as people watch an empty screen.
const DISPLAY_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) enum CompositorState {
    NotConfigured,
    /// The compositor is being searched or started.
    Starting,
    /// There is no compositor, for this reason.
    Unavailable(String),
    Connected(Box<CompositorDisplays>),
}

#[derive(Clone)]
pub(super) struct CompositorStatus(Arc<CompositorStatusInner>);

struct CompositorStatusInner {
    state: Mutex<CompositorState>,
    changed: Condvar,
}

impl CompositorStatus {
    pub(super) fn new() -> Self {
        Self(Arc::new(CompositorStatusInner {
            state: Mutex::new(CompositorState::NotConfigured),
            changed: Condvar::new(),
        }))
    }

    pub(super) fn set(&self, state: CompositorState) {
        *self.lock_state() = state;
        self.0.changed.notify_all();
    }

    pub(super) fn is_connected(&self) -> bool {
        matches!(*self.lock_state(), CompositorState::Connected(_))
    }

    /// Returns the displays of the compositor. Waits for a compositor that is starting, so only threads that may wait call
    /// it.
    pub(super) fn wait_for_displays(&self) -> Option<CompositorDisplays> {
        let is_starting = |state: &mut CompositorState| matches!(state, CompositorState::Starting);
        let waited = self.0.changed.wait_timeout_while(self.lock_state(), DISPLAY_TIMEOUT, is_starting);
        match &*waited.unwrap_or_else(PoisonError::into_inner).0 {
            CompositorState::Connected(displays) => Some((**displays).clone()),
            CompositorState::NotConfigured | CompositorState::Starting | CompositorState::Unavailable(_) => {
                None
            }
        }
    }

    /// Returns a sentence about missing window control, if it is missing.
    pub(super) fn limitation(&self) -> Option<String> {
        let state = self.lock_state();
        let reason = match &*state {
            CompositorState::Starting | CompositorState::Connected(_) => return None,
            CompositorState::NotConfigured => "the policy has no `[compositor]`",
            CompositorState::Unavailable(reason) => reason.as_str(),
        };
        Some(format!("Windows can't be detected or brought to the front: {reason}."))
    }

    /// Locks the state. Each change is a single assignment, so a panic can't leave it inconsistent.
    fn lock_state(&self) -> MutexGuard<'_, CompositorState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
