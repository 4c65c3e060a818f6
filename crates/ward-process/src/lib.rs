//! Supervised process trees that can't escape, and a sandbox for them.
//!
//! An [`ProcessSpec`] says what to run, a [`Supervisor`] runs it inside a [`Containment`] and hands back a
//! [`Tree`]: one handle to wait for, signal and kill the program and everything that came of it. A
//! [`StopLadder`] is how a tree is stopped, as data. [`probe`] and [`sandbox::probe`] say what this host
//! gives and why not more.
//!
//! What it never does: start a shell, signal anything by its name or by a bare number, allocate or
//! fork in order to kill, print, or pretend that a containment is stronger than it is. Waiting for a
//! tree wakes nobody; only one that has been killed, or whose root is gone, and that does not vanish
//! is looked at again, every 2 to 100 milliseconds.
//!
//! ```
//! use std::time::Duration;
//! use ward_process::{Ladder, Order, Supervisor};
//!
//! let supervisor = Supervisor::new()?;
//! let id = format!("example-{}", std::process::id()).parse()?;
//! let mut tree = supervisor.spawn(id, Order::new("/bin/sleep").args(["60"]))?;
//! let stopped = supervisor.stop(&mut tree, Ladder::polite(Duration::from_secs(5)))?;
//! assert_eq!(stopped.ended.exit, ward_process::ProcessExit::Signal(15));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]

mod containment;
mod exit;
mod ladder;
mod limits;
mod output;
mod process_spec;
mod record;
pub mod sandbox;
mod stop;
mod supervisor;
mod tree;

mod cgroup;
mod cleanup;
mod sys;

pub use containment::{Containment, ContainmentReport, ContainmentStatus, probe};
pub use exit::{ProcessExit, ResourceUsage, TreeExit};
pub use ladder::{
    EndedBy, LadderProgress, LadderStep, RungOutcome, RungPatience, StopAction, StopCommand, StopLadder,
    StopReport, StopRung, StopSignal,
};
pub use limits::{LimitEnforcement, LimitReport, TreeLimits};
pub use output::StreamCapture;
pub use process_spec::{
    EscapeePolicy, OutputTarget, ProcessGrouping, ProcessSpec, StdinSource, TreeLifetime, UserIdentity,
    find_program,
};
pub use record::{InvalidTreeId, MARKER, ProcessIdentity, TreeId, TreeRecord};
pub use stop::StopError;
pub use supervisor::{ReattachError, SetupError, SpawnError, Supervisor};
pub use tree::{MemberSnapshot, ProcessTree, SignalReach, TreeMembership};
