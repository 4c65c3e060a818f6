//! Answers questions on threads of their own if their answers grow with the policy: lists and timelines of thousands of
//! entries take longer than a session may be late (S13.3b).

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use jiff::Timestamp;
use shepherd_api::{ApiError, CommandReply, Millis};
use shepherd_core::CoreEngine;
use shepherd_ipc::ClientHub;
use shepherd_util::{ClockReading, ProfileId};

use crate::service::RequestAddress;
use crate::user_slots::UserSlots;

/// The time after which a refused client may retry.
const RETRY_AFTER: Millis = Millis(1_000);

/// The name of a query thread, and the limits of its queue.
pub(crate) struct QueryThreadOptions {
    name: &'static str,
    /// The number of queued queries; each holds a copy of the engine's state.
    max_pending: usize,
    /// The number of queued queries of one user, so that no user delays others for long.
    max_pending_per_user: usize,
    refusal: &'static str,
}

/// Weeks of a thousand entries take seconds.
pub(crate) const TIMELINES: QueryThreadOptions = QueryThreadOptions {
    name: "timelines",
    max_pending: 16,
    max_pending_per_user: 2,
    refusal: "Too many timelines are being calculated.",
};

/// Lists of ten thousand entries take a few hundredths of a second. A user gets as many as a few clients with all the
/// requests that a connection may have open.
pub(crate) const LISTINGS: QueryThreadOptions = QueryThreadOptions {
    name: "listings",
    max_pending: 64,
    max_pending_per_user: 16,
    refusal: "Too many lists are being made.",
};

/// A question about the engine's state.
pub(crate) struct EngineQuery {
    pub(crate) to: RequestAddress,
    /// The user id that the kernel reports.
    pub(crate) uid: u32,
    pub(crate) profile: ProfileId,
    pub(crate) question: EngineQuestion,
}

pub(crate) enum EngineQuestion {
    /// The entries now, or at another time.
    Entries {
        now: ClockReading,
        at: Option<Timestamp>,
    },
    Timeline {
        from: Timestamp,
        until: Timestamp,
    },
}

impl EngineQuestion {
    /// Answers the question. Only the time that this takes depends on the thread.
    pub(crate) fn answer(self, engine: &CoreEngine, profile: ProfileId) -> Result<CommandReply, ApiError> {
        match self {
            Self::Entries { now, at } => {
                let entries = match at {
                    Some(at) => engine.list_entries_at(&profile, at),
                    None => engine.list_entries_for(&profile, now),
                };
                Ok(CommandReply::Entries { at: at.unwrap_or(now.wall), profile, entries })
            }
            Self::Timeline { from, until } => {
                let timeline = engine.timeline(&profile, from, until);
                timeline.map(|timeline| CommandReply::Timeline { timeline }).map_err(Into::into)
            }
        }
    }
}

/// The loop's handle to a query thread.
pub(crate) struct QueryThread {
    queries: SyncSender<(EngineQuery, CoreEngine)>,
    pending: UserSlots,
    refusal: &'static str,
}

impl QueryThread {
    /// Starts the thread, which ends with the loop. Nothing waits for it then.
    pub(crate) fn start(options: &QueryThreadOptions, clients: ClientHub) -> std::io::Result<Self> {
        let (queries, received) = sync_channel(options.max_pending);
        let pending = UserSlots::new(options.max_pending_per_user);
        let slots = pending.clone();
        std::thread::Builder::new()
            .name(options.name.to_owned())
            .spawn(move || answer_queries(&received, &slots, &clients))?;
        Ok(Self { queries, pending, refusal: options.refusal })
    }

    /// Queues a query with the current state, whose copy shares the policy and the usage.
    ///
    /// # Errors
    /// Too many queries are queued.
    pub(crate) fn submit(&self, query: EngineQuery, engine: &CoreEngine) -> Result<(), ApiError> {
        let uid = query.uid;
        let too_many = || ApiError::rate_limited(self.refusal, RETRY_AFTER);
        if !self.pending.reserve(uid) {
            return Err(too_many());
        }
        self.queries.try_send((query, engine.clone())).map_err(|error| {
            self.pending.release(uid);
            match error {
                TrySendError::Full(_) | TrySendError::Disconnected(_) => too_many(),
            }
        })
    }
}

fn answer_queries(received: &Receiver<(EngineQuery, CoreEngine)>, slots: &UserSlots, clients: &ClientHub) {
    for (EngineQuery { to, uid, profile, question }, engine) in received {
        let answer = question.answer(&engine, profile);
        // The loop copies what it changes while a query still shares it.
        drop(engine);
        // This comes before the answer, or the client's next query could be refused.
        slots.release(uid);
        clients.respond(&to.client_id, to.request_id, answer);
    }
}
