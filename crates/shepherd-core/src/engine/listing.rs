//! Lists entries with their availability (S3.2).

use jiff::Timestamp;
use shepherd_api::{EntryGrantView, EntryView, GrantView};
use shepherd_util::{ClockReading, ProfileId};

use super::CoreEngine;
use crate::evaluation::{EntryEvaluation, EntryHistory, EvaluationContext, EvaluationTime, NoObserver};
use crate::policy::PolicyEntry;

impl CoreEngine {
    /// Lists every entry of the default profile with its availability now (S3.2).
    #[must_use]
    pub fn list_entries(&self, now: ClockReading) -> Vec<EntryView> {
        self.list_entries_for(&self.policy.default_profile(), now)
    }

    /// Lists every entry of a profile with its availability now.
    #[must_use]
    pub fn list_entries_for(&self, profile: &ProfileId, now: ClockReading) -> Vec<EntryView> {
        self.entry_views(profile, self.evaluation_time(now))
    }

    /// Lists every entry of a profile with its availability at another time, as if no session were running. Today's
    /// usage counts if that time is today.
    #[must_use]
    pub fn list_entries_at(&self, profile: &ProfileId, at: Timestamp) -> Vec<EntryView> {
        self.entry_views(profile, self.evaluation_time_at(at))
    }

    fn entry_views(&self, profile: &ProfileId, at: EvaluationTime) -> Vec<EntryView> {
        let mut evaluation = EntryEvaluation::new(self.evaluation_context(at), profile, at);
        let entries = self.policy.entries();
        let mut views = Vec::with_capacity(entries.len());
        let histories = entries.iter().zip(evaluation.entry_histories());
        let own_entries = histories.filter(|(entry, _)| entry.is_for(profile));
        views.extend(
            own_entries.map(|(entry, history)| build_entry_view(&mut evaluation, entry, history, at)),
        );
        views
    }
}

/// Returns the view of one entry.
pub(super) fn evaluate_entry(
    context: &EvaluationContext<'_>,
    profile: &ProfileId,
    entry: &PolicyEntry,
    at: EvaluationTime,
) -> EntryView {
    let mut evaluation = EntryEvaluation::new(*context, profile, at);
    let history = evaluation.entry_history(entry);
    build_entry_view(&mut evaluation, entry, history, at)
}

fn build_entry_view(
    evaluation: &mut EntryEvaluation<'_>,
    entry: &PolicyEntry,
    history: EntryHistory<'_>,
    at: EvaluationTime,
) -> EntryView {
    let finding = evaluation.evaluate(entry, history, &mut NoObserver);
    let enabled = finding.reasons.is_empty();
    let next_available = if enabled { None } else { evaluation.next_available(entry, history, &finding) };
    EntryView {
        entry_id: entry.entry_id.clone(),
        label: entry.label.clone(),
        icon_ref: entry.icon_ref.clone(),
        kind: entry.kind.name().to_owned(),
        enabled,
        max_run_if_started_now: if enabled { finding.longest_run(at.wall).map(Into::into) } else { None },
        left_today: finding.left_today.map(Into::into),
        reasons: finding.reasons,
        next_available,
        grants: evaluation.valid_grants(entry).map(entry_grant_view).collect(),
    }
}

fn entry_grant_view(grant: &GrantView) -> EntryGrantView {
    EntryGrantView { gift: grant.gift, by: grant.by.clone(), lapses_at: grant.lapses_at }
}
