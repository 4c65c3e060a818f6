//! What systemd is told (`Type=notify`), where there is one.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::{Interval, MissedTickBehavior};

/// The daemon answers clients now.
pub(crate) fn ready(status: &str) {
    send(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The loop runs.
pub(crate) fn ping_watchdog() {
    send(&[NotifyState::Watchdog]);
}

/// The daemon goes down in order.
pub(crate) fn stopping() {
    send(&[NotifyState::Stopping]);
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "systemd could not be told");
    }
}

/// How often systemd wants to hear that the loop runs; `None` if it does not.
pub(crate) fn watchdog_interval() -> Option<Interval> {
    let timeout: Duration = sd_notify::watchdog_enabled()?;
    let mut interval = tokio::time::interval(timeout / 2);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    Some(interval)
}
