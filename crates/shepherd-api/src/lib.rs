//! What Shepherd and its clients say to each other: plain, versioned types.
//!
//! Everything here is data. Nothing decides, nothing reads a clock, a file or a socket. Lengths of time are
//! [`Millis`], moments are UTC timestamps, and every answer that is a "no" carries [`ReasonCode`]s with their
//! evidence. Additions are compatible; a breaking change raises [`API_VERSION`].

mod audit;
mod entry;
mod millis;
mod reason;
mod session;

pub use audit::{AuditEvent, AuditKind};
pub use entry::{EntryKind, EntryView};
pub use millis::Millis;
pub use reason::{Quota, ReasonCode};
pub use session::{
    DaemonStateSnapshot, EndReason, Severity, SessionPhase, SessionView, StopMode, StopRequester,
};

/// The version of the protocol. Both sides say theirs in the first message.
pub const API_VERSION: u32 = 1;
