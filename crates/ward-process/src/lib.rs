//! Supervised process trees that can't escape, and a sandbox for them.
//!
//! An [`Order`] says what to run, a [`Supervisor`] runs it inside a [`Containment`] and hands back a
//! [`Tree`]: one handle to wait for, signal and kill the program and everything that came of it. A
//! [`Ladder`] is how a tree is stopped, as data. [`probe`] and [`sandbox::probe`] say what this host
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
//! assert_eq!(stopped.ended.exit, ward_process::Exit::Signal(15));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]

mod containment;
mod exit;
mod ladder;
mod limits;
mod order;
mod output;
mod record;
pub mod sandbox;
mod stop;
mod supervisor;
mod tree;

mod cgroup;
mod leftovers;
mod sys;

pub use containment::{Containment, Offer, Probe, probe};
pub use exit::{Ended, Exit, Usage};
pub use ladder::{Climb, EndedBy, Ladder, Move, Rung, RungOutcome, StopCommand, StopSignal, Stopped};
pub use limits::{Kept, LimitReport, Limits};
pub use order::{Grouping, Identity, Input, Leavers, Lifetime, Order, Output, find_program};
pub use output::Capture;
pub use record::{InvalidTreeId, MARKER, RootProcess, TreeId, TreeRecord};
pub use stop::StopError;
pub use supervisor::{ReattachError, SetupError, SpawnError, Supervisor};
pub use tree::{Census, Membership, Reach, Tree};
