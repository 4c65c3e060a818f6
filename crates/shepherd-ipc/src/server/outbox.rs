//! What waits to be written to one client: answers, and events up to a bound (S11.2).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// A line as it goes out, its end included. An event is made into one once, however many subscribers there are.
pub(super) type Line = Arc<[u8]>;

#[derive(Debug)]
pub(super) struct Outbox {
    inner: Mutex<Inner>,
    for_writer: Notify,
    for_reader: Notify,
    /// Bytes of answers that wait for all connections of this user.
    user_bytes: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Inner {
    lines: VecDeque<Waiting>,
    queued_events: usize,
    /// Requests that were read and whose answers are not yet written.
    unanswered: usize,
    feed: Feed,
    state: State,
}

#[derive(Debug)]
enum Waiting {
    Answer(Line),
    Event(Line),
    /// A word of the daemon's own, such as a welcome.
    Other(Line),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feed {
    Off,
    Live,
    /// Events are left out until a snapshot came.
    Behind {
        missed: u64,
        asked: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The client sends nothing more: what it asked for is still answered.
    HalfOpen,
    /// What waits is written, and that is the end.
    Closing,
}

/// What a writer does next.
#[derive(Debug)]
pub(super) enum Step {
    Write(Outgoing),
    /// The client has caught up with what was kept for it: ask how it stands now.
    AskForSnapshot,
    End,
}

/// A line on its way; dropping it says that it is out, or never will be.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) line: Line,
    outbox: Arc<Outbox>,
    is_answer: bool,
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        if self.is_answer {
            self.outbox.user_bytes.fetch_sub(self.line.len(), Ordering::Relaxed);
            let mut inner = self.outbox.inner();
            inner.unanswered = inner.unanswered.saturating_sub(1);
            drop(inner);
            self.outbox.for_reader.notify_one();
        }
    }
}

/// Whether an event was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    Queued,
    LeftOut,
    NotSubscribed,
}

impl Outbox {
    pub(super) fn new(user_bytes: Arc<AtomicUsize>) -> Self {
        let inner = Inner {
            lines: VecDeque::new(),
            queued_events: 0,
            unanswered: 0,
            feed: Feed::Off,
            state: State::Open,
        };
        let (for_writer, for_reader) = (Notify::new(), Notify::new());
        Self { inner: Mutex::new(inner), for_writer, for_reader, user_bytes }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until one more request may be read, and counts it. `false` once the connection is to end.
    pub(super) async fn take_request(&self, most: usize) -> bool {
        loop {
            {
                let mut inner = self.inner();
                if inner.state != State::Open {
                    return false;
                }
                if inner.unanswered < most {
                    inner.unanswered += 1;
                    return true;
                }
            }
            self.for_reader.notified().await;
        }
    }

    /// An answer to a request that was taken. If more waits for this user's connections than may, this one ends:
    /// it asks and does not read.
    pub(super) fn answer(&self, line: Line, most_bytes: usize) {
        let before = self.user_bytes.fetch_add(line.len(), Ordering::Relaxed);
        let mut inner = self.inner();
        // One answer always has room, however long it is.
        if before > 0 && before.saturating_add(line.len()) > most_bytes {
            inner.state = State::Closing;
            self.user_bytes.fetch_sub(line.len(), Ordering::Relaxed);
        } else {
            inner.lines.push_back(Waiting::Answer(line));
        }
        drop(inner);
        self.wake();
    }

    /// An answer that starts the feed of events: those from this moment on follow it.
    pub(super) fn answer_subscription(&self, line: Line, most_bytes: usize) {
        self.inner().feed = Feed::Live;
        self.answer(line, most_bytes);
    }

    pub(super) fn say(&self, line: Line) {
        self.inner().lines.push_back(Waiting::Other(line));
        self.wake();
    }

    pub(super) fn event(&self, line: &Line, most: usize) -> Delivery {
        let mut inner = self.inner();
        if inner.state != State::Open {
            return Delivery::NotSubscribed;
        }
        match &mut inner.feed {
            Feed::Off => return Delivery::NotSubscribed,
            Feed::Behind { missed, .. } => {
                *missed += 1;
                return Delivery::LeftOut;
            }
            Feed::Live => {}
        }
        if inner.queued_events >= most {
            inner.feed = Feed::Behind { missed: 1, asked: false };
            return Delivery::LeftOut;
        }
        inner.queued_events += 1;
        inner.lines.push_back(Waiting::Event(Arc::clone(line)));
        drop(inner);
        self.for_writer.notify_one();
        Delivery::Queued
    }

    /// The snapshot that was asked for; `line` is told how many events were left out.
    pub(super) fn catch_up(&self, line: impl FnOnce(u64) -> Option<Line>) {
        let mut inner = self.inner();
        let Feed::Behind { missed, .. } = inner.feed else { return };
        let Some(line) = line(missed) else { return };
        inner.feed = Feed::Live;
        inner.lines.push_back(Waiting::Other(line));
        drop(inner);
        self.wake();
    }

    pub(super) fn is_subscribed(&self) -> bool {
        self.inner().feed != Feed::Off
    }

    /// Nothing more is read from this client; it is answered and then the connection ends.
    pub(super) fn half_close(&self) {
        let mut inner = self.inner();
        if inner.state == State::Open {
            inner.state = State::HalfOpen;
        }
        drop(inner);
        self.wake();
    }

    /// The last word.
    pub(super) fn close(&self, line: Option<Line>) {
        let mut inner = self.inner();
        if inner.state != State::Closing {
            inner.state = State::Closing;
            inner.lines.extend(line.map(Waiting::Other));
        }
        drop(inner);
        self.wake();
    }

    fn wake(&self) {
        self.for_writer.notify_one();
        self.for_reader.notify_one();
    }

    /// What to do next; waits until there is something.
    pub(super) async fn next(self: &Arc<Self>) -> Step {
        loop {
            if let Some(step) = self.step() {
                return step;
            }
            self.for_writer.notified().await;
        }
    }

    fn step(self: &Arc<Self>) -> Option<Step> {
        let mut inner = self.inner();
        let outgoing =
            |line, is_answer| Some(Step::Write(Outgoing { line, outbox: Arc::clone(self), is_answer }));
        match inner.lines.pop_front() {
            Some(Waiting::Answer(line)) => return outgoing(line, true),
            Some(Waiting::Other(line)) => return outgoing(line, false),
            Some(Waiting::Event(line)) => {
                inner.queued_events -= 1;
                return outgoing(line, false);
            }
            None => {}
        }
        let Inner { unanswered, feed, state, .. } = &mut *inner;
        match state {
            State::Closing => return Some(Step::End),
            State::HalfOpen => return (*unanswered == 0).then_some(Step::End),
            State::Open => {}
        }
        if let Feed::Behind { asked: asked @ false, .. } = feed {
            *asked = true;
            return Some(Step::AskForSnapshot);
        }
        None
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        for waiting in &inner.lines {
            if let Waiting::Answer(line) = waiting {
                self.user_bytes.fetch_sub(line.len(), Ordering::Relaxed);
            }
        }
    }
}
