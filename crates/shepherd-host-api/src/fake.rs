//! A host without a machine: programs follow a script, and time passes when the test says so.

use std::time::Duration;

use shepherd_core::HostCapabilities;
use shepherd_core::policy::{Policy, WindowDisplay};
use shepherd_util::SessionId;

use crate::{ExitStatus, HostAdapter, HostEvents, HostSessionHandle, HostSpawnRequest, HostStopRequest};

mod platform;
mod program;

pub use platform::FakePlatform;

/// What a program of a [`FakePlatform`] does. The default starts at once, shows no window, runs for ever, and ends when
/// it is asked to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FakeProgram {
    /// How it starts.
    pub start: FakeStart,
    /// It shows its first window so long after its start.
    pub window: Option<Duration>,
    /// It ends by itself, so long after its start.
    pub exits: Option<(Duration, ExitStatus)>,
    /// What it does when it is asked to end.
    pub stop_response: StopResponse,
}

/// How a program starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FakeStart {
    /// At once.
    #[default]
    AtOnce,
    /// So long after the order.
    After(Duration),
    /// Not at all, and why.
    Fails {
        /// Place, fault and cure.
        detail: String,
    },
}

/// What a program does when it is asked to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopResponse {
    /// It ends.
    #[default]
    Ends,
    /// It goes on until it is killed.
    Ignores,
}

/// An order that a [`FakeHost`] was given.
#[derive(Clone, Debug, PartialEq)]
pub enum FakeHostRequest {
    /// To start something.
    Spawn(Box<HostSpawnRequest>),
    /// To end something.
    Stop(HostStopRequest),
    /// To take something back.
    Reattach {
        /// Which session.
        session_id: SessionId,
        /// By what.
        handle: Option<HostSessionHandle>,
    },
    /// To show something.
    ShowWindow {
        /// Which session.
        session_id: SessionId,
        /// How.
        display: WindowDisplay,
    },
    /// Another policy applies.
    ApplyPolicy,
}

/// A host in a [`FakePlatform`].
#[derive(Debug)]
pub struct FakeHost {
    platform: FakePlatform,
    capabilities: HostCapabilities,
    limitations: Vec<String>,
}

impl Default for FakeHost {
    /// In a world of its own.
    fn default() -> Self {
        FakePlatform::default().host()
    }
}

impl FakeHost {
    fn new(world: FakePlatform) -> Self {
        Self { platform: world, capabilities: HostCapabilities::all_supported(), limitations: Vec::new() }
    }

    /// The world that it is in.
    #[must_use]
    pub fn platform(&self) -> FakePlatform {
        self.platform.clone()
    }

    /// The same host, but it can do only this.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: HostCapabilities, limitations: Vec<String>) -> Self {
        self.capabilities = capabilities;
        self.limitations = limitations;
        self
    }

    fn record_request(&self, order: FakeHostRequest) {
        self.platform.lock_state().requests.push(order);
    }
}

impl HostAdapter for FakeHost {
    fn capabilities(&self) -> HostCapabilities {
        self.capabilities.clone()
    }

    fn limitations(&self) -> Vec<String> {
        self.limitations.clone()
    }

    fn subscribe(&mut self) -> HostEvents {
        self.platform.lock_state().subscribe()
    }

    fn apply_policy(&mut self, _policy: &Policy) {
        self.record_request(FakeHostRequest::ApplyPolicy);
    }

    fn spawn(&mut self, order: HostSpawnRequest) {
        self.record_request(FakeHostRequest::Spawn(Box::new(order.clone())));
        self.platform.lock_state().spawn(&order);
    }

    fn stop(&mut self, order: HostStopRequest) {
        self.record_request(FakeHostRequest::Stop(order.clone()));
        self.platform.lock_state().stop(&order);
    }

    fn reattach(&mut self, session_id: &SessionId, handle: Option<&HostSessionHandle>) {
        let order = FakeHostRequest::Reattach { session_id: session_id.clone(), handle: handle.cloned() };
        self.record_request(order);
        self.platform.lock_state().reattach(session_id);
    }

    fn recorded_sessions(&self) -> Vec<SessionId> {
        self.platform.lock_state().programs.keys().cloned().collect()
    }

    fn show_window(&mut self, session_id: &SessionId, display: WindowDisplay) {
        self.record_request(FakeHostRequest::ShowWindow { session_id: session_id.clone(), display });
    }
}
