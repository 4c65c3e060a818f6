//! The last steps of a sandboxed child: prepared by the parent, irrevocable once entered.

mod mounts;

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions};
use seccompiler::sock_filter;

use super::child::{self, StartFailure, StartStep};
use super::fork::ForkedChild;
use super::last_error;
use crate::containment::identity_maps;
pub(crate) use mounts::ReadOnlyMounts;

/// Mounts, a Landlock rule set and a seccomp program, ready to be applied without an allocation.
#[derive(Debug)]
pub(crate) struct Confinement {
    mounts: Option<ReadOnlyMounts>,
    ruleset: Option<OwnedFd>,
    filter: &'static [sock_filter],
    filter_length: u16,
}

impl Confinement {
    /// `None` and an empty filter stand for a mechanism that this host lacks. The rule set may not
    /// lie where the child puts its standard streams.
    pub(crate) fn new(
        mounts: Option<ReadOnlyMounts>,
        ruleset: Option<OwnedFd>,
        filter: &'static [sock_filter],
    ) -> Result<Self, Errno> {
        let filter_length = u16::try_from(filter.len()).map_err(|_| Errno::TOOBIG)?;
        Ok(Self { mounts, ruleset, filter, filter_length })
    }

    /// Whether the child is to be born in a mount namespace of its own.
    pub(crate) fn wants_mount_namespace(&self) -> bool {
        self.mounts.is_some()
    }

    /// The first half: to be called before the child gives up its privileges and before it enters
    /// its working directory. Async-signal-safe as [`enter`](Self::enter).
    pub(crate) fn enter_mounts(&self) -> Result<(), Errno> {
        self.mounts.as_ref().map_or(Ok(()), ReadOnlyMounts::enter)
    }

    /// Locks the calling thread in, for good and with everything it will ever start.
    ///
    /// Async-signal-safe: no allocation, no lock, no panic. It must be the last thing before
    /// `execve`, after `no_new_privs`, and the descriptor of the rule set must still be open.
    pub(crate) fn enter(&self) -> Result<(), StartFailure> {
        drop_capabilities()?;
        if let Some(ruleset) = &self.ruleset {
            // SAFETY: the descriptor is open for as long as `self` lives; no memory is passed.
            check(StartStep::Landlock, unsafe {
                libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0)
            })?;
        }
        if self.filter_length == 0 {
            return Ok(());
        }
        // `sock_filter` of seccompiler has the layout of the kernel's; the kernel only reads it.
        let program =
            libc::sock_fprog { len: self.filter_length, filter: self.filter.as_ptr().cast_mut().cast() };
        // SAFETY: the program points to `len` live instructions for the length of the call.
        check(StartStep::Seccomp, unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
        })
    }
}

/// Gives up what root or a fresh user namespace brought. With `no_new_privs` an `execve` can't
/// bring it back, not even for user 0.
fn drop_capabilities() -> Result<(), StartFailure> {
    #[repr(C)]
    struct CapabilityHeader {
        version: u32,
        pid: i32,
    }
    /// `_LINUX_CAPABILITY_VERSION_3`: two words for each of effective, permitted and inheritable.
    const VERSION: u32 = 0x2008_0522;
    let header = CapabilityHeader { version: VERSION, pid: 0 };
    let none = [0_u32; 6];
    // SAFETY: both point to live memory of the sizes that this version prescribes.
    check(StartStep::NoNewPrivileges, unsafe {
        libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr())
    })
}

fn check(step: StartStep, result: libc::c_long) -> Result<(), StartFailure> {
    if result == 0 { Ok(()) } else { Err((step, last_error())) }
}

/// The Landlock ABI of the kernel, or why there is none.
pub(crate) fn landlock_abi() -> Result<i64, Errno> {
    const LANDLOCK_CREATE_RULESET_VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the kernel wants a null pointer and size 0, and makes nothing.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            LANDLOCK_CREATE_RULESET_VERSION,
        )
    };
    if result > 0 { Ok(result) } else { Err(last_error()) }
}

/// Whether the kernel can filter system calls and answer them with an error number.
pub(crate) fn seccomp_available() -> Result<(), Errno> {
    let action: u32 = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the kernel reads one u32 that lives through the call.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}

/// Makes a child in these namespaces that ends at once: the only sure way to know whether we may.
pub(crate) fn try_namespaces(flags: libc::c_int) -> Result<(), Errno> {
    try_in_namespaces(flags, || Ok(()))
}

/// Whether a child in a mount namespace of its own may make all mounts read-only.
pub(crate) fn try_read_only_mounts(flags: libc::c_int) -> Result<(), Errno> {
    let mounts = ReadOnlyMounts::all_but(Vec::new())?;
    try_in_namespaces(flags, || mounts.enter())
}

fn try_in_namespaces(flags: libc::c_int, attempt: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
    let namespaces = flags.cast_unsigned().into();
    wait_for_success(&child::try_in_namespaces(namespaces, identity_maps(namespaces).as_ref(), attempt)?)
}

fn wait_for_success(child: &ForkedChild) -> Result<(), Errno> {
    let pidfd = WaitId::PidFd(child.pidfd.as_fd());
    let status = rustix::process::waitid(pidfd, WaitIdOptions::EXITED)?;
    // No status means that someone else of this process has reaped it: the answer is lost.
    match status.and_then(|status| status.exit_status()) {
        Some(0) => Ok(()),
        Some(errno) => Err(Errno::from_raw_os_error(errno)),
        None => Err(Errno::CHILD),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use crate::containment::user_namespace_flag;

    /// Landlock can't prevent this before Linux 6.2.
    #[test]
    fn read_only_mounts_keep_files_from_being_cut_to_length_zero() {
        let folder = tempfile::tempdir().unwrap();
        let [inside, outside] = ["inside", "outside"].map(|name| {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            let file = folder.path().join(name).join("file");
            std::fs::write(&file, "content").unwrap();
            CString::new(file.as_os_str().as_bytes()).unwrap()
        });
        let inside_folder = std::fs::File::open(folder.path().join("inside")).unwrap();
        let mounts = ReadOnlyMounts::all_but(vec![inside_folder.into()]).unwrap();
        let cut = |file: &CString| {
            try_in_namespaces(libc::CLONE_NEWNS | user_namespace_flag(), || {
                mounts.enter()?;
                // SAFETY: the path is NUL-terminated.
                if unsafe { libc::truncate(file.as_ptr(), 0) } == 0 { Ok(()) } else { Err(last_error()) }
            })
        };
        assert_eq!(cut(&outside), Err(Errno::ROFS));
        assert_eq!(cut(&inside), Ok(()));
        assert_eq!(std::fs::read_to_string(folder.path().join("outside/file")).unwrap(), "content");
    }

    #[test]
    fn another_folder_in_the_place_of_a_writable_tree_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let [tree, moved] = ["tree", "moved"].map(|name| folder.path().join(name));
        std::fs::create_dir(&tree).unwrap();
        let mounts = ReadOnlyMounts::all_but(vec![std::fs::File::open(&tree).unwrap().into()]).unwrap();
        let enter = || try_in_namespaces(libc::CLONE_NEWNS | user_namespace_flag(), || mounts.enter());
        assert_eq!(enter(), Ok(()));
        std::fs::rename(&tree, &moved).unwrap();
        assert_eq!(enter(), Err(Errno::NOENT));
        std::os::unix::fs::symlink(&moved, &tree).unwrap();
        assert_eq!(enter(), Err(Errno::STALE));
        std::fs::remove_file(&tree).unwrap();
        std::fs::create_dir(&tree).unwrap();
        assert_eq!(enter(), Err(Errno::STALE));
    }
}
