//! Files of the system that commands may read outside of the workspace.
//!
//! Every program of a line can read them in the sandbox anyway. They describe the installed software and the machine,
//! and contain nothing about people, their programs or the network.

use std::path::Path;

use crate::policy::GatePolicy;

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

/// The parts of a forbidden `/etc` that programs need in order to run: libraries, the time zone, terminals, locales, fonts,
/// the name of the system and the certificates of public authorities. They contain nothing about people or the local
/// network. The sandbox shows them.
pub const NEEDED_ETC_FILES: &[&str] = &[
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/lsb-release",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/perl",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/python3",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
];

/// Returns true for a file of [`NEEDED_ETC_FILES`] that no rule forbids by itself.
pub(crate) fn is_open_in_etc(place: &Path, policy: &GatePolicy) -> bool {
    let is_forbidden = |rule: &Path| place.starts_with(rule) && rule != Path::new("/etc");
    NEEDED_ETC_FILES.iter().any(|file| place.starts_with(file)) && !policy.protected_paths().any(is_forbidden)
}

/// Returns true for an absolute path without `..` that names such a file or folder.
pub(crate) fn is_system_file(place: &Path) -> bool {
    SOFTWARE_FOLDERS.iter().any(|folder| place.starts_with(folder))
        || MACHINE_FILES.iter().any(|file| place == Path::new(file))
}
