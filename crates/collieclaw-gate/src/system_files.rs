//! Files of the system that commands may read outside of the workspace.
//!
//! Every program of a line can read them in the sandbox anyway. They describe the installed software and the machine,
//! and contain nothing about people, their programs or the network.

use std::path::Path;

/// Folders with installed software. On most systems, those outside of `/usr` are symlinks into it.
const SOFTWARE_FOLDERS: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"];

/// Files of the kernel about the machine, and devices that only produce bytes.
const MACHINE_FILES: [&str; 10] = [
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
    "/proc/cpuinfo",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/uptime",
    "/proc/version",
];

/// Returns true for an absolute path without `..` that names such a file or folder.
pub(crate) fn is_system_file(place: &Path) -> bool {
    SOFTWARE_FOLDERS.iter().any(|folder| place.starts_with(folder))
        || MACHINE_FILES.iter().any(|file| place == Path::new(file))
}
