//! What Shepherd needs of a platform: something that starts programs, ends them with everything that came of them,
//! and says what became of them.
//!
//! A [`Host`] takes orders and never makes anybody wait: each returns at once, and its outcome comes back as a
//! [`HostEvent`] (S13.3b). The engine decides by [`HostCapabilities`], never by platform. Start with [`Host`].
//!
//! What it never does: decide whether something may run, or for how long.

mod event;
mod handle;
mod host;
mod order;

pub use event::{ExitStatus, HostEvent, HostEvents, SpawnFailure};
pub use handle::HostSessionHandle;
pub use host::Host;
pub use order::{SpawnOrder, StopOrder};
pub use shepherd_core::HostCapabilities;
