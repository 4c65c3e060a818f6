//! The vocabulary of Shepherd: clocks, ids, durations, paths, accounts, rate limits, chains of errors.
//!
//! Nothing here decides anything, and only [`SystemClock`] and [`BootId::read`] touch the world. Everything else
//! is values and pure functions, so that the crates that decide can use it without losing their purity.
//!
//! Start at [`ClockReading`]: it is what every decision is given.

mod accounts;
mod clock;
mod duration;
mod human;
mod id;
mod paths;
mod rate;

pub use accounts::{GroupEntry, PasswdEntry, parse_group, parse_passwd};
pub use clock::{
    BootId, BootIdError, BootInstant, Clock, ClockReading, Deadline, DeadlineClock, ManualClock,
    MonotonicInstant, SystemClock, WallTime,
};
pub use duration::{
    DurationError, DurationProblem, DurationText, MAX_DURATION, format_duration, parse_duration,
};
pub use human::HumanDuration;
pub use id::{
    BudgetId, ClientId, EntryId, GrantId, IdError, IdProblem, MAX_NAME_LENGTH, ProfileId, RequestId,
    SessionId,
};
pub use paths::{EnvironmentVariables, MAX_SOCKET_PATH, PathError, ShepherdPaths};
pub use rate::{KeyedLimiter, RateLimit, RateLimitExceeded, TokenBucket};
pub use ward_diag::ErrorChain;
