//! The next thing to do with the daemon. Delays are states of the loop, so that buttons, the notification service and the
//! end of the login are handled meanwhile.

use std::time::Duration;

use shepherd_ipc::{AsyncDaemonWatcher, WatchUpdate};
use tokio::time::{Instant, sleep_until};

/// The next thing to do with the daemon.
#[derive(Clone, Copy, Debug)]
pub(super) enum DaemonStep {
    /// Wait for an update. A watcher that isn't connected connects.
    Watch,
    /// Connect again, but not before this time.
    Reconnect { not_before: Instant },
    /// Ask again who is at this login, and wait this long after another failure. Updates are kept meanwhile.
    Identify { at: Instant, next_delay: Duration },
}

/// What the loop has to handle.
pub(super) enum DaemonInput {
    Update(Box<WatchUpdate>),
    IdentificationDue { next_delay: Duration },
}

impl DaemonStep {
    /// Waits for the next input. A cancellation loses none.
    pub(super) async fn wait(self, watcher: &mut AsyncDaemonWatcher) -> DaemonInput {
        match self {
            Self::Watch => {}
            Self::Reconnect { not_before } => sleep_until(not_before).await,
            Self::Identify { at, next_delay } => {
                sleep_until(at).await;
                return DaemonInput::IdentificationDue { next_delay };
            }
        }
        DaemonInput::Update(Box::new(watcher.next().await))
    }
}
