//! A mailbox for the reply to one pending request: a reader thread delivers, and the caller waits for the
//! reply, a cancel or the end of the connection.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use collieclaw_mcp_ipc::{IDLE_TIMEOUT, McpServerReply};

/// More than a server can send in reply to one request.
const MAX_CHANGE_NOTICES: u32 = 20_000;

/// The outcome of a request.
pub(super) enum ReplyOutcome {
    Reply(McpServerReply),
    Cancelled,
    TimedOut,
    Closed(ConnectionEnd),
}

/// The reason why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConnectionEnd {
    /// The server ended between two requests.
    Gone,
    /// The connection broke, for this reason.
    Broken(String),
}

/// A mailbox with one caller and one reader thread; any thread may cancel.
pub(super) struct ReplyMailbox {
    state: Mutex<ReplyState>,
    wake: Condvar,
}

struct ReplyState {
    /// The number of requests so far. The latest request is pending or answered.
    request_count: u64,
    is_waiting: bool,
    outcome: Option<ReplyOutcome>,
    end: Option<ConnectionEnd>,
    tools_changed: bool,
    /// The number of change notices since the latest request.
    change_notices: u32,
    idle_since: Instant,
}

/// A reply that belongs to no request.
#[derive(Debug)]
pub(super) struct UnsolicitedReply;

impl ReplyMailbox {
    pub(super) fn new() -> Self {
        let idle_since = Instant::now();
        let state = ReplyState {
            request_count: 0,
            is_waiting: false,
            outcome: None,
            end: None,
            tools_changed: false,
            change_notices: 0,
            idle_since,
        };
        Self { state: Mutex::new(state), wake: Condvar::new() }
    }

    /// Starts a request and returns its number, counted from 1. Fails if the connection has ended.
    pub(super) fn begin_request(&self) -> Result<u64, ConnectionEnd> {
        let mut state = self.state();
        match (&state.end, state.request_count) {
            (None, _) => {
                state.request_count += 1;
                state.is_waiting = true;
                state.outcome = None;
                state.change_notices = 0;
                Ok(state.request_count)
            }
            // A new server would fail in the same way, so the caller gets the reason instead of `Gone`.
            (Some(end), 0) => Err(end.clone()),
            (Some(_), _) => Err(ConnectionEnd::Gone),
        }
    }

    /// Waits for the outcome of the pending request until the deadline.
    pub(super) fn wait(&self, deadline: Instant) -> ReplyOutcome {
        let mut state = self.state();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let outcome = match (state.outcome.take(), &state.end) {
                (Some(outcome), _) => outcome,
                (None, Some(end)) => ReplyOutcome::Closed(end.clone()),
                (None, None) if left.is_zero() => ReplyOutcome::TimedOut,
                (None, None) => {
                    state = self.wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
                    continue;
                }
            };
            state.is_waiting = false;
            state.idle_since = Instant::now();
            return outcome;
        }
    }

    /// Stores a reply and wakes the caller.
    pub(super) fn deliver(&self, reply: McpServerReply) -> Result<(), UnsolicitedReply> {
        let mut state = self.state();
        match reply {
            McpServerReply::Changed if state.change_notices < MAX_CHANGE_NOTICES => {
                state.tools_changed = true;
                state.change_notices += 1;
            }
            McpServerReply::Gone if !state.is_waiting => {
                state.end = state.end.take().or(Some(ConnectionEnd::Gone));
            }
            reply if state.is_waiting && state.outcome.is_none() => {
                state.outcome = Some(ReplyOutcome::Reply(reply));
            }
            _ => return Err(UnsolicitedReply),
        }
        self.wake.notify_all();
        Ok(())
    }

    /// Marks the connection as ended. Later calls don't change the reason.
    pub(super) fn close(&self, why: String) {
        let mut state = self.state();
        state.end = state.end.take().or(Some(ConnectionEnd::Broken(why)));
        self.wake.notify_all();
    }

    /// Cancels a request. Returns false if that request is not pending.
    pub(super) fn cancel(&self, number: u64) -> bool {
        let mut state = self.state();
        let is_pending = state.is_waiting && state.request_count == number;
        if is_pending {
            state.outcome = Some(ReplyOutcome::Cancelled);
            self.wake.notify_all();
        }
        is_pending
    }

    /// Returns true if the connection has ended or was unused for too long.
    pub(super) fn is_closed_or_idle(&self) -> bool {
        let state = self.state();
        state.end.is_some() || !state.is_waiting && state.idle_since.elapsed() > IDLE_TIMEOUT
    }

    /// Returns true if the server announced changed tools since the last call of this function.
    pub(super) fn take_tools_changed(&self) -> bool {
        std::mem::take(&mut self.state().tools_changed)
    }

    fn state(&self) -> MutexGuard<'_, ReplyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool_reply(text: &str) -> McpServerReply {
        McpServerReply::Told { text: text.to_owned(), worked: true }
    }

    #[test]
    fn a_reply_and_a_cancel_belong_to_the_pending_request() {
        let mailbox = ReplyMailbox::new();
        assert!(mailbox.deliver(tool_reply("unasked")).is_err());
        let first = mailbox.begin_request().unwrap();
        mailbox.deliver(McpServerReply::Changed).unwrap();
        mailbox.deliver(tool_reply("one")).unwrap();
        assert!(mailbox.deliver(tool_reply("one more")).is_err());
        let far = Instant::now() + IDLE_TIMEOUT;
        assert!(
            matches!(mailbox.wait(far), ReplyOutcome::Reply(McpServerReply::Told { text, .. }) if text == "one")
        );
        assert!(mailbox.take_tools_changed() && !mailbox.take_tools_changed());

        let second = mailbox.begin_request().unwrap();
        assert!(!mailbox.cancel(first), "it was answered");
        assert!(matches!(mailbox.wait(Instant::now()), ReplyOutcome::TimedOut));
        assert!(!mailbox.cancel(second), "nobody waits");
        let third = mailbox.begin_request().unwrap();
        assert!(mailbox.cancel(third));
        assert!(matches!(mailbox.wait(far), ReplyOutcome::Cancelled));
    }

    #[test]
    fn an_early_end_reports_its_reason_and_a_later_end_is_gone() {
        let at_once = ReplyMailbox::new();
        at_once.close("no luck".to_owned());
        assert_eq!(at_once.begin_request(), Err(ConnectionEnd::Broken("no luck".to_owned())));

        let later = ReplyMailbox::new();
        later.begin_request().unwrap();
        later.deliver(tool_reply("x")).unwrap();
        later.wait(Instant::now());
        later.deliver(McpServerReply::Gone).unwrap();
        later.close("the line is closed".to_owned());
        assert!(later.is_closed_or_idle());
        assert_eq!(later.begin_request(), Err(ConnectionEnd::Gone));

        let meanwhile = ReplyMailbox::new();
        meanwhile.begin_request().unwrap();
        meanwhile.close("killed".to_owned());
        assert!(
            matches!(meanwhile.wait(Instant::now() + IDLE_TIMEOUT), ReplyOutcome::Closed(ConnectionEnd::Broken(why)) if why == "killed")
        );
    }
}
