//! Extra time that makes runs longer (S2.7). A grant gives its time once: what one run has used of it beyond the
//! ordinary limits is gone for the next run of the day.

use std::time::Duration;

use shepherd_api::{EntryScope, GrantKind, GrantView};
use shepherd_util::{BudgetId, ClockReading, GrantId, ProfileId};

use super::CoreEngine;
use super::errors::GrantError;
use crate::evaluation::EvaluationTime;
use crate::policy::{DailyQuota, Day, PolicyEntry, TimeCost};
use crate::session::{SessionExtension, SessionRecord};
use crate::state::ExtraRunUse;

impl CoreEngine {
    /// Returns by how much each grant makes a run longer that begins now, within what quotas and budgets leave.
    pub(super) fn extensions_at_launch(
        &self,
        profile: &ProfileId,
        entry: &PolicyEntry,
        at: EvaluationTime,
    ) -> Vec<SessionExtension> {
        let facts = self.evaluation_context(at);
        let in_a_row = self.streak_so_far(profile, at);
        let before_break = self.policy.rules().breaks.map(|rule| rule.after.saturating_sub(in_a_row));
        let ordinary = [entry.limits.max_run, before_break].into_iter().flatten().min();
        let Some(mut length) = ordinary else { return Vec::new() };
        let most = facts.quota_left(profile, entry, at).unwrap_or(Duration::MAX);
        let extensions = facts.extra_runs(profile, entry, at).into_iter().map(|(grant_id, extra)| {
            let before = length.min(most);
            length = length.saturating_add(extra);
            SessionExtension {
                grant_id,
                run: length.min(most).saturating_sub(before),
                window: Duration::ZERO,
            }
        });
        extensions.filter(|more| !more.run.is_zero()).collect()
    }

    /// Records the extra time that a session has used beyond the ordinary limits of a run.
    pub(super) fn use_up_extra_run(&mut self, session: &SessionRecord, now: ClockReading) {
        // A session whose entry is gone from the policy has used all of its extra time, as far as is known.
        let entry = self.policy.entry(&session.entry_id);
        let max_run = entry.map_or(Some(Duration::ZERO), |entry| entry.limits.max_run);
        let beyond_run = max_run.map(|max_run| session.charged.saturating_sub(max_run));
        let in_a_row = session.played_in_a_row();
        let beyond_break = self.policy.rules().breaks.map(|rule| in_a_row.saturating_sub(rule.after));
        let mut left = beyond_run.max(beyond_break).unwrap_or_default();
        let longer: Vec<_> = session.extensions.iter().filter(|more| !self.is_of_budget(more)).collect();
        for more in longer {
            let used = more.run.min(left);
            left = left.saturating_sub(used);
            self.add_extra_run_use(&more.grant_id, &session.profile, used, now);
        }
    }

    /// Returns whether a session was extended by more of a budget, which makes no run longer than its ordinary limits.
    pub(super) fn is_of_budget(&self, more: &SessionExtension) -> bool {
        let mut grants = self.snapshot.grants.iter().filter(|grant| grant.grant_id == more.grant_id);
        grants.any(|grant| matches!(grant.scope, EntryScope::Budget { .. }))
    }

    /// Adds to the used part of a grant's extra time on this day.
    pub(super) fn add_extra_run_use(
        &mut self,
        grant_id: &GrantId,
        profile: &ProfileId,
        used: Duration,
        now: ClockReading,
    ) {
        if used.is_zero() {
            return;
        }
        let day = self.evaluation_time(now).day;
        let uses = &mut self.snapshot.extra_runs;
        match uses.iter_mut().find(|known| known.grant_id == *grant_id && known.profile == *profile) {
            Some(known) if known.day == day => known.used = known.used.saturating_add(used),
            Some(known) => (known.day, known.used) = (day, used),
            None => {
                let (grant_id, profile) = (grant_id.clone(), profile.clone());
                uses.push(ExtraRunUse { grant_id, profile, day, used });
            }
        }
    }

    /// Checks that extra time would change anything: a limit of the entry or budget that it can raise.
    pub(super) fn check_effect(&self, grant: &GrantView) -> Result<(), GrantError> {
        let is_extra = matches!(grant.gift, GrantKind::Extra { .. });
        // A running session may have a limit that the policy doesn't have any more.
        let extends_session = |session: &SessionRecord| session.ends.run.is_some();
        if !is_extra || self.sessions_for_grant(grant).any(extends_session) {
            return Ok(());
        }
        let days: Vec<Day> = {
            let (first, last) = self.grant_days(grant).into_inner();
            // Quotas differ by weekday, so a week shows all of them.
            (first.0..=last.0.min(first.0.saturating_add(6))).map(Day).collect()
        };
        let breaks = self.policy.rules().breaks.is_some();
        let has_quota = |daily: &DailyQuota, weekly: Option<Duration>| {
            weekly.is_some() || days.iter().any(|day| daily.limits_day(*day))
        };
        let has_budget = |id: &BudgetId| {
            let budget = self.policy.rules().budgets.get(id);
            budget.is_some_and(|budget| has_quota(&budget.daily, budget.weekly))
        };
        let can_be_raised = |entry: &PolicyEntry| {
            let limits = &entry.limits;
            let counts = entry.cost == TimeCost::Counts;
            limits.max_run.is_some()
                || breaks
                || (counts && has_quota(&limits.daily_quota, limits.weekly_quota))
                || (counts && entry.budgets.iter().any(has_budget))
        };
        let is_theirs =
            |entry: &PolicyEntry| grant.profile.as_ref().is_none_or(|profile| entry.is_for(profile));
        match &grant.scope {
            EntryScope::Entry { entry_id } => {
                let entry = self.policy.entry(entry_id);
                let entry = entry.ok_or_else(|| GrantError::UnknownEntry(entry_id.clone()))?;
                match grant.profile.as_ref().filter(|_| !is_theirs(entry)) {
                    Some(profile) => Err(GrantError::NotForProfile(entry_id.clone(), profile.clone())),
                    None if can_be_raised(entry) => Ok(()),
                    None => Err(GrantError::NothingToExtend(entry_id.clone())),
                }
            }
            EntryScope::Budget { budget_id } if has_budget(budget_id) => Ok(()),
            EntryScope::Budget { budget_id } => Err(GrantError::BudgetWithoutLimit(budget_id.clone())),
            EntryScope::Everything {} => {
                let mut theirs = self.policy.entries().iter().filter(|entry| is_theirs(entry));
                if theirs.any(can_be_raised) { Ok(()) } else { Err(GrantError::NoLimits) }
            }
        }
    }
}
