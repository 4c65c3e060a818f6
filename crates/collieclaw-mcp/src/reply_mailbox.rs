//! What is heard of a server between a question and its answer: that answer, a stop, or the end of the line.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use collieclaw_mcp_ipc::{IDLE_TIMEOUT, McpServerReply};

/// As many as a server may say in answer to one question, and some.
const MAX_CHANGE_NOTICES: u32 = 20_000;

/// What a question came to.
pub(super) enum ReplyOutcome {
    Reply(McpServerReply),
    Cancelled,
    TimedOut,
    Closed(ConnectionEnd),
}

/// Why nothing comes any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConnectionEnd {
    /// The server ended while nobody asked it anything.
    Gone,
    /// The line broke off, and why.
    Broken(String),
}

/// See the module. One asks, one listens, and any may cancel.
pub(super) struct ReplyMailbox {
    state: Mutex<ReplyState>,
    wake: Condvar,
}

struct ReplyState {
    /// How many questions there were. The last one waits, or has been answered.
    request_count: u64,
    is_waiting: bool,
    outcome: Option<ReplyOutcome>,
    end: Option<ConnectionEnd>,
    tools_changed: bool,
    /// How often that was said since the last question.
    change_notices: u32,
    /// Since when nobody asks anything.
    idle_since: Instant,
}

/// Somebody said something that answers nothing.
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

    /// Begins a question: its number, the first is 1. Or why there is nobody to ask.
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
            // Another one would end as well.
            (Some(end), 0) => Err(end.clone()),
            (Some(_), _) => Err(ConnectionEnd::Gone),
        }
    }

    /// Waits for what comes of the question, until then.
    pub(super) fn wait(&self, deadline: Instant) -> ReplyOutcome {
        let mut state = self.state();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let heard = match (state.outcome.take(), &state.end) {
                (Some(heard), _) => heard,
                (None, Some(end)) => ReplyOutcome::Closed(end.clone()),
                (None, None) if left.is_zero() => ReplyOutcome::TimedOut,
                (None, None) => {
                    state = self.wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
                    continue;
                }
            };
            state.is_waiting = false;
            state.idle_since = Instant::now();
            return heard;
        }
    }

    /// What the listener hears.
    pub(super) fn deliver(&self, answer: McpServerReply) -> Result<(), UnsolicitedReply> {
        let mut state = self.state();
        match answer {
            McpServerReply::Changed if state.change_notices < MAX_CHANGE_NOTICES => {
                state.tools_changed = true;
                state.change_notices += 1;
            }
            McpServerReply::Gone if !state.is_waiting => {
                state.end = state.end.take().or(Some(ConnectionEnd::Gone));
            }
            answer if state.is_waiting && state.outcome.is_none() => {
                state.outcome = Some(ReplyOutcome::Reply(answer));
            }
            _ => return Err(UnsolicitedReply),
        }
        self.wake.notify_all();
        Ok(())
    }

    /// Nothing comes any more. The first reason stays.
    pub(super) fn close(&self, why: String) {
        let mut state = self.state();
        state.end = state.end.take().or(Some(ConnectionEnd::Broken(why)));
        self.wake.notify_all();
    }

    /// Nobody waits for the answer to this question any more. Whether anybody did.
    pub(super) fn cancel(&self, number: u64) -> bool {
        let mut state = self.state();
        let waits = state.is_waiting && state.request_count == number;
        if waits {
            state.outcome = Some(ReplyOutcome::Cancelled);
            self.wake.notify_all();
        }
        waits
    }

    /// Whether it can't be asked any more, or has not been for too long.
    pub(super) fn is_closed_or_idle(&self) -> bool {
        let state = self.state();
        state.end.is_some() || !state.is_waiting && state.idle_since.elapsed() > IDLE_TIMEOUT
    }

    /// Whether the server has said, since this was asked, that its tools are others now.
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
    fn an_answer_belongs_to_the_question_that_waits_and_so_does_a_cancel() {
        let hearing = ReplyMailbox::new();
        assert!(hearing.deliver(tool_reply("unasked")).is_err());
        let first = hearing.begin_request().unwrap();
        hearing.deliver(McpServerReply::Changed).unwrap();
        hearing.deliver(tool_reply("one")).unwrap();
        assert!(hearing.deliver(tool_reply("one more")).is_err());
        let far = Instant::now() + IDLE_TIMEOUT;
        assert!(
            matches!(hearing.wait(far), ReplyOutcome::Reply(McpServerReply::Told { text, .. }) if text == "one")
        );
        assert!(hearing.take_tools_changed() && !hearing.take_tools_changed());

        let second = hearing.begin_request().unwrap();
        assert!(!hearing.cancel(first), "it was answered");
        assert!(matches!(hearing.wait(Instant::now()), ReplyOutcome::TimedOut));
        assert!(!hearing.cancel(second), "nobody waits");
        let third = hearing.begin_request().unwrap();
        assert!(hearing.cancel(third));
        assert!(matches!(hearing.wait(far), ReplyOutcome::Cancelled));
    }

    #[test]
    fn one_that_ends_before_it_was_asked_says_why_and_one_that_ends_later_is_gone() {
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
