//! Log-ins: whether an account may log in to the machine now (S19.2).

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::{EntryId, ProfileId};

use crate::ReasonCode;

/// The sentence for a log-in that is refused because no daemon can be asked.
pub const LOGIN_WITHOUT_DAEMON: &str = "Not now, because Shepherd isn't running. Ask a parent.";

/// Whether an account may log in now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum LoginAnswer {
    /// The policy doesn't limit the logins of this account.
    Unlimited,
    /// The account may log in now.
    Allowed {
        /// The profile whose time is used.
        #[schemars(with = "String")]
        profile: ProfileId,
        /// The entry that stands for being logged in.
        #[schemars(with = "String")]
        entry_id: EntryId,
    },
    /// The account may not log in now.
    Refused {
        /// The profile of the account.
        #[schemars(with = "String")]
        profile: ProfileId,
        /// The entry that stands for being logged in.
        #[schemars(with = "String")]
        entry_id: EntryId,
        /// All reasons against the log-in.
        reasons: Vec<ReasonCode>,
        /// The next moment at which the account may log in, if that can be known.
        opens: Option<Timestamp>,
        /// The sentence for the person who wants to log in.
        sentence: String,
    },
    /// An answer that this client is too old to know. Never sent.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}
