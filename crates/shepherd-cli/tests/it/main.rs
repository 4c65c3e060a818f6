//! Tests of the `shepherd` program as users and scripts run it.

#[cfg(test)]
mod bedtime;
#[cfg(test)]
mod daemon_commands;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod desktop_display;
#[cfg(test)]
mod documentation;
#[cfg(test)]
mod extra_time;
#[cfg(test)]
mod live_view;
#[cfg(test)]
mod offline_commands;
#[cfg(test)]
mod pam_check;
#[cfg(test)]
mod pin_and_refusals;
#[cfg(test)]
mod several_sessions;
#[cfg(test)]
mod support;
