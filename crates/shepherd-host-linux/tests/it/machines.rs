//! A real QEMU with a guest that obeys its power button, and one that does not (S6.6).

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use shepherd_api::EntryKind;
use shepherd_core::policy::Entry;
use shepherd_host_api::ExitStatus;
use ward_process::Containment;

use crate::harness::{Ground, PATIENCE, containments, entry};

/// What a guest does about its power button.
#[derive(Clone, Copy)]
enum Button {
    Obeyed,
    Ignored,
}

/// A disk whose first sector is the whole operating system: it says `GUEST-UP` on the serial line, and then waits for
/// the power button, if it cares for it; then it says `GUEST-DOWN` and switches itself off.
fn write_disk(path: &Path, button: Button) {
    let start = [
        0x31, 0xc0, // xor ax, ax
        0x8e, 0xd8, // mov ds, ax
        0x8e, 0xd0, // mov ss, ax
        0xbc, 0x00, 0x7c, // mov sp, 0x7c00
        0xfc, // cld
        0xbe, 0x00, 0x7d, // mov si, up
        0xe8, 0x70, 0x00, // call say
    ];
    let rest = match button {
        Button::Obeyed => &[
            0xba, 0x02, 0x06, // mov dx, 0x602: which events matter
            0xb8, 0x00, 0x01, // mov ax, 0x100: the power button
            0xef, // out dx, ax
            0xfb, // wait: sti
            0xf4, // hlt: until the next tick
            0xba, 0x00, 0x06, // mov dx, 0x600: which events there were
            0xed, // in ax, dx
            0xf6, 0xc4, 0x01, // test ah, 1
            0x74, 0xf5, // jz wait
            0xbe, 0x80, 0x7d, // mov si, down
            0xe8, 0x58, 0x00, // call say
            0xba, 0x04, 0x06, // mov dx, 0x604: the sleep control
            0xb8, 0x00, 0x20, // mov ax, 0x2000: off
            0xef, // out dx, ax
            0xeb, 0xfe, // jmp here
        ][..],
        Button::Ignored => &[
            0xfb, // sti
            0xf4, // hlt
            0xeb, 0xfc, // jmp back
        ][..],
    };
    let say = [
        0xac, // say: lodsb
        0x84, 0xc0, // test al, al
        0x74, 0x06, // jz done
        0xba, 0xf8, 0x03, // mov dx, 0x3f8: the serial line
        0xee, // out dx, al
        0xeb, 0xf5, // jmp say
        0xc3, // done: ret
    ];
    let mut sector = [0_u8; 512];
    let parts: [(usize, &[u8]); 6] = [
        (0, &start),
        (start.len(), rest),
        (0x80, &say),
        (0x100, b"GUEST-UP\r\n\0"),
        (0x180, b"GUEST-DOWN\r\n\0"),
        (510, &[0x55, 0xaa]),
    ];
    for (offset, part) in parts {
        sector[offset..offset + part.len()].copy_from_slice(part);
    }
    let mut disk = vec![0; 1 << 20];
    disk[..512].copy_from_slice(&sector);
    std::fs::write(path, disk).unwrap();
}

fn machine(disk: &Path) -> Entry {
    let args = json!({
        "disk": disk.to_str().unwrap(), "memory": 32, "accel": "tcg", "machine": "pc", "display": "none",
        "serial": "log",
    });
    let args: BTreeMap<_, _> = args.as_object().unwrap().clone().into_iter().collect();
    entry(EntryKind::Vm { driver: "qemu".to_owned(), args })
}

/// Ends a guest, and expects that it was not by a signal.
fn check(containments: &[Containment], button: Button) {
    assert!(Path::new("/usr/bin/qemu-system-x86_64").exists(), "no QEMU: `cargo xtask setup` installs it");
    for &containment in containments {
        let mut ground = Ground::new(containment);
        let disk = ground.folder.path().join("disk.img");
        write_disk(&disk, button);
        let session = ground.start(machine(&disk));
        session.await_output("GUEST-UP");
        // Half of it passes before the monitor is told to end it, three quarters before the signal.
        let grace = match button {
            Button::Obeyed => 10 * PATIENCE,
            Button::Ignored => Duration::from_secs(4),
        };
        let status = ground.stop(&session, grace);
        assert_eq!(status, ExitStatus { code: Some(0), signal: None }, "{containment}");
        ground.await_last_words();
        let said = session.output();
        assert_eq!(said.contains("GUEST-DOWN"), matches!(button, Button::Obeyed), "{containment}: {said}");
        // What QEMU says when it was a signal after all.
        assert!(!said.contains("terminating on signal"), "{containment}: {said}");
        let sockets = Path::new("/tmp").join(format!("shepherd-{}", session.session_id));
        assert!(!sockets.exists());
    }
}

#[test]
fn heavy_a_guest_is_powered_down_by_its_button() {
    check(&containments(), Button::Obeyed);
}

#[test]
fn a_guest_that_ignores_its_button_is_ended_by_the_monitor() {
    check(&containments()[..1], Button::Ignored);
}
