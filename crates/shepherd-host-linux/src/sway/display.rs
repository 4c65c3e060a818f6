//! Finds the Wayland display of a compositor. Sway's IPC doesn't name it, but the kernel says which process listens at a
//! socket.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::connection::{connect, listener_pid};

/// The largest environment that is read: several times the usual size.
const MAX_ENVIRONMENT: u64 = 1 << 20;

/// The display numbers that `libwayland` tries.
const DISPLAYS: std::ops::RangeInclusive<u32> = 0..=32;

/// Returns the display at which this process listens, in its runtime folder or else beside its IPC socket.
pub(super) fn wayland_display(process: i32, socket: &Path) -> Option<PathBuf> {
    let folder = runtime_folder(process).or_else(|| Some(socket.parent()?.to_owned()))?;
    DISPLAYS.map(|number| folder.join(format!("wayland-{number}"))).find(|path| {
        let listener = connect(path).and_then(|stream| listener_pid(&stream));
        listener.is_ok_and(|listener| listener == process)
    })
}

fn runtime_folder(process: i32) -> Option<PathBuf> {
    let mut text = Vec::new();
    File::open(format!("/proc/{process}/environ")).ok()?.take(MAX_ENVIRONMENT).read_to_end(&mut text).ok()?;
    let folder = text.split(|byte| *byte == 0).find_map(|line| line.strip_prefix(b"XDG_RUNTIME_DIR="))?;
    Some(PathBuf::from(OsStr::from_bytes(folder)))
}
