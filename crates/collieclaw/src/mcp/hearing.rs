//! What is heard of a server between a question and its answer: that answer, a stop, or the end of the line.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::line::{Answer, IDLE};

/// As many as a server may say in answer to one question, and some.
const MOST_CHANGES: u32 = 20_000;

/// What a question came to.
pub(super) enum Heard {
    Answer(Answer),
    Cancelled,
    TimedOut,
    End(End),
}

/// Why nothing comes any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// The server ended while nobody asked it anything.
    Gone,
    /// The line broke off, and why.
    Broken(String),
}

/// See the module. One asks, one listens, and any may cancel.
pub(super) struct Hearing {
    state: Mutex<State>,
    came: Condvar,
}

struct State {
    /// How many questions there were. The last one waits, or has been answered.
    asked: u64,
    waits: bool,
    heard: Option<Heard>,
    end: Option<End>,
    changed: bool,
    /// How often that was said since the last question.
    changes: u32,
    /// Since when nobody asks anything.
    idle_since: Instant,
}

/// Somebody said something that answers nothing.
#[derive(Debug)]
pub(super) struct Unasked;

impl Hearing {
    pub(super) fn new() -> Self {
        let idle_since = Instant::now();
        let state =
            State { asked: 0, waits: false, heard: None, end: None, changed: false, changes: 0, idle_since };
        Self { state: Mutex::new(state), came: Condvar::new() }
    }

    /// Begins a question: its number, the first is 1. Or why there is nobody to ask.
    pub(super) fn begin(&self) -> Result<u64, End> {
        let mut state = self.state();
        match (&state.end, state.asked) {
            (None, _) => {
                state.asked += 1;
                state.waits = true;
                state.heard = None;
                state.changes = 0;
                Ok(state.asked)
            }
            // Another one would end as well.
            (Some(end), 0) => Err(end.clone()),
            (Some(_), _) => Err(End::Gone),
        }
    }

    /// Waits for what comes of the question, until then.
    pub(super) fn wait(&self, deadline: Instant) -> Heard {
        let mut state = self.state();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let heard = match (state.heard.take(), &state.end) {
                (Some(heard), _) => heard,
                (None, Some(end)) => Heard::End(end.clone()),
                (None, None) if left.is_zero() => Heard::TimedOut,
                (None, None) => {
                    state = self.came.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
                    continue;
                }
            };
            state.waits = false;
            state.idle_since = Instant::now();
            return heard;
        }
    }

    /// What the listener hears.
    pub(super) fn hear(&self, answer: Answer) -> Result<(), Unasked> {
        let mut state = self.state();
        match answer {
            Answer::Changed if state.changes < MOST_CHANGES => {
                state.changed = true;
                state.changes += 1;
            }
            Answer::Gone if !state.waits => state.end = state.end.take().or(Some(End::Gone)),
            answer if state.waits && state.heard.is_none() => state.heard = Some(Heard::Answer(answer)),
            _ => return Err(Unasked),
        }
        self.came.notify_all();
        Ok(())
    }

    /// Nothing comes any more. The first reason stays.
    pub(super) fn end(&self, why: String) {
        let mut state = self.state();
        state.end = state.end.take().or(Some(End::Broken(why)));
        self.came.notify_all();
    }

    /// Nobody waits for the answer to this question any more. Whether anybody did.
    pub(super) fn cancel(&self, number: u64) -> bool {
        let mut state = self.state();
        let waits = state.waits && state.asked == number;
        if waits {
            state.heard = Some(Heard::Cancelled);
            self.came.notify_all();
        }
        waits
    }

    /// Whether it can't be asked any more, or has not been for too long.
    pub(super) fn is_over(&self) -> bool {
        let state = self.state();
        state.end.is_some() || !state.waits && state.idle_since.elapsed() > IDLE
    }

    /// Whether the server has said, since this was asked, that its tools are others now.
    pub(super) fn says_it_changed(&self) -> bool {
        std::mem::take(&mut self.state().changed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Answer {
        Answer::Told { text: text.to_owned(), worked: true }
    }

    #[test]
    fn an_answer_belongs_to_the_question_that_waits_and_so_does_a_cancel() {
        let hearing = Hearing::new();
        assert!(hearing.hear(told("unasked")).is_err());
        let first = hearing.begin().unwrap();
        hearing.hear(Answer::Changed).unwrap();
        hearing.hear(told("one")).unwrap();
        assert!(hearing.hear(told("one more")).is_err());
        let far = Instant::now() + IDLE;
        assert!(matches!(hearing.wait(far), Heard::Answer(Answer::Told { text, .. }) if text == "one"));
        assert!(hearing.says_it_changed() && !hearing.says_it_changed());

        let second = hearing.begin().unwrap();
        assert!(!hearing.cancel(first), "it was answered");
        assert!(matches!(hearing.wait(Instant::now()), Heard::TimedOut));
        assert!(!hearing.cancel(second), "nobody waits");
        let third = hearing.begin().unwrap();
        assert!(hearing.cancel(third));
        assert!(matches!(hearing.wait(far), Heard::Cancelled));
    }

    #[test]
    fn one_that_ends_before_it_was_asked_says_why_and_one_that_ends_later_is_gone() {
        let at_once = Hearing::new();
        at_once.end("no luck".to_owned());
        assert_eq!(at_once.begin(), Err(End::Broken("no luck".to_owned())));

        let later = Hearing::new();
        later.begin().unwrap();
        later.hear(told("x")).unwrap();
        later.wait(Instant::now());
        later.hear(Answer::Gone).unwrap();
        later.end("the line is closed".to_owned());
        assert!(later.is_over());
        assert_eq!(later.begin(), Err(End::Gone));

        let meanwhile = Hearing::new();
        meanwhile.begin().unwrap();
        meanwhile.end("killed".to_owned());
        assert!(
            matches!(meanwhile.wait(Instant::now() + IDLE), Heard::End(End::Broken(why)) if why == "killed")
        );
    }
}
