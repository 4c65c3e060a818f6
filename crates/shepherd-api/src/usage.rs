//! Used time as clients see it.

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::ProfileId;

use crate::{EntryScope, Millis};

/// The time that a profile used of one entry or budget on one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageView {
    /// The day that the time is charged to.
    pub day: Date,
    /// The profile whose time is counted.
    #[schemars(with = "String")]
    pub profile: ProfileId,
    /// The entry or budget that was used.
    pub of: EntryScope,
    /// The time that was used.
    pub used: Millis,
    /// The limit of that day, including earned and granted time; absent if there is no limit.
    pub limit: Option<Millis>,
}
