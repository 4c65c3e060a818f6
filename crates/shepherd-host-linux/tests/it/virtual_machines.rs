//! A real QEMU with a guest that obeys its power button, and one that does not (S6.6).

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use shepherd_api::EntryKind;
use shepherd_core::policy::PolicyEntry;
use shepherd_host_api::ExitStatus;
use ward_process::Containment;

use crate::guest::{PowerButton, write_disk};
use crate::harness::{TEST_TIMEOUT, TestHost, containments, entry};

fn machine(disk: &Path) -> PolicyEntry {
    let args = json!({
        "disk": disk.to_str().unwrap(), "memory": 32, "accel": "tcg", "machine": "pc", "display": "none",
        "serial": "log",
    });
    let args: BTreeMap<_, _> = args.as_object().unwrap().clone().into_iter().collect();
    entry(EntryKind::Vm { driver: "qemu".to_owned(), args })
}

/// Ends a guest, and expects that it was not by a signal.
fn check(containments: &[Containment], button: PowerButton) {
    assert!(Path::new("/usr/bin/qemu-system-x86_64").exists(), "no QEMU: `cargo xtask setup` installs it");
    for &containment in containments {
        let mut ground = TestHost::new(containment);
        let disk = ground.folder.path().join("disk.img");
        write_disk(&disk, button);
        let session = ground.start(machine(&disk));
        session.wait_for_output("GUEST-UP");
        // Half of it passes before the monitor is told to end it, three quarters before the signal.
        let grace = match button {
            PowerButton::Obeyed => 10 * TEST_TIMEOUT,
            PowerButton::Ignored => Duration::from_secs(4),
        };
        let status = ground.stop(&session, grace);
        assert_eq!(status, ExitStatus { code: Some(0), signal: None }, "{containment}");
        ground.wait_for_cleanup();
        let said = session.output();
        assert_eq!(
            said.contains("GUEST-DOWN"),
            matches!(button, PowerButton::Obeyed),
            "{containment}: {said}"
        );
        // What QEMU says when it was a signal after all.
        assert!(!said.contains("terminating on signal"), "{containment}: {said}");
        let sockets = Path::new("/tmp").join(format!("shepherd-{}", session.session_id));
        assert!(!sockets.exists());
    }
}

#[test]
fn heavy_a_guest_is_powered_down_by_its_button() {
    check(&containments(), PowerButton::Obeyed);
}

#[test]
fn a_guest_that_ignores_its_button_is_ended_by_the_monitor() {
    check(&containments()[..1], PowerButton::Ignored);
}
