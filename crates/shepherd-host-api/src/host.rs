//! The trait that a platform implements (S5.3).

use shepherd_core::policy::WindowDisplay;
use shepherd_core::{HostCapabilities, policy::Policy};
use shepherd_util::SessionId;

use crate::{HostEvents, HostSessionHandle, HostSpawnRequest, HostStopRequest};

/// A platform.
///
/// No method waits for a program, a disk or a compositor: each takes an order and returns, and what came of it is an
/// event. Events of one session come in order, and nothing comes after its [`Exited`](crate::HostEvent::Exited),
/// [`SpawnFailed`](crate::HostEvent::SpawnFailed) or [`Gone`](crate::HostEvent::Gone).
pub trait HostAdapter {
    /// What this host can do, as it found out when it was made (S5.1).
    fn capabilities(&self) -> HostCapabilities;

    /// What this host can't do, in sentences for people (S13.3). Empty if it lacks nothing.
    fn limitations(&self) -> Vec<String>;

    /// Where events come out. There is one stream; a second call ends the first.
    fn subscribe(&mut self) -> HostEvents;

    /// Another policy applies: libraries, drivers and the compositor are those of this one from now on. What runs
    /// goes on as it was ordered.
    fn apply_policy(&mut self, policy: &Policy);

    /// Starts a program. [`Spawned`](crate::HostEvent::Spawned) or
    /// [`SpawnFailed`](crate::HostEvent::SpawnFailed) follows.
    ///
    /// What is needed to find the program again, as long as this machine is not started anew, is written down before it
    /// runs its first instruction.
    fn spawn(&mut self, order: HostSpawnRequest);

    /// Ends a program and everything that came of it. [`Exited`](crate::HostEvent::Exited) follows when the whole
    /// tree is gone. A second order can only be stricter than the first. A session that is still being started is
    /// ended as soon as it is there. One that the host does not know is [`Gone`](crate::HostEvent::Gone).
    fn stop(&mut self, order: HostStopRequest);

    /// Takes back a program that an earlier daemon started (S9.1). Without a handle the host looks for what it wrote
    /// down itself before the start. [`Reattached`](crate::HostEvent::Reattached) or
    /// [`Gone`](crate::HostEvent::Gone) follows, possibly long after [`ReattachPending`](crate::HostEvent::InDoubt).
    fn reattach(&mut self, session_id: &SessionId, handle: Option<&HostSessionHandle>);

    /// Sessions of which this host has something written down. Asked before anything is started, these are what an
    /// earlier daemon left: whoever finds one here that it does not know takes it back and ends it.
    fn recorded_sessions(&self) -> Vec<SessionId> {
        Vec::new()
    }

    /// Shows the window of a session, where the host can.
    fn show_window(&mut self, session_id: &SessionId, display: WindowDisplay);
}
