//! What this host can do, what it can't, and why (S5.1, S13.3).

use std::ffi::OsStr;

use shepherd_host_api::HostCapabilities;
use ward_process::{Containment, ContainmentReport, find_program};

use crate::launch_command::{MPV, QEMU};
use crate::options::{LinuxHostOptions, RunAsRoot};
use crate::sway::WindowControl;

/// What holds now. Windows are there only while there is a compositor.
pub(crate) fn capabilities(
    containment: Containment,
    windows: &WindowControl,
    options: &LinuxHostOptions,
) -> HostCapabilities {
    let windows = windows.is_connected();
    HostCapabilities {
        // Each kind has a driver that needs nothing but itself; what a single entry lacks is said at its start.
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
    }
}

pub(crate) fn limitations(
    containment: Containment,
    probe: &ContainmentReport,
    options: &LinuxHostOptions,
) -> Vec<String> {
    let mut sentences = Vec::new();
    for offer in probe.offers.iter().take_while(|offer| offer.containment < containment) {
        let reason = offer.missing.as_deref().unwrap_or("it was not chosen");
        sentences.push(format!(
            "Programs are held by a {containment} and not by a {}: {reason}.",
            offer.containment
        ));
    }
    if containment.is_escapable() {
        sentences.push(format!("A program that sets out to do so can get out of a {containment}."));
    }
    match (rustix::process::geteuid().is_root(), options.as_root) {
        (true, RunAsRoot::Never) => {}
        (true, RunAsRoot::WithoutAccount) => sentences.push(
            "What names no account runs as root, and root can leave every containment: name one, and start the \
             daemon without `--allow-root`."
                .to_owned(),
        ),
        (false, _) => sentences.push(
            "Programs run as the daemon's own user, whose other programs they can touch, the daemon included: \
             run it as root, and name a user for each entry."
                .to_owned(),
        ),
    }
    for (program, what, package) in [
        (QEMU, "virtual machines of driver `qemu`", "qemu-system-x86"),
        (MPV, "media without a player", "mpv"),
    ] {
        if find_program(OsStr::new(program), &options.search_path).is_none() {
            sentences.push(format!("There is no `{program}` for {what}: install {package}."));
        }
    }
    sentences
}
