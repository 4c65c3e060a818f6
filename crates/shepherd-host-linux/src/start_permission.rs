//! The permission to run a program whose start is prepared.

use std::cell::OnceCell;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The host's side: permits the start, or takes it back when it is dropped.
pub(crate) struct StartPermit(Sender<()>);

/// The side of the thread that prepares the start.
pub(crate) struct StartPermission {
    permits: Receiver<()>,
    is_permitted: OnceCell<bool>,
}

pub(crate) fn start_permission() -> (StartPermit, StartPermission) {
    let (sender, permits) = channel();
    (StartPermit(sender), StartPermission { permits, is_permitted: OnceCell::new() })
}

impl StartPermit {
    pub(crate) fn permit_start(self) {
        // Fails if the thread has panicked, which the worker hears of.
        let _ = self.0.send(());
    }
}

impl StartPermission {
    /// Waits for the decision. Returns false if the start was taken back.
    pub(crate) fn wait_until_permitted(&self) -> bool {
        *self.is_permitted.get_or_init(|| self.permits.recv().is_ok())
    }
}
