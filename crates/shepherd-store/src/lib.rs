//! Shepherd's durable memory: usage, cooldowns, sessions and the audit log.
//!
//! A [`Store`] takes the writes of one step of the engine as one batch: when it returns, all of them are on disk, or
//! none is. Everything is read once, at the start. The store never reads a clock, never decides and never guesses:
//! unreadable or damaged data is an error, never "nothing used yet".
//!
//! Start with [`Store`], then [`SqliteStore`]; `sqlite/open.rs` explains how damage is found and handled.
//! [`MemoryStore`] is for tests, and [`conformance`] has the checks for every store.

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
