//! The kernel mechanisms that hold a process tree together, and a probe of which of them this host offers.

use std::fmt;
use std::os::fd::AsFd;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::cgroup::CgroupRoot;
use crate::sys::child::{self, UserNamespaceMaps};
use crate::sys::procfs::ProcRoot;
use crate::sys::wait::{ReapOutcome, reap, wait_readable};

/// The kernel mechanism that holds a process tree together. Earlier variants are stronger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Containment {
    /// A cgroup v2 group that every member is born into and that is killed as a whole. It needs root, and it
    /// contains only programs that don't run as root, because root can leave any group. A service manager can
    /// still move members out on request; [`crate::EscapeePolicy`] says how such escapees are treated.
    Cgroup,
    /// A PID namespace: when its init ends, the kernel kills all other members. See `pid_namespaces(7)`.
    PidNamespace,
    /// A child subreaper (`PR_SET_CHILD_SUBREAPER` of `prctl(2)`) that adopts orphans, and a walk over its
    /// descendants. A program of the same user can kill the subreaper, and is lost if it has also cleared its
    /// environment.
    Subreaper,
    /// A process group, which any program can leave. The tree ends with its first program.
    ProcessGroup,
}

impl Containment {
    /// All containments, the strongest first.
    pub const ALL: [Self; 4] = [Self::Cgroup, Self::PidNamespace, Self::Subreaper, Self::ProcessGroup];

    /// Returns the stable name for programs. `Display` gives the name for people.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Cgroup => "cgroup",
            Self::PidNamespace => "pid_namespace",
            Self::Subreaper => "subreaper",
            Self::ProcessGroup => "process_group",
        }
    }

    /// Returns the containment with this stable name.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|containment| containment.code() == code)
    }

    /// Returns true if a hostile program of an ordinary user can leave this containment.
    #[must_use]
    pub fn is_escapable(self) -> bool {
        match self {
            Self::Cgroup | Self::PidNamespace => false,
            Self::Subreaper | Self::ProcessGroup => true,
        }
    }
}

impl fmt::Display for Containment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cgroup => "cgroup v2",
            Self::PidNamespace => "PID namespace",
            Self::Subreaper => "subreaper",
            Self::ProcessGroup => "process group",
        })
    }
}

/// The availability of a containment on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContainmentStatus {
    /// Containment that was probed.
    pub containment: Containment,
    /// Reason why the containment is unavailable, with a cure; `None` if it is available.
    pub missing: Option<String>,
}

/// The containments that this host offers to this process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContainmentReport {
    /// All containments, in order of strength.
    pub offers: Vec<ContainmentStatus>,
}

impl ContainmentReport {
    /// Returns the strongest available containment.
    #[must_use]
    pub fn strongest(&self) -> Containment {
        self.available().next().unwrap_or(Containment::ProcessGroup)
    }

    /// Returns the available containments, the strongest first.
    pub fn available(&self) -> impl Iterator<Item = Containment> {
        self.offers.iter().filter(|status| status.missing.is_none()).map(|status| status.containment)
    }
}

/// Tries every containment and reports which of them work for this process. Kernel versions and settings
/// would not reveal restrictions by containers and security modules, so each mechanism is tried once.
#[must_use]
pub fn probe() -> ContainmentReport {
    let offers = Containment::ALL
        .into_iter()
        .map(|containment| ContainmentStatus { containment, missing: check_containment(containment).err() })
        .collect();
    ContainmentReport { offers }
}

/// Tries a containment; the error says why it is unavailable and what helps.
pub(crate) fn check_containment(containment: Containment) -> Result<(), String> {
    match containment {
        Containment::Cgroup => CgroupRoot::find().map(drop),
        Containment::PidNamespace => check_pid_namespace(),
        Containment::Subreaper => check_subreaper(),
        Containment::ProcessGroup => Ok(()),
    }
}

/// Returns the `clone3` flags of a PID namespace, with a user namespace unless this process is root.
pub(crate) fn pid_namespace_flags() -> u64 {
    let flags = libc::CLONE_NEWPID | libc::CLONE_NEWNS;
    u64::from((flags | user_namespace_flag()).cast_unsigned())
}

/// Returns `CLONE_NEWUSER` unless this process is root: other users need a user namespace to create the other
/// namespaces. See `user_namespaces(7)`.
pub(crate) fn user_namespace_flag() -> libc::c_int {
    if rustix::process::geteuid().is_root() { 0 } else { libc::CLONE_NEWUSER }
}

/// Returns maps of our own user and group onto themselves if `namespaces` includes a user namespace.
pub(crate) fn identity_maps(namespaces: u64) -> Option<UserNamespaceMaps> {
    let wanted = namespaces & u64::from(libc::CLONE_NEWUSER.cast_unsigned()) != 0;
    wanted.then(|| {
        let user = rustix::process::geteuid().as_raw();
        let group = rustix::process::getegid().as_raw();
        UserNamespaceMaps {
            users: format!("{user} {user} 1").into_bytes(),
            groups: format!("{group} {group} 1").into_bytes(),
        }
    })
}

fn check_pid_namespace() -> Result<(), String> {
    let cure = "allow user namespaces (sysctl user.max_user_namespaces), or run as root";
    let namespaces = pid_namespace_flags();
    let child = child::try_namespaces(namespaces, identity_maps(namespaces).as_ref())
        .map_err(|error| format!("could not create a PID namespace: {error}; {cure}"))?;
    let ended = wait_readable(child.pidfd.as_fd(), None).and_then(|_| reap(child.pidfd.as_fd()));
    match ended {
        Ok(ReapOutcome::Ended(exit, _)) if exit.is_success() => Ok(()),
        _ => Err(format!("could not map users in a user namespace; {cure}")),
    }
}

fn check_subreaper() -> Result<(), String> {
    let proc = ProcRoot::open().map_err(|error| format!("could not open /proc: {error}; mount it"))?;
    let own = std::process::id();
    proc.open_below(format_args!("self/task/{own}/children"), OFlags::RDONLY).map(drop).map_err(|error| {
        format!("could not list children in /proc: {error}; use a kernel with CONFIG_PROC_CHILDREN")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_equals_the_serialised_name_and_finds_its_containment() {
        for containment in Containment::ALL {
            assert_eq!(serde_json::to_value(containment).unwrap(), containment.code());
            assert_eq!(Containment::from_code(containment.code()), Some(containment));
        }
        assert_eq!(Containment::from_code("cgroup v2"), None);
    }
}
