//! The daemon: one loop that owns the engine, the host, the store and the clients.
//!
//! The daemon decides nothing; `shepherd-core` does. The loop reports inputs (a deadline, the end of a program, a
//! command, a changed file) to the engine, writes the engine's changes to the store, and carries out its orders. An
//! order that takes something away is carried out immediately, an order that grants something once it is on disk.
//!
//! Start with `service.rs`, the loop; `service/effects.rs` carries out the engine's orders, and `run.rs` puts
//! everything together.

mod options;
mod run;
mod startup;

mod service;

mod file_watch;
mod heartbeat;
mod log;
mod login_accounts;
mod metrics;
mod notify;
mod policy_copy;
mod policy_source;
mod query_thread;
mod session_log_thread;
mod store_thread;
mod timer;
mod user_slots;
mod zone;

mod sys;

pub use login_accounts::LoginAccounts;
pub use options::{DaemonOptions, DaemonOptionsError};
pub use policy_source::policy_exposure_warnings;
pub use run::run;
