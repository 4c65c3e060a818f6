//! Exit status and resource usage of a program and of its process tree.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The exit status of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessExit {
    /// The program returned this exit code.
    Code(i32),
    /// This signal killed the program.
    Signal(i32),
    /// The program has ended, but the kernel reports the status only to the parent, which is gone.
    Unknown,
}

impl ProcessExit {
    /// Returns true if the exit code is zero.
    #[must_use]
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }

    /// Converts `si_code` and `si_status` of `waitid(2)`.
    pub(crate) fn from_wait(si_code: i32, si_status: i32) -> Self {
        if si_code == libc::CLD_EXITED { Self::Code(si_status) } else { Self::Signal(si_status) }
    }
}

impl fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Unknown => f.write_str("unknown exit"),
        }
    }
}

/// The resources that a tree used, as the kernel reports them for its root process. Members count only if a
/// process of the tree has reaped them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceUsage {
    /// Processor time in user mode.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// The largest resident set of any one process.
    pub max_resident_bytes: u64,
}

/// The end of a whole tree: the exit of its first program, known once no member is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeExit {
    /// Exit of the program that was spawned.
    pub exit: ProcessExit,
    /// Resources that the tree used.
    pub usage: ResourceUsage,
}
