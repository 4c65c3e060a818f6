//! The daemon: one loop that owns the engine, the host, the store and the clients.
//!
//! It decides nothing: `shepherd-core` does. It is told what happens (a deadline comes, a program ends, a client asks,
//! a file changes), tells the engine, makes what the engine says durable, and carries it out. What takes something
//! away is carried out at once; what grants something, when it is on disk.
//!
//! Start with `service.rs`, the loop; `service/carry_out.rs` is what it does about an answer of the engine, and
//! `run.rs` puts everything together.

mod options;
mod run;
mod startup;

mod service;

mod file_watch;
mod heartbeat;
mod log;
mod metrics;
mod notify;
mod policy_source;
mod store_thread;
mod timeline_thread;
mod timer;
mod zone;

mod sys;

pub use options::{DaemonOptions, DaemonOptionsError};
pub use policy_source::policy_exposure_warnings;
pub use run::run;
