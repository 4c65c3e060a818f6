//! The trait that a platform implements (S5.3).

use std::path::PathBuf;

use shepherd_core::policy::WindowDisplay;
use shepherd_core::{HostCapabilities, policy::Policy};
use shepherd_util::SessionId;

use crate::{HostEvents, HostSessionHandle, HostSpawnRequest, HostStopRequest};

/// A platform on which Shepherd runs programs.
///
/// No method waits for a program, a disk or a compositor: each takes a request and returns, and the outcome is an
/// event. Events of one session come in order. The last event of a session is [`Exited`](crate::HostEvent::Exited),
/// [`SpawnFailed`](crate::HostEvent::SpawnFailed) or [`Gone`](crate::HostEvent::Gone).
pub trait HostAdapter {
    /// Returns what this host can do (S5.1).
    fn capabilities(&self) -> HostCapabilities;

    /// Returns what this host can't do, in sentences for people (S13.3). Empty if the host lacks nothing.
    fn limitations(&self) -> Vec<String>;

    /// Returns the reason why no program can be started here, if a trial at start-up failed.
    fn launch_fault(&self) -> Option<String> {
        None
    }

    /// Returns the stream of events. There is only one stream: a second call ends the first stream.
    fn subscribe(&mut self) -> HostEvents;

    /// Uses the libraries, drivers and compositor of this policy from now on. Running programs are not affected.
    fn apply_policy(&mut self, policy: &Policy);

    /// Prepares the start of a program that isn't permitted to run yet. No instruction of it runs, and there is no event,
    /// before [`spawn`](Self::spawn), which has less left to do then. If the permission is refused,
    /// [`abandon`](Self::abandon) undoes the preparations.
    fn prepare(&mut self, request: HostSpawnRequest) {
        let _ = request;
    }

    /// Undoes the preparations for a session, if there are any and `spawn` hasn't used them. There is no event.
    fn abandon(&mut self, session_id: &SessionId) {
        let _ = session_id;
    }

    /// Starts a program. [`Spawned`](crate::HostEvent::Spawned) or
    /// [`SpawnFailed`](crate::HostEvent::SpawnFailed) follows.
    ///
    /// The host records how to find the program again before the program runs its first instruction. The record is
    /// valid until the machine restarts.
    fn spawn(&mut self, request: HostSpawnRequest);

    /// Stops a program and all processes that it started. [`Exited`](crate::HostEvent::Exited) follows when the whole
    /// tree is gone. A second request can only be stricter than the first. A session that is still being started is
    /// stopped as soon as it runs. A session that the host doesn't know is [`Gone`](crate::HostEvent::Gone).
    fn stop(&mut self, request: HostStopRequest);

    /// Reattaches a program that an earlier daemon started (S9.1). Without a handle, the host looks for its own record
    /// of the program. [`Reattached`](crate::HostEvent::Reattached) or [`Gone`](crate::HostEvent::Gone) follows,
    /// possibly long after a [`ReattachPending`](crate::HostEvent::ReattachPending).
    fn reattach(&mut self, session_id: &SessionId, handle: Option<&HostSessionHandle>);

    /// Returns the sessions of which this host has a record. Before the first start, these are the sessions that an
    /// earlier daemon left. The daemon reattaches and stops those that it doesn't know.
    fn recorded_sessions(&self) -> Vec<SessionId> {
        Vec::new()
    }

    /// Returns the folder in which the output of a session is the file `<session id>.log`; `None` if the host keeps no
    /// output.
    fn output_folder(&self) -> Option<PathBuf> {
        None
    }

    /// Shows the window of a session in this way, if the host can.
    fn show_window(&mut self, session_id: &SessionId, display: WindowDisplay);
}
