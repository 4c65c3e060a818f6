//! What holds a tree together, by its honest name, and what this host offers of it.

use std::fmt;
use std::os::fd::AsFd;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::cgroup::CgroupRoot;
use crate::sys::child::{self, UserNamespaceMaps};
use crate::sys::procfs::ProcRoot;
use crate::sys::wait::{ReapOutcome, reap, wait_readable};

/// What holds a tree together. The earlier, the stronger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Containment {
    /// A cgroup v2 group that every member is born into and that is killed as one. Only for root, and
    /// it holds programs of other users: one that runs as root, too, can leave any group. A service
    /// manager moves others out on request; [`crate::EscapeePolicy`] says what becomes of them.
    Cgroup,
    /// A PID namespace, whose members do not survive its init.
    PidNamespace,
    /// A child subreaper to which orphans fall back, and a walk of its descendants. A program of the
    /// same user can kill the subreaper; what then clears its environment as well is lost.
    Subreaper,
    /// A process group, which any program can leave. The tree ends with its first program.
    ProcessGroup,
}

impl Containment {
    /// All of them, the strongest first.
    pub const ALL: [Self; 4] = [Self::Cgroup, Self::PidNamespace, Self::Subreaper, Self::ProcessGroup];

    /// Its stable name, for programs. For people it is shown.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Cgroup => "cgroup",
            Self::PidNamespace => "pid_namespace",
            Self::Subreaper => "subreaper",
            Self::ProcessGroup => "process_group",
        }
    }

    /// The one of this stable name.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|containment| containment.code() == code)
    }

    /// Whether a program of an ordinary user that tries can leave it.
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

/// One containment and whether this host gives it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContainmentStatus {
    /// Which.
    pub containment: Containment,
    /// Why it is not to be had, as a sentence with its cure; `None` when it is.
    pub missing: Option<String>,
}

/// What this host gives to this process, the strongest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContainmentReport {
    /// All containments, in order of strength.
    pub offers: Vec<ContainmentStatus>,
}

impl ContainmentReport {
    /// The strongest that is to be had.
    #[must_use]
    pub fn strongest(&self) -> Containment {
        self.available().next().unwrap_or(Containment::ProcessGroup)
    }

    /// Those that are to be had, the strongest first.
    pub fn available(&self) -> impl Iterator<Item = Containment> {
        self.offers.iter().filter(|offer| offer.missing.is_none()).map(|offer| offer.containment)
    }
}

/// Finds out by trying, so that the answer holds for this process, here and now.
#[must_use]
pub fn probe() -> ContainmentReport {
    let offers = Containment::ALL
        .into_iter()
        .map(|containment| ContainmentStatus { containment, missing: check_containment(containment).err() })
        .collect();
    ContainmentReport { offers }
}

/// Whether a containment is to be had; the error says why not.
pub(crate) fn check_containment(containment: Containment) -> Result<(), String> {
    match containment {
        Containment::Cgroup => CgroupRoot::find().map(drop),
        Containment::PidNamespace => check_pid_namespace(),
        Containment::Subreaper => check_subreaper(),
        Containment::ProcessGroup => Ok(()),
    }
}

/// The clone flags of a PID namespace for whoever we are.
pub(crate) fn pid_namespace_flags() -> u64 {
    let flags = libc::CLONE_NEWPID | libc::CLONE_NEWNS;
    u64::from((flags | user_namespace_flag()).cast_unsigned())
}

/// Root needs no user namespace to make the others; everybody else does.
pub(crate) fn user_namespace_flag() -> libc::c_int {
    if rustix::process::geteuid().is_root() { 0 } else { libc::CLONE_NEWUSER }
}

/// Our own identity, mapped onto itself, where a user namespace is needed.
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
        .map_err(|error| format!("may not make PID namespaces ({error}); {cure}"))?;
    let ended = wait_readable(child.pidfd.as_fd(), None).and_then(|_| reap(child.pidfd.as_fd()));
    match ended {
        Ok(ReapOutcome::Ended(exit, _)) if exit.is_success() => Ok(()),
        _ => Err(format!("may not map users in a namespace; {cure}")),
    }
}

fn check_subreaper() -> Result<(), String> {
    let proc = ProcRoot::open().map_err(|error| format!("/proc: {error}; mount it"))?;
    let own = std::process::id();
    proc.open_below(format_args!("self/task/{own}/children"), OFlags::RDONLY)
        .map(drop)
        .map_err(|error| format!("/proc does not list children ({error}); CONFIG_PROC_CHILDREN is needed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stable_name_is_the_written_one_and_finds_its_containment() {
        for containment in Containment::ALL {
            assert_eq!(serde_json::to_value(containment).unwrap(), containment.code());
            assert_eq!(Containment::from_code(containment.code()), Some(containment));
        }
        assert_eq!(Containment::from_code("cgroup v2"), None);
    }
}
