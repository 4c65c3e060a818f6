//! Pseudo file systems, whose files the kernel generates when they are read and acts on when they are
//! written.
//!
//! They can be mounted anywhere, so a path doesn't show whether a file belongs to one.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

/// The magic numbers of these file systems, from `linux/magic.h`.
const PSEUDO_FILESYSTEMS: [u32; 21] = [
    0x0000_9fa0, // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x7363_6673, // securityfs
    0xf97c_ff8c, // selinuxfs
    0x4341_5d53, // smackfs
    0x5a3c_69f0, // apparmorfs
    0xcafe_4a11, // bpf
    0x6165_676c, // pstore
    0xde5e_81e4, // efivarfs
    0x6265_6570, // configfs
    0x0000_1cd1, // devpts
    0x1980_0202, // mqueue
    0x6573_5543, // fusectl
    0x4249_4e4d, // binfmt_misc
    0x6e73_6673, // nsfs
    0x6c6f_6f70, // binder
    0x0765_5821, // resctrl
];

/// Returns true if a handle leads to a pseudo file system.
pub(super) fn is_on_pseudo_filesystem(handle: &OwnedFd) -> Result<bool, Errno> {
    let number = rustix::fs::fstatfs(handle)?.f_type;
    // The magic numbers have 32 bits, but the width of the field depends on the architecture.
    Ok(PSEUDO_FILESYSTEMS.iter().any(|known| i128::from(number) & 0xffff_ffff == i128::from(*known)))
}
