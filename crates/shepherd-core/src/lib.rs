//! The judge: policy, sessions and time, as pure functions.
//!
//! [`CoreEngine`] is told what happens and when, and says what must be done. It reads no clock, no file, no
//! environment and no randomness; given the same policy, the same stored state and the same moments it says the
//! same, byte for byte. Start with [`engine.rs`](CoreEngine), whose picture is the whole state machine, and [`SessionStage`];
//! then read `judge.rs`, the one place where it is decided whether an entry may run, and `judge/hearing.rs`, its rules.
//!
//! What it never does: act, wait, log, or ask the store.

pub mod policy;

mod capability;
mod session;
mod state;

mod civil;
mod evaluation;
mod hours;
mod usage;

mod engine;

pub use capability::HostCapabilities;
pub use engine::{
    CLOCK_JITTER, CoreEngine, CoreEvent, EngineEnvironment, ExitInfo, GrantError, LaunchDecision,
    LaunchNotAwaited, LaunchRequest, NewGrant, NewTimeRequest, QueryError, SessionLiveness, StopDecision,
    StopRequest, UndoAction, UnknownModeError,
};
pub use session::{
    ScheduledWarning, SessionDeadlines, SessionExtension, SessionPlan, SessionRecord, SessionStage,
};
pub use state::{
    ClockRecord, DaemonHeartbeat, EngineSnapshot, HEARTBEAT_INTERVAL, PauseEnd, PlayStreak, StoreWrite,
    StoredState, UsageCounter, UsageKey,
};
