//! Calculates timelines on a thread of its own: weeks of a thousand entries take longer than a session may be late
//! (S13.3b).

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use shepherd_api::{ApiError, CommandReply, Millis};
use shepherd_core::CoreEngine;
use shepherd_ipc::ClientHub;
use shepherd_util::ProfileId;

use crate::service::RequestAddress;

/// The number of queued queries; each holds a copy of the engine's state.
const MAX_PENDING: usize = 16;

/// The number of queued queries of one user, so that no user delays others for long.
const MAX_PENDING_PER_USER: usize = 2;

/// The time after which a refused client may retry.
const RETRY_AFTER: Millis = Millis(1_000);

/// A query for a timeline.
pub(crate) struct TimelineQuery {
    pub(crate) to: RequestAddress,
    /// The user id that the kernel reports.
    pub(crate) uid: u32,
    pub(crate) profile: ProfileId,
    pub(crate) from: Timestamp,
    pub(crate) until: Timestamp,
}

/// The loop's handle to the thread.
pub(crate) struct TimelineThread {
    queries: SyncSender<(TimelineQuery, CoreEngine)>,
    pending: PendingByUser,
}

/// The number of unanswered queries of each user.
type PendingByUser = Arc<Mutex<BTreeMap<u32, usize>>>;

impl TimelineThread {
    /// Starts the thread, which ends with the loop. Nothing waits for it then.
    pub(crate) fn start(clients: ClientHub) -> std::io::Result<Self> {
        let (questions, asked) = sync_channel(MAX_PENDING);
        let waiting = PendingByUser::default();
        let counts = Arc::clone(&waiting);
        std::thread::Builder::new()
            .name("timelines".into())
            .spawn(move || answer_queries(&asked, &counts, &clients))?;
        Ok(Self { queries: questions, pending: waiting })
    }

    /// Queues a query with the current state.
    ///
    /// # Errors
    /// Too many queries are queued.
    pub(crate) fn submit(&self, question: TimelineQuery, engine: &CoreEngine) -> Result<(), ApiError> {
        let uid = question.uid;
        let too_many = || ApiError::rate_limited("Too many timelines are being calculated.", RETRY_AFTER);
        if !reserve_slot(&self.pending, uid) {
            return Err(too_many());
        }
        self.queries.try_send((question, engine.clone())).map_err(|error| {
            release_slot(&self.pending, uid);
            match error {
                TrySendError::Full(_) | TrySendError::Disconnected(_) => too_many(),
            }
        })
    }
}

fn answer_queries(
    asked: &Receiver<(TimelineQuery, CoreEngine)>,
    waiting: &PendingByUser,
    clients: &ClientHub,
) {
    for (TimelineQuery { to, uid, profile, from, until }, engine) in asked {
        let timeline = engine.timeline(&profile, from, until);
        let answer = timeline.map(|timeline| CommandReply::Timeline { timeline }).map_err(Into::into);
        // This comes before the answer, or the client's next query could be refused.
        release_slot(waiting, uid);
        clients.respond(&to.client_id, to.request_id, answer);
    }
}

fn reserve_slot(waiting: &PendingByUser, uid: u32) -> bool {
    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    let count = waiting.entry(uid).or_default();
    let free = *count < MAX_PENDING_PER_USER;
    *count += usize::from(free);
    free
}

fn release_slot(waiting: &PendingByUser, uid: u32) {
    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(count) = waiting.get_mut(&uid) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            waiting.remove(&uid);
        }
    }
}
