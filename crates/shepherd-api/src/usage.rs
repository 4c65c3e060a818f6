//! Usage records as clients see them.

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::ProfileId;

use crate::{EntryScope, Millis};

/// The usage of one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageView {
    /// The accounting day of the usage.
    pub day: Date,
    /// The profile that used the time.
    #[schemars(with = "String")]
    pub profile: ProfileId,
    /// The entry or budget that was used.
    pub of: EntryScope,
    /// The time that was used.
    pub used: Millis,
    /// The limit of that day, including grants; absent if there is none.
    pub limit: Option<Millis>,
}
