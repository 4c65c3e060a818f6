//! The rule about bedtime (S19.4).

use jiff::Timestamp;
use shepherd_api::ReasonCode;

use super::rules::EntryEvaluation;
use super::{FindingBuilder, RuleObserver, RuleVerdict};
use crate::hours::{BedtimeHours, BedtimeState};
use crate::policy::PolicyEntry;

/// A profile's bedtime at the evaluated moment. It is looked up once, because it is the same for all entries.
#[derive(Clone, Copy)]
pub(super) struct BedtimeNow<'a> {
    pub(super) hours: BedtimeHours<'a>,
    state: BedtimeState,
}

impl<'a> BedtimeNow<'a> {
    pub(super) fn new(hours: BedtimeHours<'a>, at: Timestamp) -> Self {
        Self { hours, state: hours.state_at(at) }
    }
}

impl EntryEvaluation<'_> {
    /// Closes an entry during bedtime, and limits a run to the beginning of bedtime.
    pub(super) fn check_bedtime<W: RuleObserver>(
        &self,
        entry: &PolicyEntry,
        findings: &mut FindingBuilder<'_, W>,
    ) {
        let Some(BedtimeNow { hours, state }) = self.bedtime else { return };
        let granted = self.granted_open_until(entry);
        let verdict = match (state, granted) {
            (BedtimeState::Awake { begins: None }, _) => RuleVerdict::Passes,
            (BedtimeState::Awake { begins: Some(begins) }, granted) => RuleVerdict::LimitsUntil(
                granted.map_or(begins, |granted| hours.extend_to_bedtime(begins.max(granted))),
            ),
            (BedtimeState::Asleep { .. }, Some(granted)) => {
                RuleVerdict::LimitsUntil(hours.extend_to_bedtime(granted))
            }
            (BedtimeState::Asleep { ends }, None) => {
                let until = self.next_granted_opening(entry).into_iter().chain(ends).min();
                RuleVerdict::Refuses(ReasonCode::Bedtime { until })
            }
        };
        let detail = || {
            let state = match (state, granted) {
                (BedtimeState::Awake { .. }, _) => "not bedtime",
                (BedtimeState::Asleep { .. }, Some(_)) => "bedtime, but opened by a grant",
                (BedtimeState::Asleep { .. }, None) => "bedtime",
            };
            format!("{state}{}", self.zone_remark())
        };
        findings.record_verdict("bedtime", detail, verdict);
    }
}
