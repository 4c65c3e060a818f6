//! A host without a machine: programs follow a script, and time passes when the test says so.

use std::time::Duration;

use shepherd_core::HostCapabilities;
use shepherd_core::policy::{Display, Policy};
use shepherd_util::SessionId;

use crate::{ExitStatus, Host, HostEvents, HostSessionHandle, SpawnOrder, StopOrder};

mod program;
mod world;

pub use world::FakeWorld;

/// What a program of a [`FakeWorld`] does. The default starts at once, shows no window, runs for ever, and ends when
/// it is asked to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FakeProgram {
    /// How it starts.
    pub start: FakeStart,
    /// It shows its first window so long after its start.
    pub window: Option<Duration>,
    /// It ends by itself, so long after its start.
    pub ends: Option<(Duration, ExitStatus)>,
    /// What it does when it is asked to end.
    pub when_asked: WhenAsked,
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
pub enum WhenAsked {
    /// It ends.
    #[default]
    Ends,
    /// It goes on until it is killed.
    Ignores,
}

/// An order that a [`FakeHost`] was given.
#[derive(Clone, Debug, PartialEq)]
pub enum FakeOrder {
    /// To start something.
    Spawn(Box<SpawnOrder>),
    /// To end something.
    Stop(StopOrder),
    /// To take something back.
    Reattach {
        /// Which session.
        session_id: SessionId,
        /// By what.
        handle: Option<HostSessionHandle>,
    },
    /// To show something.
    Show {
        /// Which session.
        session_id: SessionId,
        /// How.
        display: Display,
    },
    /// Another policy applies.
    PolicyChanged,
}

/// A host in a [`FakeWorld`].
#[derive(Debug)]
pub struct FakeHost {
    world: FakeWorld,
    capabilities: HostCapabilities,
    limitations: Vec<String>,
}

impl Default for FakeHost {
    /// In a world of its own.
    fn default() -> Self {
        FakeWorld::default().host()
    }
}

impl FakeHost {
    fn new(world: FakeWorld) -> Self {
        Self { world, capabilities: HostCapabilities::everything(), limitations: Vec::new() }
    }

    /// The world that it is in.
    #[must_use]
    pub fn world(&self) -> FakeWorld {
        self.world.clone()
    }

    /// The same host, but it can do only this.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: HostCapabilities, limitations: Vec<String>) -> Self {
        self.capabilities = capabilities;
        self.limitations = limitations;
        self
    }

    fn note(&self, order: FakeOrder) {
        self.world.state().orders.push(order);
    }
}

impl Host for FakeHost {
    fn capabilities(&self) -> HostCapabilities {
        self.capabilities.clone()
    }

    fn limitations(&self) -> Vec<String> {
        self.limitations.clone()
    }

    fn subscribe(&mut self) -> HostEvents {
        self.world.state().subscribe()
    }

    fn policy_changed(&mut self, _policy: &Policy) {
        self.note(FakeOrder::PolicyChanged);
    }

    fn spawn(&mut self, order: SpawnOrder) {
        self.note(FakeOrder::Spawn(Box::new(order.clone())));
        self.world.state().spawn(&order);
    }

    fn stop(&mut self, order: StopOrder) {
        self.note(FakeOrder::Stop(order.clone()));
        self.world.state().stop(&order);
    }

    fn reattach(&mut self, session_id: &SessionId, handle: Option<&HostSessionHandle>) {
        let order = FakeOrder::Reattach { session_id: session_id.clone(), handle: handle.cloned() };
        self.note(order);
        self.world.state().reattach(session_id);
    }

    fn earlier_sessions(&self) -> Vec<SessionId> {
        self.world.state().programs.keys().cloned().collect()
    }

    fn show(&mut self, session_id: &SessionId, display: Display) {
        self.note(FakeOrder::Show { session_id: session_id.clone(), display });
    }
}
