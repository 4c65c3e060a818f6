//! What a host reports.

use std::path::PathBuf;

use shepherd_util::SessionId;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::HostSessionHandle;

/// The events of a host, in order. Not bounded: every session has a handful of them, and none may be lost.
pub type HostEvents = UnboundedReceiver<HostEvent>;

/// Something happened to a session's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// It runs.
    Spawned {
        /// Which session.
        session_id: SessionId,
        /// What it takes to find it again.
        handle: HostSessionHandle,
        /// Where its output goes, if it is kept.
        output: Option<PathBuf>,
        /// What of its order could not be kept, in sentences: bounds without a controller, a user that can't be had.
        shortcomings: Vec<String>,
    },
    /// It could not be started. Nothing of it is left.
    SpawnFailed {
        /// Which session.
        session_id: SessionId,
        /// Why.
        failure: SpawnFailure,
    },
    /// An earlier daemon's program was found, and is watched again.
    Reattached {
        /// Which session.
        session_id: SessionId,
        /// What it takes to find it again.
        handle: HostSessionHandle,
    },
    /// There is no such program: it ended while nobody looked, or it never ran.
    Gone {
        /// Which session.
        session_id: SessionId,
    },
    /// It may still run, but can't be taken back yet. The host tries again until it is
    /// [`Reattached`](Self::Reattached) or [`Gone`](Self::Gone), carries out then what was ordered meanwhile, and
    /// starts nothing else before.
    ReattachPending {
        /// Which session.
        session_id: SessionId,
        /// Why, for people.
        detail: String,
    },
    /// It shows its first window.
    WindowReady {
        /// Which session.
        session_id: SessionId,
    },
    /// The last of its processes has ended.
    Exited {
        /// Which session.
        session_id: SessionId,
        /// How its first program ended, where that is known.
        status: ExitStatus,
    },
    /// Something did not go as ordered, but goes on: a process that outlives its kill, a compositor that went away.
    Problem {
        /// Which session, if it is about one.
        session_id: Option<SessionId>,
        /// For people.
        detail: String,
    },
}

impl HostEvent {
    /// Which session it is about, if it is about one.
    #[must_use]
    pub fn session_id(&self) -> Option<&SessionId> {
        match self {
            Self::Spawned { session_id, .. }
            | Self::SpawnFailed { session_id, .. }
            | Self::Reattached { session_id, .. }
            | Self::Gone { session_id }
            | Self::ReattachPending { session_id, .. }
            | Self::WindowReady { session_id }
            | Self::Exited { session_id, .. } => Some(session_id),
            Self::Problem { session_id, .. } => session_id.as_ref(),
        }
    }
}

/// How a program ended. Both are absent where nobody saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitStatus {
    /// Its exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// Why a program could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct SpawnFailure {
    /// Place, fault and cure, for people.
    pub detail: String,
}
