//! cgroup v2: each process tree gets a group of its own.
//!
//! Every operation is a plain file operation on a handle that was opened beforehand, so killing a tree needs
//! neither memory nor new descriptors. See `cgroups(7)` and the kernel's
//! `Documentation/admin-guide/cgroup-v2.rst`.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Signal;

use crate::sys::procfs::{ProcRoot, ProcessStat, each_number_in_file, open_pidfd};

pub(crate) mod root;

pub(crate) use root::CgroupRoot;
pub use root::release_controllers;

/// The cgroup of a process tree.
#[derive(Debug)]
pub(crate) struct Cgroup {
    name: String,
    /// Path of the group as `/proc/PID/cgroup` shows it.
    proc_path: String,
    parent: OwnedFd,
    directory: OwnedFd,
    kill: OwnedFd,
    events: OwnedFd,
    inode: u64,
    /// True once [`kill_members`](Self::kill_members) was called.
    was_killed: AtomicBool,
}

/// The state to put every member of a cgroup into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FreezerState {
    Frozen,
    Thawed,
}

impl Cgroup {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the path of the group as `/proc/PID/cgroup` shows it.
    pub(crate) fn proc_path(&self) -> &str {
        &self.proc_path
    }

    /// Returns the inode of the group's directory, which distinguishes this group from a later one of the
    /// same name.
    pub(crate) fn inode(&self) -> u64 {
        self.inode
    }

    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Returns the handle on `cgroup.events`. The kernel raises `EPOLLPRI` on this handle when the group gets
    /// its first or loses its last process and when the group is frozen or thawed, until the file is read
    /// again.
    pub(crate) fn events(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    pub(crate) fn directory_handle(&self) -> io::Result<OwnedFd> {
        self.directory.try_clone()
    }

    pub(crate) fn kill_handle(&self) -> io::Result<OwnedFd> {
        self.kill.try_clone()
    }

    /// Kills every member, including children whose fork is still in progress. Allocates nothing.
    pub(crate) fn kill(&self) -> Result<(), Errno> {
        rustix::io::write(&self.kill, b"1").map(drop)
    }

    /// Kills every member, and from the second call on also processes whose first thread has ended. Allocates nothing.
    ///
    /// A write to `cgroup.kill` doesn't end such a process, because the kernel sends the signal to the first thread
    /// only. The first call leaves these processes out: a list of the members would delay the end of a large tree.
    pub(crate) fn kill_members(&self, proc: &ProcRoot) {
        // Fails only if the group was removed, and then it has no members.
        let _ = self.kill();
        if !self.was_killed.swap(true, Ordering::Relaxed) {
            return;
        }
        let Ok(file) = open_at(self.directory.as_fd(), "cgroup.procs", OFlags::RDONLY) else { return };
        each_number_in_file(file.as_fd(), &mut |pid| {
            let Ok(pidfd) = open_pidfd(pid) else { return };
            let lacks_first_thread = proc.stat(pid).is_ok_and(ProcessStat::lacks_first_thread);
            if lacks_first_thread && self.contains(proc, pid) {
                // Fails if the process has ended meanwhile, which is fine.
                let _ = rustix::process::pidfd_send_signal(&pidfd, Signal::KILL);
            }
        });
    }

    /// Freezes or thaws every member.
    pub(crate) fn set_freezer_state(&self, state: FreezerState) -> io::Result<()> {
        self.write_file("cgroup.freeze", if state == FreezerState::Frozen { "1" } else { "0" })
    }

    /// Returns true if the group has a living member; zombies don't count. Allocates nothing.
    pub(crate) fn is_populated(&self) -> Result<bool, Errno> {
        let mut text = [0_u8; 128];
        let length = match rustix::io::pread(&self.events, &mut text, 0) {
            // The group was removed, and the kernel only removes groups without members.
            Err(Errno::NODEV) => return Ok(false),
            length => length?,
        };
        let text = text.get(..length).unwrap_or_default();
        Ok(text.split(|byte| *byte == b'\n').any(|line| line == b"populated 1"))
    }

    pub(crate) fn write_file(&self, file: &str, text: &str) -> io::Result<()> {
        let file = open_at(self.directory.as_fd(), file, OFlags::WRONLY)?;
        rustix::io::write(&file, text.as_bytes())?;
        Ok(())
    }

    /// Returns the pids of all members, including those in nested groups. The list may be out of date at
    /// once.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let mut members = Vec::new();
        each_group_below(self.directory.as_fd(), MAX_DEPTH, &mut |group| {
            if let Ok(file) = open_at(group, "cgroup.procs", OFlags::RDONLY) {
                // The kernel writes 0 for a process outside of our PID namespace and for one that is exiting.
                each_number_in_file(file.as_fd(), &mut |pid| members.extend((pid > 0).then_some(pid)));
            }
        });
        members
    }

    /// Returns true if a process is in this group or a nested one, or was there when it ended.
    pub(crate) fn contains(&self, proc: &ProcRoot, pid: i32) -> bool {
        is_in_group(proc, pid, &self.proc_path)
    }

    /// Removes the group and the nested groups that members may have made, or fails with `EBUSY` if a member
    /// is alive. Never waits.
    pub(crate) fn remove(&self) -> Result<(), Errno> {
        match rustix::fs::statat(&self.parent, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(now) if now.st_ino == self.inode => {}
            // Our group has been removed already. A group that has the name now belongs to another tree.
            Ok(_) | Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error),
        }
        if self.is_populated()? {
            return Err(Errno::BUSY);
        }
        match remove_directory(self.parent.as_fd(), &*self.name) {
            Err(Errno::BUSY) => {
                remove_groups_below(self.directory.as_fd(), MAX_DEPTH);
                remove_directory(self.parent.as_fd(), &*self.name)
            }
            other => other,
        }
    }
}

/// Returns true if a process is in the group with this path (as `/proc/PID/cgroup` shows it) or in a nested
/// one, or was there when it ended.
pub(crate) fn is_in_group(proc: &ProcRoot, pid: i32, group: &str) -> bool {
    let mut text = [0_u8; 4096];
    let Ok(length) = proc.read(format_args!("{pid}/cgroup"), &mut text) else { return false };
    is_group_or_below(text.get(..length).unwrap_or_default(), group.as_bytes())
}

/// Returns true if the text of a `/proc/PID/cgroup` file names this group or a nested one.
fn is_group_or_below(membership: &[u8], group: &[u8]) -> bool {
    let unified = membership.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"0::"));
    let rest = unified.and_then(|path| path.strip_prefix(group));
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'/')) || rest == b" (deleted)")
}

/// Number of levels of nested groups that are followed. Only programs that run as root can make nested
/// groups.
const MAX_DEPTH: u32 = 64;

/// Calls `visit` with a group and all its nested groups.
fn each_group_below(directory: BorrowedFd<'_>, depth: u32, visit: &mut dyn FnMut(BorrowedFd<'_>)) {
    visit(directory);
    if depth == 0 {
        return;
    }
    for name in groups_inside(directory) {
        if let Ok(inner) = open_directory_at(directory, name.as_c_str()) {
            each_group_below(inner.as_fd(), depth - 1, visit);
        }
    }
}

fn groups_inside(directory: BorrowedFd<'_>) -> Vec<CString> {
    let Ok(entries) = rustix::fs::Dir::read_from(directory) else { return Vec::new() };
    let folders = entries.flatten().filter(|entry| entry.file_type() == rustix::fs::FileType::Directory);
    let names = folders.map(|entry| entry.file_name().to_owned());
    names.filter(|name| !matches!(name.to_bytes(), b"." | b"..")).collect()
}

fn remove_directory(parent: BorrowedFd<'_>, name: impl rustix::path::Arg) -> Result<(), Errno> {
    match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

fn remove_groups_below(directory: BorrowedFd<'_>, depth: u32) {
    for name in groups_inside(directory) {
        if depth > 0
            && let Ok(inner) = open_directory_at(directory, name.as_c_str())
        {
            remove_groups_below(inner.as_fd(), depth - 1);
        }
        let _ = remove_directory(directory, name.as_c_str());
    }
}

fn open_directory_at(directory: BorrowedFd<'_>, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(directory, name, flags, Mode::empty())
}

fn open_at(directory: BorrowedFd<'_>, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(directory, name, flags | OFlags::CLOEXEC, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_recognised_by_its_whole_path() {
        let check = |membership: &str| is_group_or_below(membership.as_bytes(), b"/a/ward-x");
        assert!(check("3:cpu:/\n0::/a/ward-x\n"));
        assert!(check("0::/a/ward-x/inner\n"));
        assert!(check("0::/a/ward-x (deleted)\n"));
        for other in ["0::/a/ward-xy\n", "0::/b/ward-x\n", "0::/ward-x\n", "0::/a\n", "1:cpu:/a/ward-x\n", ""]
        {
            assert!(!check(other), "{other}");
        }
    }
}
