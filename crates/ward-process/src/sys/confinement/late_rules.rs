//! Landlock rules that the child adds to the rule set itself, for files that exist only in its own mounts.
//!
//! The parent's rules are for the files of the parent's `/proc`. A keeper that is the init of a PID namespace
//! mounts another `/proc`, whose files have no rule.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::sys::last_error;

/// Paths that become readable in the child's own mounts.
#[derive(Debug, Default)]
pub(crate) struct LateRules(Vec<(CString, u64)>);

impl LateRules {
    pub(crate) fn add(&mut self, path: &Path, rights: u64) -> Result<(), Errno> {
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
        self.0.push((path, rights));
        Ok(())
    }

    /// Adds the rules. Paths that the child doesn't have stay closed. Async-signal-safe.
    pub(crate) fn enter(&self, ruleset: BorrowedFd<'_>) -> Result<(), Errno> {
        for (path, rights) in &self.0 {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            if let Ok(file) = rustix::fs::open(path.as_c_str(), flags, Mode::empty()) {
                add_rule(Some(ruleset), file.as_fd(), *rights)?;
            }
        }
        Ok(())
    }
}

/// Allows access to a tree in a rule set that is not in force yet. See `landlock_add_rule(2)`.
pub(super) fn add_rule(
    ruleset: Option<BorrowedFd<'_>>,
    tree: BorrowedFd<'_>,
    rights: u64,
) -> Result<(), Errno> {
    /// The kernel's `struct landlock_path_beneath_attr`.
    #[repr(C, packed)]
    struct PathBeneath {
        allowed_access: u64,
        parent_fd: i32,
    }
    const LANDLOCK_RULE_PATH_BENEATH: libc::c_int = 1;
    let Some(ruleset) = ruleset else { return Ok(()) };
    let rule = PathBeneath { allowed_access: rights, parent_fd: tree.as_raw_fd() };
    // SAFETY: the structure has the layout that the kernel expects and lives during the call; both
    // descriptors are open.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            LANDLOCK_RULE_PATH_BENEATH,
            &raw const rule,
            0,
        )
    };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}
