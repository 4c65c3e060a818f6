//! The protocol between Shepherd's daemon and its clients: plain, versioned types.
//!
//! This crate contains data only: it decides nothing and reads no clock, file or socket. Durations are [`Millis`],
//! points in time are UTC timestamps, and every denial lists its reasons as [`ReasonCode`]s.
//!
//! A connection carries one JSON object per line. The client sends [`ClientHello`] and the daemon answers
//! [`ServerWelcome`]; then the client sends [`ApiRequest`]s, and the daemon sends [`ApiResponse`]s and [`Event`]s:
//!
//! ```text
//! → {"type":"hello","api_version":1,"client":"launcher"}
//! ← {"type":"welcome","api_version":1,"speaks":1,…}
//! → {"type":"request","id":1,"command":{"type":"launch","entry_id":"tuxmath"}}
//! ← {"type":"response","id":1,"result":{"ok":{"type":"launched","session":{…}}}}
//! ← {"type":"event","event":{"at":"…","type":"warning_issued",…}}
//! ```
//!
//! # Compatible additions
//!
//! Both sides handle additions that they don't know differently, because a misunderstanding has different costs:
//!
//! - The **daemon is strict**: it refuses an unknown command or field with its own error code. If it
//!   ignored a field that sets a limit, the limit would not be enforced.
//! - **Clients are lenient**: they ignore unknown fields and read unknown messages, events, replies, reasons and error
//!   codes as `Unknown`, so that a daemon can send more than an older client understands.
//!
//! A client leaves a new optional field of a command out where it has nothing to say. If an older daemon refuses a field
//! that the client can do without, the client sends the command again without the field.
//!
//! New commands, new optional fields and new variants of enums that have `Unknown` are therefore compatible.
//! Every other change, including a new variant of an enum without `Unknown`, is breaking and raises [`API_VERSION`].
//!
//! Start at [`Command`] and [`EventKind`]; [`ClientState`] is the state that a front end keeps.

#![warn(missing_docs)]

mod audit;
mod client;
mod command;
mod display;
mod entry;
mod error;
mod event;
mod grant;
mod handshake;
mod health;
mod language;
mod login;
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
pub use display::ClientDisplay;
pub use entry::{EntryGrantView, EntryKind, EntryView};
pub use error::{ApiError, ErrorCode};
pub use event::{Event, EventKind};
pub use grant::{EntryScope, GrantKind, GrantView, TimeRequestState, TimeRequestView};
pub use handshake::{ClientHello, ClientRole, ServerWelcome};
pub use health::{HealthCheck, HealthView, RejectedPolicyView};
pub use language::Language;
pub use login::{LOGIN_WITHOUT_DAEMON, LoginAnswer};
pub use message::{ApiRequest, ApiResponse, ClientMessage, CommandResult, MessageParseError, ServerMessage};
pub use millis::Millis;
pub use note::{MAX_NOTE_LENGTH, Note, NoteError};
pub use pin::{AdminPin, MAX_PIN_LENGTH, MIN_PIN_LENGTH, PinFormatError};
pub use reason::{PolicyItem, QuotaKind, ReasonCode};
pub use reply::{AuditRecord, CommandReply};
pub use session::{
    DaemonStateSnapshot, EndReason, ProfileView, SessionCounting, SessionLogView, SessionPhase, SessionSlot,
    SessionView, StopMode, StopRequester, WarningSeverity,
};
pub use usage::UsageView;
pub use why::{
    EntryTimeline, ExplanationView, RuleOutcomeView, RuleView, TimeInterval, TimelineView, UnlockView,
};

/// The version of the protocol. Both sides send theirs in the first message.
pub const API_VERSION: u32 = 1;

/// The oldest version of the protocol that this code still supports.
pub const OLDEST_API_VERSION: u32 = 1;
