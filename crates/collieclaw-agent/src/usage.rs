//! What was asked of models, what it took, and how much of it is allowed.
//!
//! Every call is written down before it is made, with an estimate, and again when it has ended: whoever is killed in
//! between has still been counted. It is kept in a file of its own beside the memory, holds no word of what was said,
//! and stays when the memory is cleared: a limit that could be cleared away would be none.

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
