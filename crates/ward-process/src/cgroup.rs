//! cgroup v2: one group a tree, by plain file operations on handles that are opened beforehand.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::sys::procfs::{ProcRoot, each_number_in_file};

mod root;

pub(crate) use root::CgroupRoot;

/// The group of one tree.
#[derive(Debug)]
pub(crate) struct Cgroup {
    name: String,
    /// As `/proc/PID/cgroup` shows it.
    proc_path: String,
    parent: OwnedFd,
    directory: OwnedFd,
    kill: OwnedFd,
    events: OwnedFd,
    inode: u64,
}

/// What becomes of every member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FreezerState {
    Frozen,
    Thawed,
}

impl Cgroup {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// As `/proc/PID/cgroup` shows it.
    pub(crate) fn proc_path(&self) -> &str {
        &self.proc_path
    }

    /// Tells this group from a later one of the same name.
    pub(crate) fn inode(&self) -> u64 {
        self.inode
    }

    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Becomes exceptional (`EPOLLPRI`) when the group gets its first or loses its last process, and
    /// when it is frozen or thawed, until it is looked at again.
    pub(crate) fn events(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    pub(crate) fn directory_handle(&self) -> io::Result<OwnedFd> {
        self.directory.try_clone()
    }

    pub(crate) fn kill_handle(&self) -> io::Result<OwnedFd> {
        self.kill.try_clone()
    }

    /// Kills every member, those that are being forked included. Allocates nothing.
    pub(crate) fn kill(&self) -> Result<(), Errno> {
        rustix::io::write(&self.kill, b"1").map(drop)
    }

    /// Stops or continues every member.
    pub(crate) fn set_freezer_state(&self, motion: FreezerState) -> io::Result<()> {
        self.write_file("cgroup.freeze", if motion == FreezerState::Frozen { "1" } else { "0" })
    }

    /// Whether any member lives; zombies do not count. Allocates nothing.
    pub(crate) fn is_populated(&self) -> Result<bool, Errno> {
        let mut text = [0_u8; 128];
        let length = match rustix::io::pread(&self.events, &mut text, 0) {
            // The group is gone, and nothing outlives its group.
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

    /// The numbers of all members, as of a moment ago, those in groups inside included.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let mut members = Vec::new();
        each_group_below(self.directory.as_fd(), MAX_DEPTH, &mut |group| {
            if let Ok(file) = open_at(group, "cgroup.procs", OFlags::RDONLY) {
                // 0 stands for a process that this namespace can't see or that is on its way out.
                each_number_in_file(file.as_fd(), &mut |pid| members.extend((pid > 0).then_some(pid)));
            }
        });
        members
    }

    /// Whether a process is in this group or below it, or was when it ended.
    pub(crate) fn contains(&self, proc: &ProcRoot, pid: i32) -> bool {
        is_in_group(proc, pid, &self.proc_path)
    }

    /// Removes the empty group, with those that its members may have made inside. Never waits.
    pub(crate) fn remove(&self) -> Result<(), Errno> {
        match rustix::fs::statat(&self.parent, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(now) if now.st_ino == self.inode => {}
            // Removed by somebody else; what may have the name now is not ours.
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

/// Whether a process is in the group that is shown so, or below it, or was when it ended.
pub(crate) fn is_in_group(proc: &ProcRoot, pid: i32, shown: &str) -> bool {
    let mut text = [0_u8; 4096];
    let Ok(length) = proc.read(format_args!("{pid}/cgroup"), &mut text) else { return false };
    is_group_or_below(text.get(..length).unwrap_or_default(), shown.as_bytes())
}

/// Whether a `/proc/PID/cgroup` names this group or one inside of it.
fn is_group_or_below(membership: &[u8], group: &[u8]) -> bool {
    let unified = membership.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"0::"));
    let rest = unified.and_then(|path| path.strip_prefix(group));
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'/')) || rest == b" (deleted)")
}

/// How deep groups inside a tree's group are followed. Only root can make them.
const MAX_DEPTH: u32 = 64;

/// Calls `visit` with a group and all groups inside.
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
