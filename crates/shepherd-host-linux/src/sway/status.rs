//! How it is with the compositor, as all threads see it.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::connection::SwayConnection;

/// How long a program waits for a compositor that is being started: several times as long as one takes to come up on a
/// slow machine, and as long as anybody looks at an empty screen.
const DISPLAY_TIMEOUT: Duration = Duration::from_secs(5);

/// How it is.
pub(super) enum CompositorState {
    /// The policy names none.
    NotConfigured,
    /// It is being looked for or started.
    Starting,
    /// There is none, because of this.
    Unavailable(String),
    /// There is one.
    Connected {
        /// Where its clients connect to.
        display: Option<PathBuf>,
    },
}

impl CompositorState {
    pub(super) fn connected_to(link: &SwayConnection) -> Self {
        Self::Connected { display: link.display().map(Into::into) }
    }
}

/// What is known of the compositor.
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

    pub(super) fn set(&self, view: CompositorState) {
        *self.lock_state() = view;
        self.0.changed.notify_all();
    }

    /// Whether windows are noticed, and can be brought to the front and made to fill the screen.
    pub(super) fn is_connected(&self) -> bool {
        matches!(*self.lock_state(), CompositorState::Connected { .. })
    }

    /// Where programs find the compositor. One that is coming is waited for: this is for threads that may.
    pub(super) fn wait_for_display(&self) -> Option<PathBuf> {
        let is_coming = |view: &mut CompositorState| matches!(view, CompositorState::Starting);
        let waited = self.0.changed.wait_timeout_while(self.lock_state(), DISPLAY_TIMEOUT, is_coming);
        match &*waited.unwrap_or_else(PoisonError::into_inner).0 {
            CompositorState::Connected { display } => display.clone(),
            CompositorState::NotConfigured | CompositorState::Starting | CompositorState::Unavailable(_) => {
                None
            }
        }
    }

    /// What is missing, if something is.
    pub(super) fn limitation(&self) -> Option<String> {
        let view = self.lock_state();
        let reason = match &*view {
            CompositorState::Starting | CompositorState::Connected { .. } => return None,
            CompositorState::NotConfigured => "the policy names no `[compositor]`",
            CompositorState::Unavailable(reason) => reason.as_str(),
        };
        Some(format!("Windows are neither noticed nor brought to the front: {reason}."))
    }

    /// Each change of it is whole, so that one who panicked has not spoilt it.
    fn lock_state(&self) -> MutexGuard<'_, CompositorState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
