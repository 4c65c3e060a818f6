//! The judge: policy, sessions and time, as pure functions.

mod grant;
pub mod policy;
mod session;
mod state;

pub use grant::{Gift, Grant, GrantScope, RequestState, TimeRequest};
pub use session::{Ends, ScheduledWarning, SessionPlan, SessionRecord, Stage};
pub use state::{ClockRecord, Counter, Snapshot, StoreWrite, StoredState, Streak, Until, UsageKey};
