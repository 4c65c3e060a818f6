//! How it is with the compositor, as all threads see it.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::link::Link;

/// How long a program waits for a compositor that is being started: several times as long as one takes to come up on a
/// slow machine, and as long as anybody looks at an empty screen.
const PATIENCE: Duration = Duration::from_secs(5);

/// How it is.
pub(super) enum View {
    /// The policy names none.
    Unwanted,
    /// It is being looked for or started.
    Coming,
    /// There is none, because of this.
    Missing(String),
    /// There is one.
    Connected {
        /// Where its clients connect to.
        display: Option<PathBuf>,
    },
}

impl View {
    pub(super) fn of(link: &Link) -> Self {
        Self::Connected { display: link.display().map(Into::into) }
    }
}

/// What is known of the compositor.
#[derive(Clone)]
pub(super) struct Sight(Arc<Shared>);

struct Shared {
    view: Mutex<View>,
    changed: Condvar,
}

impl Sight {
    pub(super) fn new() -> Self {
        Self(Arc::new(Shared { view: Mutex::new(View::Unwanted), changed: Condvar::new() }))
    }

    pub(super) fn set(&self, view: View) {
        *self.view() = view;
        self.0.changed.notify_all();
    }

    /// Whether windows are noticed, and can be brought to the front and made to fill the screen.
    pub(super) fn is_clear(&self) -> bool {
        matches!(*self.view(), View::Connected { .. })
    }

    /// Where programs find the compositor. One that is coming is waited for: this is for threads that may.
    pub(super) fn display(&self) -> Option<PathBuf> {
        let is_coming = |view: &mut View| matches!(view, View::Coming);
        let waited = self.0.changed.wait_timeout_while(self.view(), PATIENCE, is_coming);
        match &*waited.unwrap_or_else(PoisonError::into_inner).0 {
            View::Connected { display } => display.clone(),
            View::Unwanted | View::Coming | View::Missing(_) => None,
        }
    }

    /// What is missing, if something is.
    pub(super) fn limitation(&self) -> Option<String> {
        let view = self.view();
        let reason = match &*view {
            View::Coming | View::Connected { .. } => return None,
            View::Unwanted => "the policy names no `[compositor]`",
            View::Missing(reason) => reason.as_str(),
        };
        Some(format!("Windows are neither noticed nor brought to the front: {reason}."))
    }

    /// Each change of it is whole, so that one who panicked has not spoilt it.
    fn view(&self) -> MutexGuard<'_, View> {
        self.0.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
