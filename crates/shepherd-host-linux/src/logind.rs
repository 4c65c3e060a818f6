//! `systemd-logind`, which tells who is logged in to the machine (S19.2).

use std::path::Path;

/// Returns whether logind runs on this machine. It keeps this folder while it runs, as `sd_login_monitor_new(3)` expects.
#[must_use]
pub fn logind_is_running() -> bool {
    Path::new("/run/systemd/seats").is_dir()
}
