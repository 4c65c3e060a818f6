//! The parts of a usual system that any tool may read, and those it may execute.

use std::path::PathBuf;

/// Programs and libraries. On most systems some of these are links to others.
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

/// What programs look up and what holds no secret. `/etc` as a whole is not here: it holds the
/// password hashes (`/etc/shadow`), private keys (`/etc/ssl/private`) and the tokens of services.
/// Neither is `/proc/<pid>`, which shows the command lines of all programs; a rule for `/proc/self`
/// would name the preparing process for ever.
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

/// Devices without a memory. `/dev/tty` is not here: through it a program could ask the person at
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

/// Adds what there is on this system and not in the trees already: every rule is felt at each start of
/// a program, and most links of the list lead into `/usr`.
fn existing_paths(paths: &[&str], mut trees: Vec<PathBuf>) -> Vec<PathBuf> {
    for path in paths {
        // What can't be resolved is not there.
        if let Ok(real) = std::fs::canonicalize(path)
            && !trees.iter().any(|tree| real.starts_with(tree))
        {
            trees.push(path.into());
        }
    }
    trees
}
