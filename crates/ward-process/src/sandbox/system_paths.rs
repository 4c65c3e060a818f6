//! Lists the system paths that every sandboxed tool may read, execute or write.

use std::path::PathBuf;

/// Programs and libraries. On most systems some of these are symlinks to others.
const EXECUTE: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/run/current-system",
];

/// Files that programs commonly read and that contain no secrets. `/etc` as a whole is not listed because it
/// contains password hashes (`/etc/shadow`), private keys (`/etc/ssl/private`) and tokens of services.
/// `/proc/<pid>` is not listed because it shows the command lines of all programs; a rule for `/proc/self`
/// would be resolved once and always refer to the preparing process.
const READ: &[&str] = &[
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/gitattributes",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/inputrc",
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
    "/etc/passwd",
    "/etc/perl",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/protocols",
    "/etc/python3",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/kernel/cap_last_cap",
    "/proc/sys/kernel/ngroups_max",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/ostype",
    "/proc/sys/kernel/pid_max",
    "/proc/sys/kernel/random",
    "/proc/sys/kernel/threads-max",
    "/proc/sys/vm/max_map_count",
    "/proc/sys/vm/overcommit_memory",
    "/proc/uptime",
    "/proc/version",
    "/sys/devices/system/cpu",
    "/sys/kernel/mm/transparent_hugepage",
    "/dev/random",
    "/dev/urandom",
];

/// Devices that store nothing. `/dev/tty` is not listed, because a program could use it to ask the person at
/// the terminal for a password in our name.
const WRITE: &[&str] = &["/dev/full", "/dev/null", "/dev/zero"];

pub(super) fn executable_trees() -> Vec<PathBuf> {
    existing_paths(EXECUTE, Vec::new())
}

pub(super) fn readable_trees() -> Vec<PathBuf> {
    let execute = executable_trees();
    existing_paths(READ, execute.clone()).split_off(execute.len())
}

pub(super) fn writable_devices() -> Vec<PathBuf> {
    existing_paths(WRITE, Vec::new())
}

/// Adds the paths that exist on this system and are not inside of the trees already. Every rule adds to the
/// start time of a program, and most symlinks in the list lead into `/usr`.
fn existing_paths(paths: &[&str], mut trees: Vec<PathBuf>) -> Vec<PathBuf> {
    for path in paths {
        if let Ok(real) = std::fs::canonicalize(path)
            && !trees.iter().any(|tree| real.starts_with(tree))
        {
            trees.push(path.into());
        }
    }
    trees
}
