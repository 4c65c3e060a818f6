//! The policy engine: policy, sessions and time, as pure functions.
//!
//! [`CoreEngine`] is told what happens and when, and returns what must be done as [`Effects`]. It reads no clock, no
//! file, no environment and no randomness: the same policy, stored state and moments give the same effects, byte for
//! byte. Start with `engine.rs`, which shows the whole state machine, and `engine/effect.rs`; then read
//! `evaluation.rs`, the one place that decides whether an entry may run, and `evaluation/rules.rs`.
//!
//! The engine never acts, waits, logs, or asks the store.

pub mod policy;

mod capability;
mod session;
mod session_table;
mod state;
mod user_display;

mod civil;
mod evaluation;
mod hours;
mod usage;

mod engine;

pub use capability::HostCapabilities;
pub use engine::{
    AdoptionDecision, AdoptionRequest, CLOCK_JITTER, CoreEngine, CoreEvent, Effect, Effects,
    EngineEnvironment, EngineReply, ExitInfo, ExtendedSession, GrantError, GrantedRequest, LaunchDecision,
    LaunchNotAwaited, LaunchRequest, LoginCheck, LoginSupport, NewGrant, NewTimeRequest, ProvisionalGrant,
    QueryError, SessionLiveness, ShutdownDecision, StopDecision, StopRequest, UnknownModeError,
    WarningMessage,
};
pub use session::{
    ScheduledWarning, SessionDeadlines, SessionExtension, SessionPlan, SessionRecord, SessionStage,
};
pub use session_table::SessionTable;
pub use state::{
    ClockCorrection, ClockRecord, DaemonHeartbeat, EngineSnapshot, ExtraRunUse, HEARTBEAT_INTERVAL, PauseEnd,
    PlayStreak, StoreWrite, StoredState, UsageAmount, UsageCounter, UsageKey,
};
pub use user_display::UserDisplay;
