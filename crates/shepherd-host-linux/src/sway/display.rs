//! Finds the displays of a compositor, which Sway's IPC doesn't name.
//!
//! For the Wayland display, the kernel says which process listens at a socket. Asking the kernel in the same way about X11
//! would start Xwayland, because Sway starts it for the first connection. But Sway locks its X11 display with a file that
//! contains its process id.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::connection::{SwayProcess, connect, listener};

/// The largest environment that is read: several times the usual size.
const MAX_ENVIRONMENT: u64 = 1 << 20;

/// The largest lock file that is read. The file has eleven bytes.
const MAX_LOCK: u64 = 64;

/// The display numbers that `libwayland` and `wlroots` try.
const DISPLAYS: std::ops::RangeInclusive<u32> = 0..=32;

/// Returns the display at which Sway listens: in the given folder, or else in its runtime folder, or else beside its IPC
/// socket.
pub(super) fn wayland_display(sway: SwayProcess, folder: Option<&Path>, socket: &Path) -> Option<PathBuf> {
    let folder = folder.map(Path::to_owned).or_else(|| runtime_folder(sway.pid));
    let folder = folder.or_else(|| Some(socket.parent()?.to_owned()))?;
    DISPLAYS.map(|number| folder.join(format!("wayland-{number}"))).find(|path| {
        let listener = connect(path).and_then(|stream| listener(&stream));
        listener.is_ok_and(|listener| listener.pid == sway.pid)
    })
}

/// Returns the number of Sway's X11 display, unless Sway has none. Sway locks the display before it answers the first
/// request.
pub(super) fn x11_display(sway: SwayProcess) -> Option<u32> {
    DISPLAYS.into_iter().find(|number| is_locked_by(Path::new(&format!("/tmp/.X{number}-lock")), sway))
}

/// Returns whether this lock file of an X11 display belongs to Sway. Everybody can create such files, so the owner counts.
fn is_locked_by(path: &Path, sway: SwayProcess) -> bool {
    let open = || {
        let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
        let file = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path)?;
        let metadata = file.metadata()?;
        let mut text = String::new();
        if metadata.is_file() && metadata.uid() == sway.uid {
            file.take(MAX_LOCK).read_to_string(&mut text)?;
        }
        Ok::<_, std::io::Error>(text)
    };
    // X servers end the file with a newline, `wlroots` with a null byte.
    let is_padding = |character: char| character.is_whitespace() || character == '\0';
    open().is_ok_and(|text| text.trim_matches(is_padding).parse() == Ok(sway.pid))
}

fn runtime_folder(process: i32) -> Option<PathBuf> {
    let mut text = Vec::new();
    File::open(format!("/proc/{process}/environ")).ok()?.take(MAX_ENVIRONMENT).read_to_end(&mut text).ok()?;
    let folder = text.split(|byte| *byte == 0).find_map(|line| line.strip_prefix(b"XDG_RUNTIME_DIR="))?;
    Some(PathBuf::from(OsStr::from_bytes(folder)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_display_belongs_to_sway_if_its_user_has_locked_it_with_its_process_id() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("lock");
        let uid = rustix::process::geteuid().as_raw();
        let sway = SwayProcess { pid: 4861, uid };
        let check = |text: &str, expected: bool| {
            std::fs::write(&lock, text).unwrap();
            assert_eq!(is_locked_by(&lock, sway), expected, "{text:?}");
        };
        check("      4861\n", true);
        check("      4861\0", true);
        check("      4862\n", false);
        check("", false);
        check("4861 4861", false);
        check(&" ".repeat(100_000), false);
        std::fs::write(&lock, "      4861\n").unwrap();
        assert!(!is_locked_by(&lock, SwayProcess { uid: uid + 1, ..sway }));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&lock, &link).unwrap();
        assert!(!is_locked_by(&link, sway));
        assert!(!is_locked_by(folder.path(), sway));
    }
}
