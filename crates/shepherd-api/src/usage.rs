//! How much was used.

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::ProfileId;

use crate::{EntryScope, Millis};

/// Use on one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageView {
    /// On which accounting day.
    pub day: Date,
    /// By whom.
    #[schemars(with = "String")]
    pub profile: ProfileId,
    /// Of what.
    pub of: EntryScope,
    /// How much.
    pub used: Millis,
    /// How much there was on that day, grants included; absent if without limit.
    pub limit: Option<Millis>,
}
