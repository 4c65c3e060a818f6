//! Shepherd on Linux: entries become process trees that end when they are told to, whole.
//!
//! [`LinuxHost`] is a [`Host`](shepherd_host_api::Host) on `ward-process`. A *recipe* turns an entry into a command
//! line and into the ways to ask it to end (`launch_command`, `stop_method`). Starting happens on a thread of its own (`start_job`),
//! watching and ending on one thread for all sessions (`worker`) that sleeps unless something happens, and tidying up
//! on a third (`cleanup`), so that neither a slow disk nor a stubborn program delays a kill. Windows are a fourth's
//! (`sway`), if the policy names a compositor. Start with `host.rs`.
//!
//! What it never does: decide whether something may run, start a shell, hand the daemon's own environment on, or end
//! anything by its name.

mod host;
mod options;

mod launch_command;

mod environment;
mod user;

mod background_thread;
mod conflicting_program;
mod reattach_job;
mod socket_folder;
mod start_job;
mod unresolved;

mod preflight;

mod stop_method;
mod worker;

mod mailbox;

#[cfg(feature = "sway")]
mod sway;
#[cfg(not(feature = "sway"))]
#[path = "no_sway.rs"]
mod sway;

mod cleanup;
mod handle;
mod state_folder;

mod capability;

pub use host::LinuxHost;
pub use options::{HostSetupError, LinuxHostOptions, RunAsRoot};
pub use preflight::{MissingRequirement, find_missing_requirements};
