//! What Shepherd and its clients say to each other: plain, versioned types.
//!
//! Everything here is data. Nothing decides, nothing reads a clock, a file or a socket. Lengths of time are
//! [`Millis`], moments are UTC timestamps, and every answer that is a "no" carries [`ReasonCode`]s with their
//! evidence.
//!
//! A conversation is one JSON object a line. The client says [`ClientHello`], the daemon answers [`ServerWelcome`]; then
//! [`Request`]s go one way, [`ApiResponse`]s and [`Event`]s the other:
//!
//! ```text
//! → {"type":"hello","api_version":1,"client":"launcher"}
//! ← {"type":"welcome","api_version":1,"speaks":1,…}
//! → {"type":"request","id":1,"command":{"type":"launch","entry_id":"tuxmath"}}
//! ← {"type":"response","id":1,"result":{"ok":{"type":"launched","session":{…}}}}
//! ← {"type":"event","event":{"at":"…","type":"warning_issued",…}}
//! ```
//!
//! # What is a compatible addition
//!
//! The two directions differ, because a misunderstanding costs differently:
//!
//! - The **daemon is strict**: it refuses a command or a field of a command that it does not know, with a code that
//!   says so. A limit that it overlooked would be a limit that is not there.
//! - **Clients are lenient**: they pass over fields that they do not know, and read unknown messages, events, replies,
//!   reasons and error codes as `Unknown`. So a daemon can say more than an older client understands.
//!
//! New commands, new optional fields and new variants where there is an `Unknown` are therefore compatible.
//! Everything else, a new variant of another enum included, is breaking and raises [`API_VERSION`].
//!
//! Start at [`Command`] and [`EventKind`]; [`ClientState`] is what a front end keeps.

#![warn(missing_docs)]

mod audit;
mod client;
mod command;
mod entry;
mod error;
mod event;
mod grant;
mod handshake;
mod health;
mod message;
mod millis;
mod note;
mod permission;
mod pin;
mod reason;
mod reply;
mod session;
mod usage;
mod why;

pub use audit::{AuditEvent, AuditKind};
pub use client::{ClientState, RequiredRefresh};
pub use command::{Command, TimeRequestDecision};
pub use entry::{EntryKind, EntryView};
pub use error::{ApiError, ErrorCode};
pub use event::{Event, EventKind};
pub use grant::{EntryScope, GrantKind, GrantView, TimeRequestState, TimeRequestView};
pub use handshake::{ClientHello, ClientRole, ServerWelcome};
pub use health::{HealthCheck, HealthView};
pub use message::{ApiRequest, ApiResponse, ClientMessage, CommandResult, MessageParseError, ServerMessage};
pub use millis::Millis;
pub use note::{MAX_NOTE_LENGTH, Note, NoteError};
pub use pin::{AdminPin, MAX_PIN_LENGTH, MIN_PIN_LENGTH, PinFormatError};
pub use reason::{QuotaKind, ReasonCode};
pub use reply::{AuditRecord, CommandReply};
pub use session::{
    DaemonStateSnapshot, EndReason, SessionPhase, SessionView, StopMode, StopRequester, WarningSeverity,
};
pub use usage::UsageView;
pub use why::{EntryTimeline, ExplanationView, RuleOutcomeView, RuleView, TimeInterval, TimelineView};

/// The version of the protocol. Both sides say theirs in the first message.
pub const API_VERSION: u32 = 1;

/// The oldest version that this code still speaks.
pub const OLDEST_API_VERSION: u32 = 1;
