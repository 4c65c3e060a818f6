//! A minimal operating system that handles the power button. The tests of the daemon use it too.

use std::path::Path;

/// The reaction of a guest to its power button.
#[derive(Clone, Copy)]
pub(crate) enum PowerButton {
    Obeyed,
    Ignored,
}

/// Writes a disk whose first sector is the whole operating system. It prints `GUEST-UP` on the serial line and waits. If
/// the button is obeyed, it prints `GUEST-DOWN` when the button is pressed, and switches itself off.
pub(crate) fn write_disk(path: &Path, button: PowerButton) {
    let start = [
        0x31, 0xc0, // xor ax, ax
        0x8e, 0xd8, // mov ds, ax
        0x8e, 0xd0, // mov ss, ax
        0xbc, 0x00, 0x7c, // mov sp, 0x7c00
        0xfc, // cld
        // The button is switched on before the guest says that it is up: QEMU ignores a press before that.
        0xba, 0x02, 0x06, // mov dx, 0x602: the event mask
        0xb8, 0x00, 0x01, // mov ax, 0x100: the power button
        0xef, // out dx, ax
        0xbe, 0x00, 0x7d, // mov si, up
        0xe8, 0x69, 0x00, // call say
    ];
    let rest = match button {
        PowerButton::Obeyed => &[
            0xfb, // wait: sti
            0xf4, // hlt: until the next tick
            0xba, 0x00, 0x06, // mov dx, 0x600: the event status
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
        PowerButton::Ignored => &[
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
