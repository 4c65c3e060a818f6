//! The vocabulary of Shepherd: clocks, ids, durations, paths, accounts, rate limits, chains of errors.
//!
//! Nothing here decides anything, and only [`SystemClock`] and [`BootId::read`] touch the world. Everything else
//! is values and pure functions, so that the crates that decide can use it without losing their purity.
//!
//! Start at [`Now`]: it is what every decision is given.

mod accounts;
mod clock;
mod duration;
mod human;
mod id;
mod paths;
mod rate;

pub use accounts::{GroupLine, UserLine, group_lines, user_lines};
pub use clock::{
    BootId, BootIdError, BootInstant, Clock, Counting, Deadline, ManualClock, MonotonicInstant, Now,
    SystemClock, WallTime,
};
pub use duration::{
    DurationError, DurationProblem, DurationText, MAX_DURATION, format_duration, parse_duration,
};
pub use human::HumanDuration;
pub use id::{
    BudgetId, ClientId, EntryId, GrantId, IdError, IdProblem, MAX_NAME_LENGTH, ProfileId, RequestId,
    SessionId,
};
pub use paths::{Environment, MAX_SOCKET_PATH, PathError, Paths};
pub use rate::{KeyedLimiter, RateLimit, TokenBucket, Wait};
pub use ward_diag::Chain;
