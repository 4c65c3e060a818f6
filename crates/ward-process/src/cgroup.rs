//! cgroup v2: one group a tree, by plain file operations on handles that are opened beforehand.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Signal;

use crate::sys::procfs::{ProcRoot, each_word, pidfd_of};

/// Our processes may sit in a leaf of this name (systemd: `DelegateSubgroup=supervisor`), since a
/// group whose controllers are in use may have no processes of its own; trees are then its siblings.
const OWN_LEAF: &str = "supervisor";

/// The group below which trees get theirs.
#[derive(Debug)]
pub(crate) struct CgroupRoot {
    path: PathBuf,
    directory: OwnedFd,
    controllers: Controllers,
}

/// Controllers that a tree's group will have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Controllers {
    pub(crate) pids: bool,
    pub(crate) memory: bool,
    pub(crate) cpu: bool,
}

/// The group of one tree.
#[derive(Debug)]
pub(crate) struct Cgroup {
    name: String,
    parent: OwnedFd,
    directory: OwnedFd,
    kill: OwnedFd,
    events: OwnedFd,
    inode: u64,
}

impl CgroupRoot {
    /// Finds our own group and makes sure that we may make groups in it. The error is a sentence.
    pub(crate) fn find() -> Result<Self, String> {
        let path = own_group()?;
        let directory = open_directory(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let root = Self { controllers: enable_controllers(directory.as_fd()), path, directory };
        root.try_out()?;
        Ok(root)
    }

    pub(crate) fn controllers(&self) -> Controllers {
        self.controllers
    }

    /// Makes the group of a new tree.
    pub(crate) fn create(&self, name: &str) -> io::Result<Cgroup> {
        rustix::fs::mkdirat(&self.directory, name, Mode::from_raw_mode(0o755))?;
        self.open(name)
    }

    /// Takes an existing group.
    pub(crate) fn open(&self, name: &str) -> io::Result<Cgroup> {
        let directory = open_directory_at(self.directory.as_fd(), name)?;
        let kill = open_at(directory.as_fd(), "cgroup.kill", OFlags::WRONLY)?;
        let events = open_at(directory.as_fd(), "cgroup.events", OFlags::RDONLY)?;
        let inode = rustix::fs::fstat(&directory)?.st_ino;
        let parent = self.directory.try_clone()?;
        Ok(Cgroup { name: name.to_owned(), parent, directory, kill, events, inode })
    }

    fn try_out(&self) -> Result<(), String> {
        let name = format!("ward-probe-{}", std::process::id());
        let place = self.path.display();
        let group = self.create(&name).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "this kernel has no cgroup.kill (Linux 5.14 has)".to_owned(),
            _ => format!("may not make groups in {place} ({error}); run as a service with Delegate=yes"),
        });
        // Also after a failure: an older kernel has made the directory before the kill file was missed.
        let _ = rustix::fs::unlinkat(&self.directory, &*name, rustix::fs::AtFlags::REMOVEDIR);
        group.map(drop)
    }
}

impl Cgroup {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Tells this group from a later one of the same name.
    pub(crate) fn inode(&self) -> u64 {
        self.inode
    }

    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Becomes exceptional (`EPOLLPRI`) when the group gets its first or loses its last process.
    pub(crate) fn events(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    pub(crate) fn kill_handle(&self) -> io::Result<OwnedFd> {
        self.kill.try_clone()
    }

    /// Kills every member, those that are being forked included. Allocates nothing.
    pub(crate) fn kill(&self) -> Result<(), Errno> {
        rustix::io::write(&self.kill, b"1").map(drop)
    }

    /// Stops or continues every member.
    pub(crate) fn freeze(&self, frozen: bool) -> io::Result<()> {
        let file = open_at(self.directory.as_fd(), "cgroup.freeze", OFlags::WRONLY)?;
        rustix::io::write(&file, if frozen { b"1" } else { b"0" })?;
        Ok(())
    }

    /// Whether any member lives; zombies do not count. Allocates nothing.
    pub(crate) fn is_populated(&self) -> Result<bool, Errno> {
        let mut text = [0_u8; 128];
        let length = rustix::io::pread(&self.events, &mut text, 0)?;
        let text = text.get(..length).unwrap_or_default();
        Ok(text.split(|byte| *byte == b'\n').any(|line| line == b"populated 1"))
    }

    pub(crate) fn set(&self, file: &str, text: &str) -> io::Result<()> {
        let file = open_at(self.directory.as_fd(), file, OFlags::WRONLY)?;
        rustix::io::write(&file, text.as_bytes())?;
        Ok(())
    }

    /// The numbers of all members, as of a moment ago.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let mut members = Vec::new();
        if let Ok(file) = open_at(self.directory.as_fd(), "cgroup.procs", OFlags::RDONLY) {
            // 0 stands for a process that this namespace can't see or that is on its way out.
            each_word(file.as_fd(), &mut |pid| members.extend((pid > 0).then_some(pid)));
        }
        members
    }

    /// Signals every member that is still one after its number has been pinned.
    pub(crate) fn signal(&self, proc: &ProcRoot, signals: &[Signal]) {
        for pid in self.processes() {
            let Ok(pidfd) = pidfd_of(pid) else { continue };
            if !self.contains(proc, pid) {
                continue;
            }
            for signal in signals {
                // Ended meanwhile: nothing to do.
                let _ = rustix::process::pidfd_send_signal(&pidfd, *signal);
            }
        }
    }

    /// Whether a process is in this group or below it.
    pub(crate) fn contains(&self, proc: &ProcRoot, pid: i32) -> bool {
        let mut text = [0_u8; 4096];
        let Ok(length) = proc.read(format_args!("{pid}/cgroup"), &mut text) else { return false };
        let text = String::from_utf8_lossy(text.get(..length).unwrap_or_default()).into_owned();
        let unified = text.lines().find_map(|line| line.strip_prefix("0::"));
        unified.is_some_and(|path| path.split('/').any(|part| part == self.name))
    }

    /// Removes the empty group, with those that its members may have made inside.
    pub(crate) fn remove(&self) -> Result<(), Errno> {
        match remove_directory(self.parent.as_fd(), &self.name) {
            Err(Errno::BUSY) => {
                remove_below(self.directory.as_fd());
                remove_directory(self.parent.as_fd(), &self.name)
            }
            other => other,
        }
    }
}

fn remove_directory(parent: BorrowedFd<'_>, name: impl rustix::path::Arg) -> Result<(), Errno> {
    match rustix::fs::unlinkat(parent, name, rustix::fs::AtFlags::REMOVEDIR) {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

fn remove_below(directory: BorrowedFd<'_>) {
    let Ok(entries) = rustix::fs::Dir::read_from(directory) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type() == rustix::fs::FileType::Directory) {
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        if let Ok(inner) = open_directory_at(directory, entry.file_name()) {
            remove_below(inner.as_fd());
            let _ = remove_directory(directory, entry.file_name());
        }
    }
}

/// Asks for each controller by itself: one that is missing must not cost the others.
fn enable_controllers(directory: BorrowedFd<'_>) -> Controllers {
    for request in ["+pids", "+memory", "+cpu"] {
        if let Ok(file) = open_at(directory, "cgroup.subtree_control", OFlags::WRONLY) {
            let _ = rustix::io::write(&file, request.as_bytes());
        }
    }
    let mut text = [0_u8; 1024];
    let length = open_at(directory, "cgroup.subtree_control", OFlags::RDONLY)
        .and_then(|file| rustix::io::read(&file, &mut text))
        .unwrap_or(0);
    let enabled = String::from_utf8_lossy(text.get(..length).unwrap_or_default()).into_owned();
    let has = |name| enabled.split_whitespace().any(|word| word == name);
    Controllers { pids: has("pids"), memory: has("memory"), cpu: has("cpu") }
}

/// The directory of the group that this process is in.
fn own_group() -> Result<PathBuf, String> {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    let mounts = read("/proc/self/mountinfo")?;
    let groups = read("/proc/self/cgroup")?;
    let (root, point) = find_mount(&mounts).ok_or("no cgroup v2 file system is mounted")?;
    let group = groups
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .ok_or("this process is in no cgroup v2 group")?;
    let below = Path::new(group)
        .strip_prefix(root)
        .map_err(|_| format!("our group {group} lies outside of what is mounted at {}", point.display()))?;
    Ok(trees_beside_own_leaf(point.join(below)))
}

fn trees_beside_own_leaf(path: PathBuf) -> PathBuf {
    match path.parent() {
        Some(parent) if path.ends_with(OWN_LEAF) => parent.to_path_buf(),
        _ => path,
    }
}

/// Root and mount point of the first cgroup2 line of a `mountinfo`.
fn find_mount(mountinfo: &str) -> Option<(&Path, PathBuf)> {
    mountinfo.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        if after.split(' ').next() != Some("cgroup2") {
            return None;
        }
        let mut fields = before.split(' ').skip(3);
        Some((Path::new(fields.next()?), PathBuf::from(fields.next()?.replace("\\040", " "))))
    })
}

fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
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
    fn the_mount_is_found_by_its_type_and_not_by_its_place() {
        let hybrid = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        assert_eq!(find_mount(hybrid), Some((Path::new("/"), "/sys/fs/cgroup/unified".into())));
        let container = "9 1 0:38 /box /mnt/my\\040groups rw shared:3 master:4 - cgroup2 none rw\n";
        assert_eq!(find_mount(container), Some((Path::new("/box"), "/mnt/my groups".into())));
        assert_eq!(find_mount("32 31 0:29 / /sys rw - sysfs sysfs rw\n"), None);
    }

    #[test]
    fn trees_are_siblings_of_the_leaf_we_live_in() {
        assert_eq!(trees_beside_own_leaf("/g/a.service/supervisor".into()), Path::new("/g/a.service"));
        assert_eq!(trees_beside_own_leaf("/g/a.service".into()), Path::new("/g/a.service"));
    }
}
