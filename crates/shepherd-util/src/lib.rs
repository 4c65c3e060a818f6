//! The basic types of Shepherd: clocks, ids, durations, paths, accounts, rate limits and error chains.
//!
//! This crate contains no policy decisions. Only [`SystemClock`] and [`BootId::read`] do I/O; everything else
//! is values and pure functions, so that the engine can use them and stay pure itself.
//!
//! Start with [`ClockReading`]: every decision takes a reading as input.

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
pub use human::{DurationUnit, ExactDuration, HumanDuration, MeasuredDuration};
pub use id::{
    BudgetId, ClientId, EntryId, GrantId, IdError, IdProblem, MAX_NAME_LENGTH, ProfileId, RequestId,
    SessionId,
};
pub use paths::{EnvironmentVariables, MAX_SOCKET_PATH, PathError, ShepherdPaths};
pub use rate::{KeyedLimiter, RateLimit, RateLimitExceeded, TokenBucket};
pub use ward_diag::ErrorChain;
