//! The daemon: one loop that owns the engine, the host, the store and the clients.
//!
//! It decides nothing: `shepherd-core` does. It is told what happens (a deadline comes, a program ends, a client asks,
//! a file changes), tells the engine, makes what the engine says durable, and carries it out. What takes something
//! away is carried out at once; what grants something, when it is on disk.
//!
//! Start with `service.rs`, the loop; `service/carry_out.rs` is what it does about an answer of the engine, and
//! `run.rs` puts everything together.

mod begin;
mod options;
mod run;

mod service;

mod log;
mod metrics;
mod notify;
mod policy_source;
mod pulse;
mod store_thread;
mod timelines;
mod timer;
mod watch;
mod zone;

mod sys;

pub use options::{Options, OptionsError};
pub use policy_source::exposed_policy;
pub use run::run;
