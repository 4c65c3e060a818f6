//! The capabilities and limitations of this host (S5.1, S13.3).

use std::collections::BTreeSet;
use std::ffi::OsStr;

use shepherd_host_api::HostCapabilities;
use ward_process::{Containment, ContainmentReport, find_program};

use crate::launch_command::{MPV, QEMU};
use crate::options::{LinuxHostOptions, RunAsRoot};
use crate::sway::WindowControl;

/// Returns the present capabilities. Window capabilities exist only while a compositor is connected.
pub(crate) fn capabilities(
    containment: Containment,
    window_control: &WindowControl,
    options: &LinuxHostOptions,
) -> HostCapabilities {
    let windows = window_control.is_connected();
    HostCapabilities {
        // Each kind has a built-in driver. If the program of an entry is missing, its start reports that.
        spawn_kinds_supported: ["process", "vm", "media", "custom"].map(str::to_owned).into(),
        can_kill_forcefully: true,
        can_graceful_stop: true,
        can_group_process_tree: containment != Containment::ProcessGroup,
        containment: Some(containment.code().to_owned()),
        can_observe_exit: true,
        can_observe_window_ready: windows,
        can_force_foreground: windows,
        can_force_fullscreen: windows,
        can_lock_to_single_app: false,
        needs_account: rustix::process::geteuid().is_root() && options.as_root == RunAsRoot::Never,
        can_switch_user: rustix::process::geteuid().is_root(),
        // The daemon knows the policy, and reads the accounts again when they change.
        missing_logins: BTreeSet::new(),
    }
}

pub(crate) fn limitations(
    containment: Containment,
    probe: &ContainmentReport,
    options: &LinuxHostOptions,
) -> Vec<String> {
    let mut sentences = Vec::new();
    for offer in probe.offers.iter().take_while(|offer| offer.containment < containment) {
        let reason = offer.missing.as_deref().unwrap_or("it was not selected");
        sentences.push(format!(
            "A {containment} keeps each program and everything it starts together, instead of a {}: {reason}.",
            offer.containment
        ));
    }
    if containment.is_escapable() {
        sentences.push(format!("A program can deliberately escape from a {containment}."));
    }
    match (rustix::process::geteuid().is_root(), options.as_root) {
        (true, RunAsRoot::Never) => {}
        (true, RunAsRoot::WithoutAccount) => sentences.push(
            "Entries without a `user` run as root, and root can escape from every containment. Set `user` for each \
             entry, and start the daemon without `--allow-root`."
                .to_owned(),
        ),
        (false, _) => sentences.push(
            "Programs run as the daemon's own user, so they can interfere with the daemon and with other programs of \
             that user. Run the daemon as root, and set `user` for each entry."
                .to_owned(),
        ),
    }
    for (program, what, package) in [
        (QEMU, "virtual machines of driver `qemu`", "qemu-system-x86"),
        (MPV, "media libraries without a `player`", "mpv"),
    ] {
        if find_program(OsStr::new(program), &options.search_path).is_none() {
            sentences.push(format!("`{program}` is not installed, so {what} can't run. Install {package}."));
        }
    }
    sentences
}
