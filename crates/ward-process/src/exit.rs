//! How a program ended and what it used.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessExit {
    /// It returned this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// It has ended, but the kernel tells its status only to the parent, which is no more.
    Unknown,
}

impl ProcessExit {
    /// Whether it returned zero.
    #[must_use]
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }

    /// From the two numbers that `waitid` gives.
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

/// What a tree used, as far as its members were reaped by the one who reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceUsage {
    /// Processor time in user mode.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// The largest resident set of any one process.
    pub max_resident_bytes: u64,
}

/// The end of a whole tree: its first program's exit, once no member is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeExit {
    /// How the program that was ordered ended.
    pub exit: ProcessExit,
    /// What was used.
    pub usage: ResourceUsage,
}
