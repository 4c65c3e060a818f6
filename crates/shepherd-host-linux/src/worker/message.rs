//! The messages that the worker receives, and the channels on which it answers.

use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::time::Instant;

use shepherd_host_api::{HostEvent, HostStopRequest, SpawnFailure};
use shepherd_util::SessionId;
use tokio::sync::mpsc::UnboundedSender;

use super::RunningSession;
use crate::cleanup::SessionRemains;
use crate::mailbox::{MailboxReceiver, MailboxSender};
use crate::reattach_job::ReattachJob;
use crate::sway::WindowNotifier;

pub(crate) enum WorkerMessage {
    /// A thread is about to start or reattach the session.
    SessionStarting(SessionId),
    Started(SessionId, Result<Box<StartedSession>, SpawnFailure>),
    /// A prepared start was taken back, and nothing of it is left.
    Abandoned(SessionId),
    Reattached(SessionId, Result<Box<StartedSession>, ReattachFailure>),
    /// A session is to be stopped, by an order that was given at this moment.
    Stop(HostStopRequest, Instant),
    /// The request of this rung of the stop ladder could not be made.
    StopRequestFailed(SessionId, usize),
    /// The session shows its first window.
    #[cfg_attr(not(feature = "sway"), expect(dead_code, reason = "only sent by the compositor's thread"))]
    WindowReady(SessionId),
    /// A problem that concerns no session in particular.
    #[cfg_attr(not(feature = "sway"), expect(dead_code, reason = "only sent by the compositor's thread"))]
    Problem(String),
    /// Events go to this subscriber from now on.
    Subscribe(UnboundedSender<HostEvent>),
    /// The host is being dropped. Running programs go on.
    Shutdown,
}

/// A running program, and the event that announces it.
pub(crate) struct StartedSession {
    pub(crate) running: RunningSession,
    pub(crate) event: HostEvent,
}

pub(crate) enum ReattachFailure {
    /// The program doesn't run any more.
    Gone {
        /// The folder of its control socket.
        sockets: Option<PathBuf>,
    },
    /// The program may still run, so its handle file is kept.
    Uncertain { detail: String, retry: Box<ReattachJob> },
}

pub(crate) struct WorkerChannels {
    pub(crate) inbox: MailboxReceiver<WorkerMessage>,
    /// The sender of `inbox`, for threads that work for the worker.
    pub(crate) own_mailbox: MailboxSender<WorkerMessage>,
    pub(crate) window_notifier: WindowNotifier,
    pub(crate) events: UnboundedSender<HostEvent>,
    pub(crate) cleanup: Sender<SessionRemains>,
}
