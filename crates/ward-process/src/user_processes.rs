//! All processes of one user, wherever they run: in the user's own slice of systemd, or started by a service such as cron.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Signal;

use crate::cgroup::root::{CgroupLocation, find_parent_group};
use crate::sys::procfs::{ProcRoot, ProcessStat, open_pidfd};

/// The time between two passes. Killed processes take a moment to disappear.
const PASS_INTERVAL: Duration = Duration::from_millis(5);

/// The processes of one user, except those in the cgroups of this program: trees that a supervisor started end on their
/// own terms.
#[derive(Debug)]
pub struct UserProcesses {
    uid: u32,
    proc: ProcRoot,
    /// The `cgroup.kill` file of the user's slice, which need not exist.
    slice_kill: Option<PathBuf>,
    /// The cgroup of this program and its trees, as `/proc/PID/cgroup` shows it.
    own_group: Option<String>,
}

impl UserProcesses {
    /// Prepares to find the processes of a user.
    ///
    /// # Errors
    /// The user is root or the user of this program, whose processes nobody may end; or `/proc` can't be opened.
    pub fn of(uid: u32) -> io::Result<Self> {
        if uid == 0 || uid == rustix::process::geteuid().as_raw() {
            let message = "the processes of root and of this program's own user can't be ended";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        let location = find_parent_group().ok();
        let own_group = location.as_ref().map(|location| location.proc_path.clone());
        Ok(Self {
            uid,
            proc: ProcRoot::open()?,
            slice_kill: location.as_ref().and_then(|location| slice_of(uid, location)),
            // A program in the root group has no group of its own.
            own_group: own_group.filter(|group| group != "/"),
        })
    }

    /// Kills all processes of the user, again and again until none is left or the time is up. Returns the number of those
    /// that are left.
    ///
    /// # Errors
    /// `/proc` can't be read.
    pub fn kill_all(&self, timeout: Duration) -> io::Result<usize> {
        let deadline = Instant::now() + timeout;
        loop {
            self.kill_slice();
            let left = self.kill_each()?;
            if left == 0 || Instant::now() >= deadline {
                return Ok(left);
            }
            std::thread::sleep(PASS_INTERVAL);
        }
    }

    /// Kills everything in the user's slice, with processes that are forked meanwhile. Without a slice there is nothing to
    /// do.
    fn kill_slice(&self) {
        let Some(path) = &self.slice_kill else { return };
        let opened = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
        if let Ok(kill) = opened {
            let _ = rustix::io::write(&kill, b"1");
        }
    }

    /// Kills each process of the user, and returns how many there were.
    fn kill_each(&self) -> Result<usize, Errno> {
        let mut found = 0;
        self.proc.each_process(|pid| {
            if !self.is_meant(pid) {
                return;
            }
            found += 1;
            // The pid may have been reused since, so the owner is checked again once the process is pinned.
            if let Ok(pidfd) = open_pidfd(pid)
                && self.is_meant(pid)
            {
                send_kill(&pidfd);
            }
        })?;
        Ok(found)
    }

    /// Returns whether this is a living process of the user outside of our own groups.
    fn is_meant(&self, pid: i32) -> bool {
        self.real_user(pid) == Some(self.uid)
            && self.proc.stat(pid).is_ok_and(ProcessStat::is_alive)
            && !self.is_in_own_group(pid)
    }

    /// Returns the real user of a process. A program that only acts for the user, such as a service of root, has another
    /// one.
    fn real_user(&self, pid: i32) -> Option<u32> {
        let mut text = [0; 2048];
        let length = self.proc.read(format_args!("{pid}/status"), &mut text).ok()?;
        let mut lines = text.get(..length)?.split(|byte| *byte == b'\n');
        let users = lines.find_map(|line| line.strip_prefix(b"Uid:"))?;
        std::str::from_utf8(users).ok()?.split_ascii_whitespace().next()?.parse().ok()
    }

    fn is_in_own_group(&self, pid: i32) -> bool {
        let Some(own) = &self.own_group else { return false };
        let mut text = [0; 4096];
        let Ok(length) = self.proc.read(format_args!("{pid}/cgroup"), &mut text) else { return false };
        let mut lines = text.get(..length).unwrap_or_default().split(|byte| *byte == b'\n');
        let group = lines.find_map(|line| line.strip_prefix(b"0::"));
        let below = group.and_then(|group| group.strip_prefix(own.as_bytes()));
        below.is_some_and(|below| below.is_empty() || below.starts_with(b"/"))
    }
}

/// Returns the `cgroup.kill` file of a user's slice, below the root of the mounted hierarchy.
fn slice_of(uid: u32, location: &CgroupLocation) -> Option<PathBuf> {
    let own = location.proc_path.trim_start_matches('/');
    let root = location.path.to_str()?.strip_suffix(own)?;
    Some(PathBuf::from(root).join(format!("user.slice/user-{uid}.slice/cgroup.kill")))
}

fn send_kill(pidfd: &OwnedFd) {
    let _ = rustix::process::pidfd_send_signal(pidfd.as_fd(), Signal::KILL);
}
