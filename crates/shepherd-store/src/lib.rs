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

mod audit;
mod folder;
mod heartbeat;
mod path_exposure;
mod quarantine;

mod sqlite;

pub use audit::{AuditCheck, AuditLogError, WHOLE_CHECK_BYTES, audit_format, read_audit_log};
pub use error::{AuditEventError, StoreDamage, StoreError, StoreOpenError};
pub use folder::audit_log_path;
pub use heartbeat::HeartbeatFile;
pub use memory::{CommitFailure, MemoryBackend, MemoryStore};
pub use path_exposure::{ExposedPath, ExposedTo, find_exposed_for_file};
pub use quarantine::QuarantineLocation;
pub use record::{event_to_record, record_to_event};
pub use sqlite::{
    ResetPartOutcome, ResetReport, ResetRequest, SCHEMA_VERSION, SqliteStore, StoreClaim, StoreOpenReport,
};
pub use store::{AUDIT_PAGE_BYTES, Store};
