//! Tests of the real daemon with real programs and a real socket.

#[cfg(test)]
mod bypass;
#[cfg(test)]
mod client_display;
#[cfg(test)]
mod clock;
#[cfg(test)]
mod clock_set;
#[cfg(test)]
mod consecutive_sessions;
#[cfg(test)]
mod crash_recovery;
#[cfg(test)]
mod deadlines;
#[cfg(test)]
mod desktop_notifications;
#[cfg(test)]
mod disk_failures;
#[cfg(test)]
mod documentation;
#[cfg(test)]
mod grants_and_requests;
#[cfg(test)]
mod repeated_restarts;
#[cfg(test)]
mod single_instance;
// The guest for QEMU is shared with the tests of the host.
#[cfg(test)]
#[path = "../../../shepherd-host-linux/tests/it/guest.rs"]
mod guest;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod logins;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod long_lists;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod misbehaving_clients;
#[cfg(test)]
mod new_logins;
#[cfg(test)]
mod packaging_scripts;
#[cfg(test)]
mod policy_reload;
#[cfg(test)]
mod process_containment;
#[cfg(test)]
mod roles;
#[cfg(test)]
mod several_sessions;
#[cfg(test)]
mod shutdown;
#[cfg(test)]
mod smoke;
#[cfg(test)]
mod sway;
#[cfg(test)]
mod systemd_units;
#[cfg(test)]
mod unrecorded_commands;
