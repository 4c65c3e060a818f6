//! Waiting for a condition. A failed wait says what it waited for.

use std::time::{Duration, Instant};

use shepherd_api::{Command, CommandReply};
use shepherd_ipc::{BlockingClient, CallError};

use super::PATIENCE;

const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Waits until a condition holds.
pub(crate) fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    assert!(becomes_true_within(PATIENCE, condition), "waited {PATIENCE:?} in vain: {what}");
}

/// Checks that a condition keeps holding for this long.
pub(crate) fn assert_stays(what: &str, length: Duration, mut condition: impl FnMut() -> bool) {
    assert!(!becomes_true_within(length, || !condition()), "not for {length:?}: {what}");
}

/// Waits until a condition holds, and returns false if it doesn't within this time. Every other wait uses this one.
pub(crate) fn becomes_true_within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !condition() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    true
}

/// Calls until the rate limit lets the call through.
pub(crate) fn call_at_allowed_rate(
    client: &mut BlockingClient,
    command: &Command,
) -> Result<CommandReply, CallError> {
    loop {
        let reply = client.call(command.clone());
        let error = reply.as_ref().err().and_then(CallError::api_error);
        match error.and_then(|error| error.retry_after) {
            // Only time ends a rate limit.
            Some(wait) => std::thread::sleep(wait.into()),
            None => return reply,
        }
    }
}
