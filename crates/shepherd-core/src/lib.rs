//! The judge: policy, sessions and time, as pure functions.
//!
//! [`CoreEngine`] is told what happens and when, and says what must be done. It reads no clock, no file, no
//! environment and no randomness; given the same policy, the same stored state and the same moments it says the
//! same, byte for byte. Start with [`engine.rs`](CoreEngine), whose picture is the whole state machine, and [`Stage`];
//! then read `judge.rs`, the one place where it is decided whether an entry may run, and `judge/hearing.rs`, its rules.
//!
//! What it never does: act, wait, log, or ask the store.

pub mod policy;

mod capability;
mod session;
mod state;

mod civil;
mod hours;
mod judge;
mod usage;

mod engine;

pub use capability::HostCapabilities;
pub use engine::{
    AskError, CoreEngine, CoreEvent, ExitInfo, GiftError, JITTER, LaunchDecision, LaunchRequest, NewGrant,
    NewRequest, NotAwaited, Place, SessionFate, StopDecision, StopRequest, Undo, UnknownMode,
};
pub use session::{Ends, Extension, ScheduledWarning, SessionPlan, SessionRecord, Stage};
pub use state::{
    ClockRecord, Counter, PULSE, Pulse, Snapshot, StoreWrite, StoredState, Streak, Until, UsageKey,
};
