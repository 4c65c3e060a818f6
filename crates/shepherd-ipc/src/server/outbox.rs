//! The queue of one client: replies, and events up to a limit (S11.2).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// A line to send, including its end. An event is serialised once, however many subscribers there are.
pub(super) type EncodedLine = Arc<[u8]>;

#[derive(Debug)]
pub(super) struct ClientOutbox {
    inner: Mutex<OutboxState>,
    writer_notify: Notify,
    reader_notify: Notify,
    /// The queued reply bytes for all connections of this user.
    user_bytes: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct OutboxState {
    lines: VecDeque<QueuedLine>,
    queued_events: usize,
    /// The number of requests that were read and not answered.
    unanswered: usize,
    feed: EventFeed,
    phase: OutboxPhase,
}

#[derive(Debug)]
enum QueuedLine {
    Reply(EncodedLine),
    Event(EncodedLine),
    /// A message of the daemon itself, such as the greeting.
    Other(EncodedLine),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventFeed {
    Off,
    Live,
    /// Events are dropped until a new snapshot is queued.
    Behind {
        missed: u64,
        snapshot_requested: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutboxPhase {
    Open,
    /// The client sends nothing more, but its requests are still answered.
    HalfOpen,
    /// The queue is written to its end, then the connection closes.
    Closing,
}

/// The next action of the writer.
#[derive(Debug)]
pub(super) enum WriterStep {
    Write(OutgoingLine),
    /// The client has read everything that was queued: request a new snapshot for it.
    RequestSnapshot,
    End,
}

/// A line that is being written; dropping it means that it was sent, or never will be.
#[derive(Debug)]
pub(super) struct OutgoingLine {
    pub(super) line: EncodedLine,
    outbox: Arc<ClientOutbox>,
    is_reply: bool,
}

impl Drop for OutgoingLine {
    fn drop(&mut self) {
        if self.is_reply {
            self.outbox.user_bytes.fetch_sub(self.line.len(), Ordering::Relaxed);
            let mut inner = self.outbox.lock_state();
            inner.unanswered = inner.unanswered.saturating_sub(1);
            drop(inner);
            self.outbox.reader_notify.notify_one();
        }
    }
}

/// The result of offering an event to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventDelivery {
    Queued,
    Dropped,
    NotSubscribed,
}

impl ClientOutbox {
    pub(super) fn new(user_bytes: Arc<AtomicUsize>) -> Self {
        let inner = OutboxState {
            lines: VecDeque::new(),
            queued_events: 0,
            unanswered: 0,
            feed: EventFeed::Off,
            phase: OutboxPhase::Open,
        };
        let (for_writer, for_reader) = (Notify::new(), Notify::new());
        Self { inner: Mutex::new(inner), writer_notify: for_writer, reader_notify: for_reader, user_bytes }
    }

    fn lock_state(&self) -> MutexGuard<'_, OutboxState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until another request may be read, and counts the request. Returns `false` once the connection is closing.
    pub(super) async fn reserve_request(&self, most: usize) -> bool {
        loop {
            {
                let mut inner = self.lock_state();
                if inner.phase != OutboxPhase::Open {
                    return false;
                }
                if inner.unanswered < most {
                    inner.unanswered += 1;
                    return true;
                }
            }
            self.reader_notify.notified().await;
        }
    }

    /// Queues the reply to a counted request. If too many bytes are queued for this user, the connection closes,
    /// because the client asks without reading.
    pub(super) fn push_reply(&self, line: EncodedLine, most_bytes: usize) {
        let before = self.user_bytes.fetch_add(line.len(), Ordering::Relaxed);
        let mut inner = self.lock_state();
        // One reply always fits, however long it is.
        if before > 0 && before.saturating_add(line.len()) > most_bytes {
            inner.phase = OutboxPhase::Closing;
            self.user_bytes.fetch_sub(line.len(), Ordering::Relaxed);
        } else {
            inner.lines.push_back(QueuedLine::Reply(line));
        }
        drop(inner);
        self.wake();
    }

    /// Queues the reply that starts the subscription; events from this moment on follow it.
    pub(super) fn push_subscription_reply(&self, line: EncodedLine, most_bytes: usize) {
        self.lock_state().feed = EventFeed::Live;
        self.push_reply(line, most_bytes);
    }

    pub(super) fn push_line(&self, line: EncodedLine) {
        self.lock_state().lines.push_back(QueuedLine::Other(line));
        self.wake();
    }

    pub(super) fn push_event(&self, line: &EncodedLine, most: usize) -> EventDelivery {
        let mut inner = self.lock_state();
        if inner.phase != OutboxPhase::Open {
            return EventDelivery::NotSubscribed;
        }
        match &mut inner.feed {
            EventFeed::Off => return EventDelivery::NotSubscribed,
            EventFeed::Behind { missed, .. } => {
                *missed += 1;
                return EventDelivery::Dropped;
            }
            EventFeed::Live => {}
        }
        if inner.queued_events >= most {
            inner.feed = EventFeed::Behind { missed: 1, snapshot_requested: false };
            return EventDelivery::Dropped;
        }
        inner.queued_events += 1;
        inner.lines.push_back(QueuedLine::Event(Arc::clone(line)));
        drop(inner);
        self.writer_notify.notify_one();
        EventDelivery::Queued
    }

    /// Queues the requested snapshot; `line` gets the number of dropped events.
    pub(super) fn push_snapshot(&self, line: impl FnOnce(u64) -> Option<EncodedLine>) {
        let mut inner = self.lock_state();
        let EventFeed::Behind { missed, .. } = inner.feed else { return };
        let Some(line) = line(missed) else { return };
        inner.feed = EventFeed::Live;
        inner.lines.push_back(QueuedLine::Other(line));
        drop(inner);
        self.wake();
    }

    pub(super) fn is_subscribed(&self) -> bool {
        self.lock_state().feed != EventFeed::Off
    }

    /// Stops reading from this client; its requests are answered, then the connection closes.
    pub(super) fn half_close(&self) {
        let mut inner = self.lock_state();
        if inner.phase == OutboxPhase::Open {
            inner.phase = OutboxPhase::HalfOpen;
        }
        drop(inner);
        self.wake();
    }

    /// Queues the last message.
    pub(super) fn close(&self, line: Option<EncodedLine>) {
        let mut inner = self.lock_state();
        if inner.phase != OutboxPhase::Closing {
            inner.phase = OutboxPhase::Closing;
            inner.lines.extend(line.map(QueuedLine::Other));
        }
        drop(inner);
        self.wake();
    }

    fn wake(&self) {
        self.writer_notify.notify_one();
        self.reader_notify.notify_one();
    }

    /// Returns the next action, and waits until there is one.
    pub(super) async fn next_step(self: &Arc<Self>) -> WriterStep {
        loop {
            if let Some(step) = self.poll_step() {
                return step;
            }
            self.writer_notify.notified().await;
        }
    }

    fn poll_step(self: &Arc<Self>) -> Option<WriterStep> {
        let mut inner = self.lock_state();
        let outgoing = |line, is_answer| {
            Some(WriterStep::Write(OutgoingLine { line, outbox: Arc::clone(self), is_reply: is_answer }))
        };
        match inner.lines.pop_front() {
            Some(QueuedLine::Reply(line)) => return outgoing(line, true),
            Some(QueuedLine::Other(line)) => return outgoing(line, false),
            Some(QueuedLine::Event(line)) => {
                inner.queued_events -= 1;
                return outgoing(line, false);
            }
            None => {}
        }
        let OutboxState { unanswered, feed, phase: state, .. } = &mut *inner;
        match state {
            OutboxPhase::Closing => return Some(WriterStep::End),
            OutboxPhase::HalfOpen => return (*unanswered == 0).then_some(WriterStep::End),
            OutboxPhase::Open => {}
        }
        if let EventFeed::Behind { snapshot_requested: asked @ false, .. } = feed {
            *asked = true;
            return Some(WriterStep::RequestSnapshot);
        }
        None
    }
}

impl Drop for ClientOutbox {
    fn drop(&mut self) {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        for waiting in &inner.lines {
            if let QueuedLine::Reply(line) = waiting {
                self.user_bytes.fetch_sub(line.len(), Ordering::Relaxed);
            }
        }
    }
}
