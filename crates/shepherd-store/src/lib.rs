//! What Shepherd remembers: usage, cooldowns, sessions and the audit log, durably.
//!
//! A [`Store`] takes the writes of one step of the engine as one batch: all of them, on disk when it returns, or none.
//! Everything is read once, at start. The store never reads a clock and never decides anything. Above all it never
//! guesses: what can't be read, or has been damaged, is an error, and never "nothing used yet".
//!
//! Start with [`Store`], then [`SqliteStore`]; `sqlite/open.rs` tells how damage is found and what happens then.
//! [`MemoryStore`] is for tests, and [`conformance`] is what any store has to do.

mod error;
mod record;
mod store;

pub mod conformance;
mod memory;

mod aside;
mod audit;
mod folder;
mod pulse;
mod way;

mod sqlite;

pub use aside::KeptAside;
pub use audit::{AuditCheck, AuditFault, WHOLE_CHECK_BYTES, audit_format, read_audit_log};
pub use error::{Damage, EventError, OpenError, StoreError};
pub use folder::audit_log_path;
pub use memory::{Commit, Memory, MemoryStore};
pub use pulse::PulseFile;
pub use record::{event_of, record_of};
pub use sqlite::{Administrator, Begun, Claim, Opened, Part, SCHEMA_VERSION, SqliteStore};
pub use store::{AUDIT_PAGE_BYTES, Store};
pub use way::{Exposed, ExposedTo, exposed_file};
