//! What was asked of models, what it took, and how much of it is allowed.
//!
//! Every call is written down before it is made, with an estimate, and again when it has ended: whoever is killed in
//! between has still been counted. It is kept in a file of its own beside the memory, holds no word of what was said,
//! and stays when the memory is cleared: a limit that could be cleared away would be none.

mod accounts;
mod amount;
mod budget;
mod error;
mod fold;
mod metered;
mod report;
mod sums;

pub mod estimate;

pub use accounts::{Accounts, Begun, Ended};
pub use amount::{Amount, Price, Rate};
pub use budget::{Budget, LimitReached};
pub use error::UsageError;
pub use metered::{CONVERSATION, Metered};
pub use report::{By, Share, Totals, Usage};
