//! The parent of all tree cgroups: the supervisor's own group, if the supervisor may create groups there.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::{Cgroup, open_at, open_directory_at, remove_directory};
use crate::sys::procfs::each_number_in_file;

/// Name of the leaf group in which systemd 254 or newer starts the supervisor (`DelegateSubgroup=supervisor`).
/// cgroup v2 forbids processes in a group that has enabled controllers for its children (the "no internal
/// processes" rule of `cgroups(7)`), so trees become siblings of this leaf.
const GIVEN_LEAF: &str = "supervisor";

/// Name of the leaf group that the supervisor creates for itself if the service manager started it beside the
/// trees. The name differs from [`GIVEN_LEAF`], because [`release_controllers`] is needed for this leaf only.
const OWN_LEAF: &str = "supervisor-own";

/// The controllers that limit trees.
const CONTROLLERS: [&str; 3] = ["pids", "memory", "cpu"];

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
        let path = location.path.display().to_string();
        let mut root = Self::at(location).map_err(|error| format!("could not open {path}: {error}"))?;
        root.take_controllers();
        root.check_can_create()?;
        Ok(root)
    }

    /// Opens the parent group, without its controllers.
    pub(crate) fn at(location: CgroupLocation) -> io::Result<Self> {
        let directory = open_directory(&location.path)?;
        Ok(Self { location, directory, controllers: CgroupControllers::default() })
    }

    /// Enables the controllers, after this process has left the group for a leaf if that is needed.
    fn take_controllers(&mut self) {
        // Otherwise trees are contained all the same, but without the limits that need a controller.
        if self.location.leave_for_leaf(self.directory.as_fd()).is_ok() {
            self.controllers = enable_controllers(self.directory.as_fd());
        }
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

fn enable_controllers(directory: BorrowedFd<'_>) -> CgroupControllers {
    set_controllers(directory, '+');
    let enabled = read_controllers(directory, "cgroup.subtree_control");
    let has = |name: &str| enabled.iter().any(|word| word == name);
    CgroupControllers { pids: has("pids"), memory: has("memory"), cpu: has("cpu") }
}

/// Enables (`+`) or disables (`-`) each controller by a write of its own: a single write fails as a whole if
/// one controller is missing.
fn set_controllers(directory: BorrowedFd<'_>, sign: char) {
    for name in CONTROLLERS {
        if let Ok(file) = open_at(directory, "cgroup.subtree_control", OFlags::WRONLY) {
            let _ = rustix::io::write(&file, format!("{sign}{name}").as_bytes());
        }
    }
}

/// Reads a list of controllers, and returns those that limit trees.
fn read_controllers(directory: BorrowedFd<'_>, file: &str) -> Vec<String> {
    let mut text = [0_u8; 1024];
    let length = open_at(directory, file, OFlags::RDONLY)
        .and_then(|file| rustix::io::read(&file, &mut text))
        .unwrap_or(0);
    let text = String::from_utf8_lossy(text.get(..length).unwrap_or_default()).into_owned();
    text.split_whitespace().filter(|name| CONTROLLERS.contains(name)).map(str::to_owned).collect()
}

/// Disables the controllers of a service whose supervisor has ended, so that systemd before 254 can start
/// the next one.
///
/// Such a systemd starts the supervisor in the group of the service itself. The kernel refuses that while
/// trees of the earlier supervisor keep the group and its controllers alive. Run this from `ExecStopPost=`,
/// which systemd starts in a group below. The next supervisor enables the controllers again, and
/// [`Supervisor::reattach`](crate::Supervisor::reattach) restores the limits of each tree. Does nothing if the
/// service manager gave the supervisor a leaf.
///
/// # Errors
/// Fails if the group of this process can't be found or opened.
pub fn release_controllers() -> io::Result<()> {
    find_parent_group().map_err(io::Error::other)?.release_controllers()
}

/// The parent group of all trees.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CgroupLocation {
    /// Directory in the mounted cgroup2 file system.
    pub(crate) path: PathBuf,
    /// Path as `/proc/PID/cgroup` shows it.
    pub(crate) proc_path: String,
    /// True if this process runs in the parent group itself.
    pub(crate) is_own_group: bool,
}

impl CgroupLocation {
    fn release_controllers(&self) -> io::Result<()> {
        let directory = open_directory(&self.path)?;
        if open_directory_at(directory.as_fd(), OWN_LEAF).is_ok() {
            set_controllers(directory.as_fd(), '-');
        }
        Ok(())
    }

    /// Moves this process out of the parent group, into a leaf beside the trees, if that is needed before
    /// controllers can be enabled. Enabling `cpu` and `pids` beside processes would succeed, but it makes
    /// the group a threaded domain, in which no tree can be started (`EOPNOTSUPP`).
    ///
    /// Fails if other processes run in the group: they aren't ours to move.
    fn leave_for_leaf(&self, directory: BorrowedFd<'_>) -> io::Result<()> {
        // The root of the hierarchy may have processes and controllers. Without controllers no move helps.
        let is_hierarchy_root = self.proc_path == "/";
        if !self.is_own_group
            || is_hierarchy_root
            || read_controllers(directory, "cgroup.controllers").is_empty()
        {
            return Ok(());
        }
        let own = i32::try_from(std::process::id()).map_err(io::Error::other)?;
        let mut others = 0_u32;
        let members = open_at(directory, "cgroup.procs", OFlags::RDONLY)?;
        each_number_in_file(members.as_fd(), &mut |pid| others += u32::from(pid != own));
        if others > 0 {
            return Err(io::Error::other("other processes run in the group"));
        }
        match rustix::fs::mkdirat(directory, OWN_LEAF, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let leaf = open_directory_at(directory, OWN_LEAF)?;
        let members = open_at(leaf.as_fd(), "cgroup.procs", OFlags::WRONLY)?;
        // `0` stands for the process that writes.
        rustix::io::write(&members, b"0")?;
        Ok(())
    }
}

/// Finds the group in which the groups of trees are created: the group of this process, or the parent of its
/// leaf.
pub(crate) fn find_parent_group() -> Result<CgroupLocation, String> {
    let read =
        |path: &str| std::fs::read_to_string(path).map_err(|error| format!("could not read {path}: {error}"));
    let mounts = read("/proc/self/mountinfo")?;
    let groups = read("/proc/self/cgroup")?;
    let (root, mount_point) = find_mount(&mounts).ok_or("no cgroup v2 file system is mounted")?;
    let group = groups
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .ok_or("this process is in no cgroup v2 group")?;
    let parent = parent_of_leaf(group);
    let below = Path::new(parent).strip_prefix(root).map_err(|_| {
        format!("this process's group {group} is outside of the mount at {}", mount_point.display())
    })?;
    Ok(CgroupLocation {
        path: mount_point.join(below),
        proc_path: parent.to_owned(),
        is_own_group: parent == group,
    })
}

/// Returns the parent of a leaf of the supervisor or of systemd's control processes; any other group is its
/// own parent.
fn parent_of_leaf(group: &str) -> &str {
    /// The group in which systemd runs `ExecStopPost=` of a delegated service.
    const CONTROL_LEAF: &str = ".control";
    match group.rsplit_once('/') {
        Some(("", GIVEN_LEAF | OWN_LEAF | CONTROL_LEAF)) => "/",
        Some((parent, GIVEN_LEAF | OWN_LEAF | CONTROL_LEAF)) => parent,
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
mod tests;
