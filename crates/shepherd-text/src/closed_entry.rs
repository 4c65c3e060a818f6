//! Entries that extra time doesn't open, in words for people.

use jiff::Timestamp;
use shepherd_api::ReasonCode;
use shepherd_util::EntryId;

use crate::catalogue::SentenceCatalogue;

/// An entry that extra time doesn't open: its hours are closed, or another entry has to be used first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedEntry {
    /// Until when it is closed and why, such as "closed until Sat 10:00, because of its hours".
    pub until: String,
    /// True if another entry has to be used first. Longer hours don't help then.
    pub is_locked: bool,
}

impl SentenceCatalogue {
    /// Finds out from the reasons against an entry what keeps it closed in spite of extra time; `None` if nothing does.
    #[must_use]
    pub fn closed_entry(
        &self,
        reasons: &[ReasonCode],
        format_time: impl Fn(Timestamp) -> String,
        label_of: impl Fn(&EntryId) -> String,
    ) -> Option<ClosedEntry> {
        let hours = reasons.iter().find_map(|reason| match reason {
            ReasonCode::OutsideHours { next_opening: Some(at) } => {
                Some(self.closed_hours_until(&format_time(*at)))
            }
            ReasonCode::OutsideHours { next_opening: None } => Some(self.closed_hours()),
            ReasonCode::Bedtime { until: Some(at) } => Some(self.closed_bedtime_until(&format_time(*at))),
            ReasonCode::Bedtime { until: None } => Some(self.closed_bedtime()),
            _ => None,
        });
        let lock = reasons.iter().find_map(|reason| match reason {
            ReasonCode::NotUnlocked { entry_id, needed, .. } => {
                let needed = self.duration((*needed).into());
                // "1 minute is done", but "90 seconds are done".
                let number = if needed.starts_with("1 ") && needed.matches(' ').count() == 1 { 1 } else { 2 };
                Some(self.until_done(number, &needed, &label_of(entry_id)))
            }
            _ => None,
        });
        let is_locked = lock.is_some();
        let until = match (hours, lock) {
            (Some(hours), Some(lock)) => self.closed_twice(&hours, &lock),
            (Some(hours), None) => hours,
            (None, Some(lock)) => self.closed_lock(&lock),
            (None, None) => return None,
        };
        Some(ClosedEntry { until, is_locked })
    }
}
