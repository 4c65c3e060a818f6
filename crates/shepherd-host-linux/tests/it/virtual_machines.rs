//! A real QEMU with guests that obey or ignore their power button (S6.6).

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

/// Stops a guest, and checks that no signal was needed.
fn check(containments: &[Containment], button: PowerButton) {
    assert!(Path::new("/usr/bin/qemu-system-x86_64").exists(), "no QEMU: `cargo xtask setup` installs it");
    for &containment in containments {
        let mut test_host = TestHost::new(containment);
        let disk = test_host.folder.path().join("disk.img");
        write_disk(&disk, button);
        let session = test_host.start(machine(&disk));
        session.wait_for_output("GUEST-UP");
        // The monitor is told to quit after half of the grace, and the signal comes after three quarters.
        let grace = match button {
            PowerButton::Obeyed => 10 * TEST_TIMEOUT,
            PowerButton::Ignored => Duration::from_secs(4),
        };
        let status = test_host.stop(&session, grace);
        assert_eq!(status, ExitStatus { code: Some(0), signal: None }, "{containment}");
        test_host.wait_for_cleanup();
        let output = session.output();
        assert_eq!(
            output.contains("GUEST-DOWN"),
            matches!(button, PowerButton::Obeyed),
            "{containment}: {output}"
        );
        // QEMU prints this when a signal ends it.
        assert!(!output.contains("terminating on signal"), "{containment}: {output}");
        let sockets = Path::new("/tmp").join(format!("shepherd-{}", session.session_id));
        assert!(!sockets.exists());
    }
}

#[test]
fn heavy_a_guest_is_stopped_by_its_power_button() {
    check(&containments(), PowerButton::Obeyed);
}

#[test]
fn a_guest_that_ignores_its_power_button_is_stopped_by_the_monitor() {
    check(&containments()[..1], PowerButton::Ignored);
}
