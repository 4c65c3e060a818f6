//! Records of model requests with their cost, and limits on them.
//!
//! Every request is recorded with an estimate before it is sent, and updated when it has ended, so that
//! requests of a killed process count as well. The records are in a separate file, contain no text of
//! conversations, and stay when the memory is cleared; otherwise clearing the memory would reset the limits.

mod amount;
mod budget;
mod daily_sums;
mod database;
mod error;
mod metered;
mod report;
mod totals;

pub use amount::{CostAmount, TokenPrice, TokenRate};
pub use budget::{LimitReached, UsageBudget};
pub use database::{ProviderCallEnd, ProviderCallStart, UsageDatabase};
pub use error::UsageError;
pub use metered::{CONVERSATION_KEY, MeteredProvider};
pub use report::{UsageGrouping, UsageReport, UsageShare, UsageTotals};
