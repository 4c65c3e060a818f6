//! Notifications to systemd (`Type=notify`), if systemd started the daemon.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::{Interval, MissedTickBehavior};

/// Tells systemd that the daemon answers clients.
pub(crate) fn ready(status: &str) {
    send(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Tells systemd that the loop is alive.
pub(crate) fn ping_watchdog() {
    send(&[NotifyState::Watchdog]);
}

/// Tells systemd that the daemon is stopping.
pub(crate) fn stopping() {
    send(&[NotifyState::Stopping]);
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "could not notify systemd");
    }
}

/// Returns the interval at which to ping the watchdog, half of its timeout; `None` if the unit has no watchdog.
pub(crate) fn watchdog_interval() -> Option<Interval> {
    let timeout: Duration = sd_notify::watchdog_enabled()?;
    let mut interval = tokio::time::interval(timeout / 2);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    Some(interval)
}
