//! Tests of the Linux host with real programs, in every containment that this machine supports.

#[cfg(test)]
mod client_display;
#[cfg(test)]
mod conformance;
#[cfg(test)]
#[path = "../../../ward-process/tests/it/containments.rs"]
mod containments;
#[cfg(test)]
mod escape;
#[cfg(test)]
mod escapees;
#[cfg(test)]
mod guest;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod idle;
#[cfg(test)]
mod launch_commands;
#[cfg(test)]
mod many_sessions;
#[cfg(test)]
mod media;
#[cfg(test)]
mod prepared_starts;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod restart;
#[cfg(test)]
#[cfg(feature = "sway")]
mod sway;
#[cfg(test)]
#[cfg(feature = "sway")]
mod sway_children;
#[cfg(test)]
#[cfg(feature = "sway")]
mod sway_desktop;
#[cfg(test)]
#[cfg(feature = "sway")]
mod sway_restart;
#[cfg(test)]
#[cfg(feature = "sway")]
mod sway_sessions;
#[cfg(test)]
#[cfg(feature = "sway")]
mod sway_users;
#[cfg(test)]
#[cfg(feature = "sway")]
mod sway_x11;
#[cfg(test)]
mod trial_launch;
#[cfg(test)]
mod users;
#[cfg(test)]
mod virtual_machines;
