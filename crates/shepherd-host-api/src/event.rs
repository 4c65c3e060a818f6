//! The events that a host reports.

use std::path::PathBuf;

use shepherd_util::SessionId;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::HostSessionHandle;

/// The stream of a host's events, in order. It is not bounded: a session has only a few events, and none may be lost.
pub type HostEvents = UnboundedReceiver<HostEvent>;

/// A change in the state of a session's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// The program is running.
    Spawned {
        /// The session of the program.
        session_id: SessionId,
        /// The handle by which a later daemon finds the program.
        handle: HostSessionHandle,
        /// The file that the output goes to, if it is kept.
        output: Option<PathBuf>,
        /// The limits and settings of the request that this machine can't enforce, in sentences.
        shortcomings: Vec<String>,
    },
    /// The program could not be started. No process of it is left.
    SpawnFailed {
        /// The session of the program.
        session_id: SessionId,
        /// The reason, for people.
        failure: SpawnFailure,
    },
    /// The program of an earlier daemon was found, and is watched again.
    Reattached {
        /// The session of the program.
        session_id: SessionId,
        /// The handle by which a later daemon finds the program.
        handle: HostSessionHandle,
    },
    /// The program doesn't run: it ended while no daemon was watching, or never started.
    Gone {
        /// The session of the program.
        session_id: SessionId,
    },
    /// The program may still run, but can't be reattached yet. The host tries again until the program is
    /// [`Reattached`](Self::Reattached) or [`Gone`](Self::Gone), and then carries out the requests of the meantime. It
    /// starts no other program before.
    ReattachPending {
        /// The session of the program.
        session_id: SessionId,
        /// The reason, for people.
        detail: String,
    },
    /// The program shows its first window.
    WindowReady {
        /// The session of the program.
        session_id: SessionId,
    },
    /// The last process of the program has ended.
    Exited {
        /// The session of the program.
        session_id: SessionId,
        /// The exit status of the first process, as far as it is known.
        status: ExitStatus,
    },
    /// A problem that ends no session: for example a process that survives its kill, or a compositor that went away.
    Problem {
        /// The session that has the problem, unless it concerns all.
        session_id: Option<SessionId>,
        /// A description for people.
        detail: String,
    },
}

impl HostEvent {
    /// Returns the session that the event is about, if it is about one.
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

/// The exit status of a program. Both fields are `None` if no daemon was watching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitStatus {
    /// The exit code, if the program exited.
    pub code: Option<i32>,
    /// The signal that ended the program, if one did.
    pub signal: Option<i32>,
}

/// The reason why a program could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct SpawnFailure {
    /// The place, the fault and the cure, for people.
    pub detail: String,
}
