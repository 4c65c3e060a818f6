//! Runs programs as supervised process trees, contained and optionally sandboxed.
//!
//! A [`ProcessSpec`] describes a program. A [`Supervisor`] runs it inside a [`Containment`] and returns a
//! [`ProcessTree`]: one handle to wait for, signal and kill the program and all its descendants. A
//! [`StopLadder`] describes, as data, how a tree is stopped. [`probe`] and [`sandbox::probe`] report what
//! this host can enforce, with reasons for missing parts.
//!
//! The crate never starts a shell, never signals a process by its name or by a bare pid, never allocates or
//! forks in order to kill, never prints, and never claims a stronger containment than it has. Waiting for a
//! tree causes no wake-ups. Only a tree that has been killed, or whose root is gone, and that still has
//! members is polled, every 2 to 100 milliseconds.
//!
//! ```
//! use std::time::Duration;
//! use ward_process::{ProcessSpec, StopLadder, Supervisor};
//!
//! let supervisor = Supervisor::new()?;
//! let id = format!("example-{}", std::process::id()).parse()?;
//! let mut tree = supervisor.spawn(id, ProcessSpec::new("/bin/sleep").args(["60"]))?;
//! let stopped = supervisor.stop(&mut tree, StopLadder::polite(Duration::from_secs(5)))?;
//! assert_eq!(stopped.ended.exit, ward_process::ProcessExit::Signal(15));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]

mod containment;
mod exec_trace;
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
mod user_processes;

mod cgroup;
mod cleanup;
mod sys;

pub use cgroup::release_controllers;
pub use containment::{Containment, ContainmentReport, ContainmentStatus, probe};
pub use exec_trace::{ExecDecision, ExecJudge, ExecutedImage, ProcessLabel, probe_exec_judging};
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
pub use tree::{MemberSnapshot, MemoryMeasure, ProcessTree, SignalDelivery, TreeMembership};
pub use user_processes::UserProcesses;
