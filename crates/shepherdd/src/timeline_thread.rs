//! Calculates timelines on a thread of its own: weeks of a thousand entries take longer than a session may be late
//! (S13.3b).

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use jiff::Timestamp;
use shepherd_api::{ApiError, CommandReply, Millis};
use shepherd_core::CoreEngine;
use shepherd_ipc::ClientHub;
use shepherd_util::ProfileId;

use crate::service::RequestAddress;
use crate::user_slots::UserSlots;

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
    pending: UserSlots,
}

impl TimelineThread {
    /// Starts the thread, which ends with the loop. Nothing waits for it then.
    pub(crate) fn start(clients: ClientHub) -> std::io::Result<Self> {
        let (questions, asked) = sync_channel(MAX_PENDING);
        let pending = UserSlots::new(MAX_PENDING_PER_USER);
        let slots = pending.clone();
        std::thread::Builder::new()
            .name("timelines".into())
            .spawn(move || answer_queries(&asked, &slots, &clients))?;
        Ok(Self { queries: questions, pending })
    }

    /// Queues a query with the current state.
    ///
    /// # Errors
    /// Too many queries are queued.
    pub(crate) fn submit(&self, question: TimelineQuery, engine: &CoreEngine) -> Result<(), ApiError> {
        let uid = question.uid;
        let too_many = || ApiError::rate_limited("Too many timelines are being calculated.", RETRY_AFTER);
        if !self.pending.reserve(uid) {
            return Err(too_many());
        }
        self.queries.try_send((question, engine.clone())).map_err(|error| {
            self.pending.release(uid);
            match error {
                TrySendError::Full(_) | TrySendError::Disconnected(_) => too_many(),
            }
        })
    }
}

fn answer_queries(asked: &Receiver<(TimelineQuery, CoreEngine)>, slots: &UserSlots, clients: &ClientHub) {
    for (TimelineQuery { to, uid, profile, from, until }, engine) in asked {
        let timeline = engine.timeline(&profile, from, until);
        let answer = timeline.map(|timeline| CommandReply::Timeline { timeline }).map_err(Into::into);
        // This comes before the answer, or the client's next query could be refused.
        slots.release(uid);
        clients.respond(&to.client_id, to.request_id, answer);
    }
}
