//! A host for tests: programs follow a script, and time passes only when the test says so.

use std::time::Duration;

use shepherd_core::HostCapabilities;
use shepherd_core::policy::{Policy, WindowDisplay};
use shepherd_util::SessionId;

use crate::{ExitStatus, HostAdapter, HostEvents, HostSessionHandle, HostSpawnRequest, HostStopRequest};

mod platform;
mod program;

pub use platform::FakePlatform;

/// The script of a program on a [`FakePlatform`]. The default program starts at once, shows no window, runs for ever,
/// and ends when it is asked to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FakeProgram {
    /// The way in which the program starts.
    pub start: FakeStart,
    /// The time from the start to the first window, if the program shows one.
    pub window: Option<Duration>,
    /// The time after which the program ends by itself, and how it ends.
    pub exits: Option<(Duration, ExitStatus)>,
    /// The reaction of the program to a stop request.
    pub stop_response: StopResponse,
}

/// The way in which a fake program starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FakeStart {
    /// The program runs at once.
    #[default]
    AtOnce,
    /// The program runs this long after the request.
    After(Duration),
    /// The program can't be started.
    Fails {
        /// The place, the fault and the cure.
        detail: String,
    },
}

/// The reaction of a fake program to a stop request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopResponse {
    /// The program ends at once.
    #[default]
    Ends,
    /// The program runs until it is killed.
    Ignores,
}

/// A request that was made of a [`FakeHost`].
#[derive(Clone, Debug, PartialEq)]
pub enum FakeHostRequest {
    /// A call of [`HostAdapter::spawn`].
    Spawn(Box<HostSpawnRequest>),
    /// A call of [`HostAdapter::stop`].
    Stop(HostStopRequest),
    /// A call of [`HostAdapter::reattach`].
    Reattach {
        /// The session of the request.
        session_id: SessionId,
        /// The handle that was given, if any.
        handle: Option<HostSessionHandle>,
    },
    /// A call of [`HostAdapter::show_window`].
    ShowWindow {
        /// The session of the request.
        session_id: SessionId,
        /// The way in which the window is shown.
        display: WindowDisplay,
    },
    /// A call of [`HostAdapter::apply_policy`].
    ApplyPolicy,
}

/// A host whose programs run on a [`FakePlatform`].
#[derive(Debug)]
pub struct FakeHost {
    platform: FakePlatform,
    capabilities: HostCapabilities,
    limitations: Vec<String>,
}

impl Default for FakeHost {
    /// Makes a host with its own platform.
    fn default() -> Self {
        FakePlatform::default().host()
    }
}

impl FakeHost {
    fn new(platform: FakePlatform) -> Self {
        Self { platform, capabilities: HostCapabilities::all_supported(), limitations: Vec::new() }
    }

    /// Returns the platform that this host runs programs on.
    #[must_use]
    pub fn platform(&self) -> FakePlatform {
        self.platform.clone()
    }

    /// Returns the same host with these capabilities and limitations.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: HostCapabilities, limitations: Vec<String>) -> Self {
        self.capabilities = capabilities;
        self.limitations = limitations;
        self
    }

    fn record_request(&self, request: FakeHostRequest) {
        self.platform.lock_state().requests.push(request);
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

    fn spawn(&mut self, request: HostSpawnRequest) {
        self.record_request(FakeHostRequest::Spawn(Box::new(request.clone())));
        self.platform.lock_state().spawn(&request);
    }

    fn stop(&mut self, request: HostStopRequest) {
        self.record_request(FakeHostRequest::Stop(request.clone()));
        self.platform.lock_state().stop(&request);
    }

    fn reattach(&mut self, session_id: &SessionId, handle: Option<&HostSessionHandle>) {
        let request = FakeHostRequest::Reattach { session_id: session_id.clone(), handle: handle.cloned() };
        self.record_request(request);
        self.platform.lock_state().reattach(session_id);
    }

    fn recorded_sessions(&self) -> Vec<SessionId> {
        self.platform.lock_state().programs.keys().cloned().collect()
    }

    fn show_window(&mut self, session_id: &SessionId, display: WindowDisplay) {
        self.record_request(FakeHostRequest::ShowWindow { session_id: session_id.clone(), display });
    }
}
