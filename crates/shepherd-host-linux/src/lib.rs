//! Shepherd on Linux: entries become process trees that end when they are told to, whole.
//!
//! [`LinuxHost`] is a [`Host`](shepherd_host_api::Host) on `ward-process`. A *recipe* turns an entry into a command
//! line and into the ways to ask it to end (`recipe`, `ask`). Starting happens on a thread of its own (`start`),
//! watching and ending on one thread for all sessions (`worker`) that sleeps unless something happens, and tidying up
//! on a third (`janitor`), so that neither a slow disk nor a stubborn program delays a kill. Windows are a fourth's
//! (`sway`), if the policy names a compositor. Start with `host.rs`.
//!
//! What it never does: decide whether something may run, start a shell, hand the daemon's own environment on, or end
//! anything by its name.

mod host;
mod options;

mod recipe;

mod environment;
mod user;

mod apart;
mod doubts;
mod rival;
mod socket_folder;
mod start;
mod take_back;

mod rehearsal;

mod ask;
mod descent;
mod worker;

mod line;

#[cfg(feature = "sway")]
mod sway;
#[cfg(not(feature = "sway"))]
#[path = "no_sway.rs"]
mod sway;

mod folder;
mod handle;
mod janitor;

mod capability;

pub use host::LinuxHost;
pub use options::{AsRoot, HostError, LinuxHostOptions};
pub use rehearsal::{Missing, rehearse};
