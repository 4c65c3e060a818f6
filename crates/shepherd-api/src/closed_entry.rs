//! Entries that extra time doesn't open, in words for people.

use jiff::Timestamp;
use shepherd_util::{EntryId, HumanDuration};

use crate::ReasonCode;

/// An entry that extra time doesn't open: its hours are closed, or another entry has to be used first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedEntry {
    /// Until when it is closed and why, such as "closed until Sat 10:00, because of its hours".
    pub until: String,
    /// True if another entry has to be used first. Longer hours don't help then.
    pub is_locked: bool,
}

impl ClosedEntry {
    /// Finds out from the reasons against an entry what keeps it closed in spite of extra time; `None` if nothing does.
    #[must_use]
    pub fn from_reasons(
        reasons: &[ReasonCode],
        format_time: impl Fn(Timestamp) -> String,
        label_of: impl Fn(&EntryId) -> String,
    ) -> Option<Self> {
        let hours = reasons.iter().find_map(|reason| match reason {
            ReasonCode::OutsideHours { next_opening } => {
                let until = next_opening.map_or(String::new(), |at| format!(" until {}", format_time(at)));
                Some(format!("closed{until}, because of its hours"))
            }
            ReasonCode::Bedtime { until } => {
                let until = until.map_or(String::new(), |at| format!(" until {}", format_time(at)));
                Some(format!("closed{until}, because it is bedtime"))
            }
            _ => None,
        });
        let lock = reasons.iter().find_map(|reason| match reason {
            ReasonCode::NotUnlocked { entry_id, needed, .. } => {
                let (needed, first) = (HumanDuration((*needed).into()).to_string(), label_of(entry_id));
                let is_one = matches!(needed.as_str(), "1 second" | "1 minute" | "1 hour");
                Some(format!("until {needed} of {first} {} done", if is_one { "is" } else { "are" }))
            }
            _ => None,
        });
        let is_locked = lock.is_some();
        let until = match (hours, lock) {
            (Some(hours), Some(lock)) => format!("{hours}, and {lock}"),
            (Some(hours), None) => hours,
            (None, Some(lock)) => format!("closed {lock}"),
            (None, None) => return None,
        };
        Some(Self { until, is_locked })
    }

    /// Says that the entry stays closed.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!("It stays {}.", self.until)
    }
}
