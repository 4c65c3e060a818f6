//! The interface between Shepherd and a platform: starting programs, stopping them with all their processes, and
//! reporting what happens to them.
//!
//! A [`HostAdapter`] takes requests and never makes its caller wait: each call returns at once, and its outcome comes
//! back as a [`HostEvent`] (S13.3b). The engine decides by [`HostCapabilities`], never by platform. Start reading at
//! [`HostAdapter`].
//!
//! [`FakeHost`] is a host that follows a script, for tests. [`conformance`] is a test suite that every host has to
//! pass.
//!
//! A host never decides whether something may run, or for how long.

#![warn(missing_docs)]

mod event;
mod handle;
mod host;
mod login;
mod request;

pub mod conformance;
mod fake;

pub use event::{ExitStatus, HostEvent, HostEvents, SpawnFailure};
pub use fake::{FakeHost, FakeHostRequest, FakePlatform, FakeProgram, FakeStart, StopResponse};
pub use handle::HostSessionHandle;
pub use host::HostAdapter;
pub use login::{LoginEvent, LoginEvents, LoginMonitor, LoginStopRequest, LoginTerminal};
pub use request::{HostSpawnRequest, HostStopRequest};
pub use shepherd_core::HostCapabilities;
