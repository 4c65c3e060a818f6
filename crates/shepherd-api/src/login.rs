//! Log-ins: whether an account may log in to the machine now, and the sentence for the person who may not (S19.2).

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::{EntryId, ProfileId};

use crate::{PolicyItem, QuotaKind, ReasonCode};

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

/// Returns the sentence for a person who may not log in now, such as "Not at this time. The computer opens at 15:00."
#[must_use]
pub fn login_refusal_sentence(
    reasons: &[ReasonCode],
    opens: Option<Timestamp>,
    (now, zone): (Timestamp, &TimeZone),
    label_of: impl Fn(PolicyItem<'_>) -> Option<String>,
) -> String {
    let today = now.to_zoned(zone.clone()).date();
    let when = |at: Timestamp| opening_time(at, today, zone);
    // A person can do something about any other reason.
    let is_of_machine = |reason: &&ReasonCode| matches!(reason, ReasonCode::HostCannotRun { .. });
    let cause = match reasons.iter().find(|reason| !is_of_machine(reason)).or(reasons.first()) {
        None | Some(ReasonCode::OutsideHours { .. }) => "Not at this time.".to_owned(),
        Some(ReasonCode::Cooldown { .. } | ReasonCode::BreakNeeded { .. }) => "Time for a break.".to_owned(),
        Some(ReasonCode::QuotaExhausted { quota, .. }) => match quota {
            QuotaKind::EntryDaily | QuotaKind::BudgetDaily(_) => "The time for today is used up.".to_owned(),
            QuotaKind::EntryWeekly | QuotaKind::BudgetWeekly(_) => {
                "The time for this week is used up.".to_owned()
            }
        },
        Some(ReasonCode::StoreUnavailable { .. }) => {
            "Not now, because used time can't be recorded. Ask a parent.".to_owned()
        }
        Some(ReasonCode::HostCannotRun { .. }) => {
            "Not now, because this computer doesn't tell Shepherd who is logged in. Ask a parent.".to_owned()
        }
        Some(reason) => reason.sentence_with(when, label_of),
    };
    match opens {
        Some(at) => format!("{cause} The computer opens {}.", when(at)),
        None => cause,
    }
}

/// Writes a moment as people say it on `today`: "at 15:00", "tomorrow at 15:00", "on Friday at 15:00".
fn opening_time(at: Timestamp, today: Date, zone: &TimeZone) -> String {
    let local = at.to_zoned(zone.clone());
    let time = local.strftime("%H:%M");
    match today.until(local.date()).map(|span| span.get_days()) {
        Ok(0) => format!("at {time}"),
        Ok(1) => format!("tomorrow at {time}"),
        Ok(2..=6) => format!("{} at {time}", local.strftime("on %A")),
        _ => format!("{} at {time}", local.strftime("on %-d %B")),
    }
}
