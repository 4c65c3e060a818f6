//! The restrictions that a sandboxed child applies to itself before `execve`, and probes of the kernel
//! mechanisms.
//!
//! The parent prepares the restrictions. Once the child has applied them, neither it nor its descendants can
//! lift them.

mod late_rules;
mod loopback;
mod memory_mounts;
mod mounts;

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions};
use seccompiler::sock_filter;

use super::child::{self, StartFailure, StartStep};
use super::fork::ForkedChild;
use super::last_error;
use crate::containment::identity_maps;
pub(crate) use late_rules::LateRules;
pub(crate) use loopback::LoopbackSetup;
pub(crate) use memory_mounts::{MemoryMounts, MemoryRights};
pub(crate) use mounts::ReadOnlyMounts;

/// Mounts, a loopback interface, a Landlock rule set and a seccomp program that a child can apply without
/// allocating.
#[derive(Debug)]
pub(crate) struct Confinement {
    mounts: Option<ReadOnlyMounts>,
    memory: Option<MemoryMounts>,
    loopback: Option<LoopbackSetup>,
    late_rules: LateRules,
    ruleset: Option<OwnedFd>,
    filter: &'static [sock_filter],
    filter_length: u16,
}

impl Confinement {
    /// Bundles the mechanisms; `None` or an empty filter means that this host lacks the mechanism. The
    /// descriptor of the rule set must be above the standard streams, which the child overwrites.
    pub(crate) fn new(
        mounts: Option<ReadOnlyMounts>,
        ruleset: Option<OwnedFd>,
        filter: &'static [sock_filter],
    ) -> Result<Self, Errno> {
        let filter_length = u16::try_from(filter.len()).map_err(|_| Errno::TOOBIG)?;
        Ok(Self {
            mounts,
            memory: None,
            loopback: None,
            late_rules: LateRules::default(),
            ruleset,
            filter,
            filter_length,
        })
    }

    /// Adds files in memory. They need the mounts.
    pub(crate) fn with_memory(self, memory: Option<MemoryMounts>) -> Self {
        Self { memory, ..self }
    }

    /// Adds rules for files that exist only in the child's own mounts.
    pub(crate) fn with_late_rules(self, late_rules: LateRules) -> Self {
        Self { late_rules, ..self }
    }

    /// Adds a loopback interface. The child must be created in a network namespace of its own.
    pub(crate) fn with_loopback(self, loopback: Option<LoopbackSetup>) -> Self {
        Self { loopback, ..self }
    }

    /// Returns true if the child must be created in a mount namespace of its own.
    pub(crate) fn wants_mount_namespace(&self) -> bool {
        self.mounts.is_some()
    }

    /// Applies the mounts and adds the rules for them. To be called before the child gives up its privileges and before it changes to its
    /// working directory, which would otherwise stay on a mount that is covered afterwards. Async-signal-safe
    /// like [`enter`](Self::enter).
    pub(crate) fn enter_mounts(&self) -> Result<(), Errno> {
        let ruleset = self.ruleset.as_ref().map(AsFd::as_fd);
        if let Some(ruleset) = ruleset {
            self.late_rules.enter(ruleset)?;
        }
        let Some(mounts) = &self.mounts else { return Ok(()) };
        mounts.enter()?;
        self.memory.as_ref().map_or(Ok(()), |memory| memory.enter(ruleset))
    }

    /// Brings up the loopback interface. To be called before the child gives up its privileges.
    /// Async-signal-safe like [`enter`](Self::enter).
    pub(crate) fn enter_network(&self) -> Result<(), Errno> {
        self.loopback.as_ref().map_or(Ok(()), LoopbackSetup::enter)
    }

    /// Returns the listening socket that the child has made, once the program has been executed.
    pub(crate) fn receive_listener(&self) -> Result<Option<OwnedFd>, Errno> {
        self.loopback.as_ref().map_or(Ok(None), LoopbackSetup::receive_listener)
    }

    /// Drops all capabilities and applies the Landlock rules and the seccomp filter to the calling thread and
    /// all its future descendants, permanently.
    ///
    /// Async-signal-safe: no allocation, no lock, no panic. Must be called last before `execve`, after
    /// `no_new_privs` is set, while the descriptor of the rule set is still open.
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
        // seccompiler's `sock_filter` has the layout of the kernel's `struct sock_filter`, which the kernel
        // only reads.
        let program =
            libc::sock_fprog { len: self.filter_length, filter: self.filter.as_ptr().cast_mut().cast() };
        // SAFETY: the program points to `len` instructions that live during the call.
        check(StartStep::Seccomp, unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
        })
    }
}

/// Drops the capabilities that come from root or from a new user namespace. Because `no_new_privs` is set,
/// `execve` can't restore them, not even for user 0.
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
    // SAFETY: both pointers are to live memory of the sizes that this version requires.
    check(StartStep::NoNewPrivileges, unsafe {
        libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr())
    })
}

fn check(step: StartStep, result: libc::c_long) -> Result<(), StartFailure> {
    if result == 0 { Ok(()) } else { Err((step, last_error())) }
}

/// Returns the Landlock ABI of the kernel, or the error if Landlock is unavailable.
pub(crate) fn landlock_abi() -> Result<i64, Errno> {
    const LANDLOCK_CREATE_RULESET_VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the kernel expects a null pointer and size 0, and creates nothing.
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

/// Checks that the kernel can filter system calls and make them fail with an error number.
pub(crate) fn seccomp_available() -> Result<(), Errno> {
    let action: u32 = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the kernel reads a single u32 that lives during the call.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}

/// Checks that we may create these namespaces, by forking a child in them. Settings alone don't tell, because
/// containers and security modules may forbid it.
pub(crate) fn try_namespaces(flags: libc::c_int) -> Result<(), Errno> {
    try_in_namespaces(flags, || Ok(()))
}

/// Checks that a child in a mount namespace of its own may make all mounts read-only.
pub(crate) fn try_read_only_mounts(flags: libc::c_int) -> Result<(), Errno> {
    let mounts = ReadOnlyMounts::all_but(Vec::new())?;
    try_in_namespaces(flags, || mounts.enter())
}

/// Checks that a child in a network namespace of its own may bring up the loopback interface.
pub(crate) fn try_loopback(flags: libc::c_int) -> Result<(), Errno> {
    try_in_namespaces(flags, loopback::bring_up_loopback)
}

fn try_in_namespaces(flags: libc::c_int, attempt: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
    let namespaces = flags.cast_unsigned().into();
    wait_for_success(&child::try_in_namespaces(namespaces, identity_maps(namespaces).as_ref(), attempt)?)
}

fn wait_for_success(child: &ForkedChild) -> Result<(), Errno> {
    let pidfd = WaitId::PidFd(child.pidfd.as_fd());
    let status = rustix::process::waitid(pidfd, WaitIdOptions::EXITED)?;
    // Without a status, other code in this process has reaped the child, and the result is lost.
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

    /// Landlock can't prevent truncation before Linux 6.2.
    #[test]
    fn read_only_mounts_keep_files_from_being_truncated() {
        let folder = tempfile::tempdir().unwrap();
        let [inside, outside] = ["inside", "outside"].map(|name| {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            let file = folder.path().join(name).join("file");
            std::fs::write(&file, "content").unwrap();
            CString::new(file.as_os_str().as_bytes()).unwrap()
        });
        let inside_folder = std::fs::File::open(folder.path().join("inside")).unwrap();
        let mounts = ReadOnlyMounts::all_but(vec![inside_folder.into()]).unwrap();
        let truncate = |file: &CString| {
            try_in_namespaces(libc::CLONE_NEWNS | user_namespace_flag(), || {
                mounts.enter()?;
                // SAFETY: the path is NUL-terminated.
                if unsafe { libc::truncate(file.as_ptr(), 0) } == 0 { Ok(()) } else { Err(last_error()) }
            })
        };
        assert_eq!(truncate(&outside), Err(Errno::ROFS));
        assert_eq!(truncate(&inside), Ok(()));
        assert_eq!(std::fs::read_to_string(folder.path().join("outside/file")).unwrap(), "content");
    }

    #[test]
    fn a_writable_tree_that_was_replaced_is_refused() {
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
