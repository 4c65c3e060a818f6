//! Shepherd on Linux: runs entries as process trees, and stops a tree with all its processes.
//!
//! [`LinuxHost`] is a [`HostAdapter`](shepherd_host_api::HostAdapter) on `ward-process`. `launch_command` turns an
//! entry into a command line and into the methods that stop it (`stop_method`). Each start has its own thread
//! (`start_job`). One thread watches and stops all sessions (`worker`); it sleeps unless something happens. Another
//! thread cleans up after sessions (`cleanup`), so that neither a slow disk nor a stubborn program delays a kill. A
//! further thread handles windows if the policy names a compositor (`sway`). Start reading at `host.rs`.
//!
//! This crate never decides whether something may run, never starts a shell, never passes on the daemon's whole
//! environment, and never stops anything by its name.

mod host;
mod options;

mod launch_command;
mod launch_error;

mod environment;
mod user;

mod access_list;
mod background_thread;
mod conflicting_program;
mod reattach_job;
mod socket_folder;
mod start_job;
mod start_permission;
mod unresolved;

mod preflight;
mod trial_launch;

mod stop_method;
mod worker;

mod mailbox;

#[cfg(feature = "sway")]
mod sway;
#[cfg(not(feature = "sway"))]
#[path = "no_sway.rs"]
mod sway;

mod logind;

mod cleanup;
mod handle;
mod state_folder;

mod capability;

pub use host::LinuxHost;
pub use logind::{LogindBus, LogindMonitor, logind_is_running};
pub use options::{HostSetupError, LinuxHostOptions, RunAsRoot};
pub use preflight::{MissingRequirement, find_entries_without_account, find_missing_requirements};
pub use ward_process::release_controllers;
