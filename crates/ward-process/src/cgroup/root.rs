//! Where trees get their groups: below our own, if we may.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{Mode, OFlags};

use super::{Cgroup, open_at, open_directory_at, remove_directory};

/// Our processes may sit in a leaf of this name (systemd: `DelegateSubgroup=supervisor`), since a
/// group whose controllers are in use may have no processes of its own; trees are then its siblings.
const OWN_LEAF: &str = "supervisor";

/// The group below which trees get theirs.
#[derive(Debug)]
pub(crate) struct CgroupRoot {
    location: CgroupLocation,
    directory: OwnedFd,
    controllers: CgroupControllers,
}

/// Controllers that a tree's group will have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CgroupControllers {
    pub(crate) pids: bool,
    pub(crate) memory: bool,
    pub(crate) cpu: bool,
}

impl CgroupRoot {
    /// Finds our own group and makes sure that we may make groups in it. The error is a sentence.
    ///
    /// Only root gets one: a group that was delegated to another user can be left by every program of
    /// that user, who may write to the files of its neighbours.
    pub(crate) fn find() -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("what may make a group as an ordinary user may leave it, too, and so may every \
                        program of that user; run the supervisor as root and programs as others"
                .to_owned());
        }
        let place = find_parent_group()?;
        let directory =
            open_directory(&place.path).map_err(|error| format!("{}: {error}", place.path.display()))?;
        let root = Self { controllers: enable_controllers(directory.as_fd()), location: place, directory };
        root.check_can_create()?;
        Ok(root)
    }

    pub(crate) fn controllers(&self) -> CgroupControllers {
        self.controllers
    }

    /// Makes the group of a new tree.
    pub(crate) fn create(&self, name: &str) -> io::Result<Cgroup> {
        rustix::fs::mkdirat(&self.directory, name, Mode::from_raw_mode(0o755))?;
        self.open(name).inspect_err(|_| _ = remove_directory(self.directory.as_fd(), name))
    }

    /// Takes an existing group.
    pub(crate) fn open(&self, name: &str) -> io::Result<Cgroup> {
        let directory = open_directory_at(self.directory.as_fd(), name)?;
        let kill = open_at(directory.as_fd(), "cgroup.kill", OFlags::WRONLY)?;
        let events = open_at(directory.as_fd(), "cgroup.events", OFlags::RDONLY)?;
        let inode = rustix::fs::fstat(&directory)?.st_ino;
        let parent = self.directory.try_clone()?;
        let shown = format!("{}/{name}", self.location.proc_path.trim_end_matches('/'));
        Ok(Cgroup { name: name.to_owned(), proc_path: shown, parent, directory, kill, events, inode })
    }

    fn check_can_create(&self) -> Result<(), String> {
        /// Another process can have had our number, and left its group behind.
        const NAMES_TRIED: usize = 100;
        let place = self.location.path.display();
        let explain = |error: &io::Error| match error.kind() {
            io::ErrorKind::NotFound => "this kernel has no cgroup.kill (Linux 5.14 has)".to_owned(),
            _ => format!("may not make groups in {place} ({error}); run as a service with Delegate=yes"),
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
        Err(format!("{place} is full of groups of earlier probes; remove ward-probe.*"))
    }
}

/// The name of a group that is soon gone. No tree's has a dot.
fn temporary_group_name(purpose: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("ward-{purpose}.{}.{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Asks for each controller by itself: one that is missing must not cost the others.
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

/// One group, in the two ways it is written.
#[derive(Debug, PartialEq, Eq)]
struct CgroupLocation {
    /// Its directory.
    path: PathBuf,
    /// As `/proc/PID/cgroup` shows it.
    proc_path: String,
}

/// The group in which trees get theirs: the one that this process is in, or the one around its leaf.
fn find_parent_group() -> Result<CgroupLocation, String> {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    let mounts = read("/proc/self/mountinfo")?;
    let groups = read("/proc/self/cgroup")?;
    let (root, point) = find_mount(&mounts).ok_or("no cgroup v2 file system is mounted")?;
    let group = groups
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .ok_or("this process is in no cgroup v2 group")?;
    let shown = parent_of_own_leaf(group);
    let below = Path::new(shown)
        .strip_prefix(root)
        .map_err(|_| format!("our group {group} lies outside of what is mounted at {}", point.display()))?;
    Ok(CgroupLocation { path: point.join(below), proc_path: shown.to_owned() })
}

fn parent_of_own_leaf(group: &str) -> &str {
    match group.rsplit_once('/') {
        Some(("", OWN_LEAF)) => "/",
        Some((parent, OWN_LEAF)) => parent,
        _ => group,
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
        assert_eq!(parent_of_own_leaf("/g/a.service/supervisor"), "/g/a.service");
        assert_eq!(parent_of_own_leaf("/supervisor"), "/");
        assert_eq!(parent_of_own_leaf("/g/a.service"), "/g/a.service");
    }
}
