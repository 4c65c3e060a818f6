//! The parent of all tree cgroups: the supervisor's own group, if the supervisor may create groups there.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rustix::fs::{Mode, OFlags};

use super::{Cgroup, open_at, open_directory_at, remove_directory};

/// Name of the leaf group that the supervisor may run in (systemd: `DelegateSubgroup=supervisor`). cgroup v2
/// forbids processes in a group that has enabled controllers for its children (the "no internal processes"
/// rule of `cgroups(7)`), so trees become siblings of this leaf.
const OWN_LEAF: &str = "supervisor";

/// The cgroup below which the groups of trees are created.
#[derive(Debug)]
pub(crate) struct CgroupRoot {
    location: CgroupLocation,
    directory: OwnedFd,
    controllers: CgroupControllers,
}

/// The controllers that are enabled in a tree's cgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CgroupControllers {
    pub(crate) pids: bool,
    pub(crate) memory: bool,
    pub(crate) cpu: bool,
}

impl CgroupRoot {
    /// Finds the supervisor's group and checks that groups can be created in it. The error says why not and
    /// what helps.
    ///
    /// Only root gets a cgroup root: a group that was delegated to an ordinary user contains nobody, because
    /// every program of that user may write to `cgroup.procs` of the neighbouring groups and so move itself
    /// out.
    pub(crate) fn find() -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err(
                "only root can use cgroups: programs of an ordinary user can leave every group that \
                        the user may create; run the supervisor as root and the programs as other users"
                    .to_owned(),
            );
        }
        let location = find_parent_group()?;
        let directory = open_directory(&location.path)
            .map_err(|error| format!("could not open {}: {error}", location.path.display()))?;
        let root = Self { controllers: enable_controllers(directory.as_fd()), location, directory };
        root.check_can_create()?;
        Ok(root)
    }

    pub(crate) fn controllers(&self) -> CgroupControllers {
        self.controllers
    }

    /// Creates the group of a new tree.
    pub(crate) fn create(&self, name: &str) -> io::Result<Cgroup> {
        rustix::fs::mkdirat(&self.directory, name, Mode::from_raw_mode(0o755))?;
        self.open(name).inspect_err(|_| _ = remove_directory(self.directory.as_fd(), name))
    }

    /// Opens the existing group of a tree.
    pub(crate) fn open(&self, name: &str) -> io::Result<Cgroup> {
        let directory = open_directory_at(self.directory.as_fd(), name)?;
        let kill = open_at(directory.as_fd(), "cgroup.kill", OFlags::WRONLY)?;
        let events = open_at(directory.as_fd(), "cgroup.events", OFlags::RDONLY)?;
        let inode = rustix::fs::fstat(&directory)?.st_ino;
        let parent = self.directory.try_clone()?;
        let proc_path = format!("{}/{name}", self.location.proc_path.trim_end_matches('/'));
        let was_killed = AtomicBool::new(false);
        Ok(Cgroup { name: name.to_owned(), proc_path, parent, directory, kill, events, inode, was_killed })
    }

    fn check_can_create(&self) -> Result<(), String> {
        /// An earlier process with our pid may have left its probe group behind.
        const NAMES_TRIED: usize = 100;
        let parent = self.location.path.display();
        let explain = |error: &io::Error| match error.kind() {
            io::ErrorKind::NotFound => {
                "this kernel has no cgroup.kill; Linux 5.14 or newer has it".to_owned()
            }
            _ => format!("could not create a group in {parent}: {error}; run as a service with Delegate=yes"),
        };
        for _ in 0..NAMES_TRIED {
            let name = temporary_group_name("probe");
            match self.create(&name) {
                Ok(_) => {
                    let _ = remove_directory(self.directory.as_fd(), &*name);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(explain(&error)),
            }
        }
        Err(format!("{parent} is full of groups of earlier probes; remove {parent}/ward-probe.*"))
    }
}

/// Returns the name of a short-lived group. The dots keep it apart from the groups of trees, whose names have
/// none.
fn temporary_group_name(purpose: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("ward-{purpose}.{}.{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Enables each controller by a write of its own: a single write fails as a whole if one controller is
/// missing.
fn enable_controllers(directory: BorrowedFd<'_>) -> CgroupControllers {
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
    CgroupControllers { pids: has("pids"), memory: has("memory"), cpu: has("cpu") }
}

/// The two paths of a cgroup.
#[derive(Debug, PartialEq, Eq)]
struct CgroupLocation {
    /// Directory in the mounted cgroup2 file system.
    path: PathBuf,
    /// Path as `/proc/PID/cgroup` shows it.
    proc_path: String,
}

/// Finds the group in which the groups of trees are created: the group of this process, or the parent of its
/// leaf.
fn find_parent_group() -> Result<CgroupLocation, String> {
    let read =
        |path: &str| std::fs::read_to_string(path).map_err(|error| format!("could not read {path}: {error}"));
    let mounts = read("/proc/self/mountinfo")?;
    let groups = read("/proc/self/cgroup")?;
    let (root, mount_point) = find_mount(&mounts).ok_or("no cgroup v2 file system is mounted")?;
    let group = groups
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .ok_or("this process is in no cgroup v2 group")?;
    let parent = parent_of_own_leaf(group);
    let below = Path::new(parent).strip_prefix(root).map_err(|_| {
        format!("this process's group {group} is outside of the mount at {}", mount_point.display())
    })?;
    Ok(CgroupLocation { path: mount_point.join(below), proc_path: parent.to_owned() })
}

fn parent_of_own_leaf(group: &str) -> &str {
    match group.rsplit_once('/') {
        Some(("", OWN_LEAF)) => "/",
        Some((parent, OWN_LEAF)) => parent,
        _ => group,
    }
}

/// Returns the root and the mount point of the first cgroup2 line of a `mountinfo` file; see
/// `proc_pid_mountinfo(5)`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cgroup2_mount_is_found_by_its_type_wherever_it_is() {
        let hybrid = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        assert_eq!(find_mount(hybrid), Some((Path::new("/"), "/sys/fs/cgroup/unified".into())));
        let container = "9 1 0:38 /box /mnt/my\\040groups rw shared:3 master:4 - cgroup2 none rw\n";
        assert_eq!(find_mount(container), Some((Path::new("/box"), "/mnt/my groups".into())));
        assert_eq!(find_mount("32 31 0:29 / /sys rw - sysfs sysfs rw\n"), None);
    }

    #[test]
    fn trees_are_siblings_of_the_supervisors_leaf() {
        assert_eq!(parent_of_own_leaf("/g/a.service/supervisor"), "/g/a.service");
        assert_eq!(parent_of_own_leaf("/supervisor"), "/");
        assert_eq!(parent_of_own_leaf("/g/a.service"), "/g/a.service");
    }
}
