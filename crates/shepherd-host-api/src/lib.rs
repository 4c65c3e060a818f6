//! What Shepherd needs of a platform: something that starts programs, ends them with everything that came of them,
//! and says what became of them.
//!
//! A [`Host`] takes orders and never makes anybody wait: each returns at once, and its outcome comes back as a
//! [`HostEvent`] (S13.3b). The engine decides by [`HostCapabilities`], never by platform. Start with [`Host`].
//!
//! [`FakeHost`] is one that follows a script, for the tests of whoever uses a host; [`conformance`] is what every
//! host has to hold to, and can be run against any.
//!
//! What it never does: decide whether something may run, or for how long.

#![warn(missing_docs)]

mod event;
mod handle;
mod host;
mod request;

pub mod conformance;
mod fake;

pub use event::{ExitStatus, HostEvent, HostEvents, SpawnFailure};
pub use fake::{FakeHost, FakeHostRequest, FakePlatform, FakeProgram, FakeStart, StopResponse};
pub use handle::HostSessionHandle;
pub use host::HostAdapter;
pub use request::{HostSpawnRequest, HostStopRequest};
pub use shepherd_core::HostCapabilities;
