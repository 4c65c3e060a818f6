//! What grants do to the session that runs: its ends are moved, and its warnings with them (S2.7, S3.5b).

use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{AuditKind, EntryScope, GrantKind, GrantView};
use shepherd_util::{ClockReading, Deadline, DeadlineClock, GrantId};

use super::errors::GrantError;
use super::grants::{GrantReach, NewGrant};
use super::reload::{earlier_deadline, is_outside_hours};
use super::{CoreEngine, CoreEvent, POLICY_ACTOR};
use crate::session::{SessionExtension, SessionRecord};

impl CoreEngine {
    /// Lets the session go on for longer, past everything but the ceiling, also while its program comes up. It is a
    /// grant like any other.
    ///
    /// # Errors
    /// When there is no session, it is being ended, or the ceiling forbids it.
    pub fn extend_current(
        &mut self,
        by: Duration,
        grant_id: &GrantId,
        actor: &str,
        now: ClockReading,
    ) -> Result<Vec<CoreEvent>, GrantError> {
        self.observe(now);
        let session = match &self.snapshot.session {
            None => Err(GrantError::NoSession),
            Some(session) if session.stage.end_reason().is_some() => Err(GrantError::SessionEnding),
            Some(session) => Ok(session),
        }?;
        let new = NewGrant {
            grant_id: grant_id.clone(),
            profile: Some(session.profile.clone()),
            scope: EntryScope::Entry { entry_id: session.entry_id.clone() },
            gift: GrantKind::Extra { amount: by.into() },
            why: Some("the running session was extended".to_owned()),
            valid_from: None,
            lapses_at: None,
            actor: actor.to_owned(),
        };
        self.apply_grant(new, GrantReach::RunAndWindow, now)
    }

    /// How far the window of the session that runs has to be moved, and can be, for so much more time.
    fn window_extension_for(&self, by: Duration, now: ClockReading) -> Duration {
        let Some(session) = &self.snapshot.session else { return Duration::ZERO };
        let Some(window) = session.ends.window else { return Duration::ZERO };
        let left = window.remaining(now.mono);
        let end = session.ends.remaining(now.mono).unwrap_or(left);
        // No further than the new end: what time is given later does not pass the window.
        let needed = end.saturating_add(by).saturating_sub(left);
        // The ceiling of the day on which it began: midnight brings no new one.
        let began = session.started_at;
        let day = self.window_day(began, |entry| entry.entry_id == session.entry_id);
        self.latest_open_until(began, day).map_or(needed, |latest| {
            let until =
                Duration::try_from(latest.duration_since(self.effective_time(now))).unwrap_or_default();
            until.saturating_sub(left).min(needed)
        })
    }

    pub(super) fn session_for_grant(&self, grant: &GrantView) -> Option<&SessionRecord> {
        let goes_on = |session: &&SessionRecord| session.stage.end_reason().is_none();
        let session = self.snapshot.session.as_ref().filter(goes_on)?;
        let in_scope = grant.scope.includes(&session.entry_id, &session.budgets);
        (in_scope && grant.is_for(&session.profile)).then_some(session)
    }

    /// Grants that were given in advance reach the session that runs when they begin to hold.
    pub(super) fn apply_due_grants(&mut self, now: ClockReading) -> Vec<CoreEvent> {
        let at = self.effective_time(now);
        let Some(session) = &self.snapshot.session else { return Vec::new() };
        // What held before was in the plan, and what was given since is among the extensions.
        let begins = |grant: &&GrantView| {
            session.judged_at < grant.valid_from
                && grant.is_valid_at(at)
                && !session.extensions.iter().any(|known| known.grant_id == grant.grant_id)
        };
        let begun: Vec<GrantView> = self.snapshot.grants.iter().filter(begins).cloned().collect();
        begun.iter().flat_map(|grant| self.extend_session(grant, GrantReach::RunOnly, now)).collect()
    }

    pub(super) fn extend_session(
        &mut self,
        grant: &GrantView,
        reach: GrantReach,
        now: ClockReading,
    ) -> Vec<CoreEvent> {
        if self.session_for_grant(grant).is_none() {
            return Vec::new();
        }
        let (run, window) = match grant.gift {
            // More of a budget is not a longer run; only the quota gives way.
            GrantKind::Extra { amount } if matches!(grant.scope, EntryScope::Budget { .. }) => {
                (self.run_headroom(now).min(amount.into()), Duration::ZERO)
            }
            GrantKind::Extra { amount } => match reach {
                GrantReach::RunOnly => (amount.into(), Duration::ZERO),
                GrantReach::RunAndWindow => (amount.into(), self.window_extension_for(amount.into(), now)),
            },
            GrantKind::OpenUntil { until } => {
                (Duration::ZERO, self.window_shortfall(until.min(grant.lapses_at), now))
            }
        };
        self.move_deadlines(&grant.grant_id, run, window);
        // Other quotas may allow less than was given here.
        self.shorten_to_quota(now);
        self.rearm_warnings(now)
    }

    /// By how much the window of the session that runs has to be moved to be open until then. If that is inside another
    /// window, it goes on to its end.
    fn window_shortfall(&self, until: Timestamp, now: ClockReading) -> Duration {
        let Some(session) = &self.snapshot.session else { return Duration::ZERO };
        let Some(window) = session.ends.window else { return Duration::ZERO };
        let at = self.evaluation_time(now);
        let facts = self.evaluation_context(at);
        // What is over is followed by nothing.
        let entry = self.policy.entry(&session.entry_id).filter(|_| at.wall < until);
        let until = entry.map_or(until, |entry| facts.opening_hours(entry).extend_through_open_hours(until));
        let left = Duration::try_from(until.duration_since(at.wall)).unwrap_or_default();
        left.saturating_sub(window.remaining(now.mono))
    }

    /// How much longer the session that runs could go on by all rules but its present end.
    fn run_headroom(&self, now: ClockReading) -> Duration {
        let end = self.snapshot.session.as_ref().and_then(|session| session.ends.run);
        let left = end.and_then(|end| Some((self.run_left_by_rules(now)?, end)));
        left.map_or(Duration::ZERO, |(left, end)| left.saturating_sub(end.remaining(now.mono)))
    }

    /// How long the session that runs could go on by all rules but its present end and its window, with what it was
    /// granted; `NotRequested` is without limit.
    pub(super) fn run_left_by_rules(&self, now: ClockReading) -> Option<Duration> {
        let session = self.snapshot.session.as_ref()?;
        let entry = self.policy.entry(&session.entry_id)?;
        let at = self.evaluation_time(now);
        let of_a_budget = |more: &SessionExtension| {
            let mut grants = self.snapshot.grants.iter().filter(|grant| grant.grant_id == more.grant_id);
            grants.any(|grant| matches!(grant.scope, EntryScope::Budget { .. }))
        };
        let longer = session.extensions.iter().filter(|more| !of_a_budget(more)).map(|more| more.run);
        let granted = longer.fold(Duration::ZERO, Duration::saturating_add);
        let run = |limit: Duration| limit.saturating_add(granted).saturating_sub(session.charged);
        let quota = self.evaluation_context(at).quota_left(&session.profile, entry, at);
        let in_a_row = self.policy.rules().breaks.map(|rule| rule.after.saturating_sub(session.in_a_row));
        [quota, entry.limits.max_run.map(run), in_a_row.map(run)].into_iter().flatten().min()
    }

    /// Moves the ends of the session that runs, and remembers by whose leave.
    fn move_deadlines(&mut self, grant_id: &GrantId, run: Duration, window: Duration) {
        let Some(session) = &mut self.snapshot.session else { return };
        session.ends.run = session.ends.run.map(|end| end.extended(run));
        session.ends.window = session.ends.window.map(|end| end.extended(window));
        let grant_id = grant_id.clone();
        match session.extensions.iter_mut().find(|known| known.grant_id == grant_id) {
            Some(known) => {
                known.run = known.run.saturating_add(run);
                known.window = known.window.saturating_add(window);
            }
            None => session.extensions.push(SessionExtension { grant_id, run, window }),
        }
    }

    /// Takes back what the session that runs has had of a grant, while it ran or when it was planned: also of one that
    /// has lapsed since, and of one that was still to begin.
    pub(super) fn retract_from_session(&mut self, grant: &GrantView, now: ClockReading) -> Vec<CoreEvent> {
        let (at, closes) = (self.effective_time(now), self.ungranted_window_end(now));
        let concerned = self.session_for_grant(grant).is_some();
        let goes_on = |session: &&mut SessionRecord| session.stage.end_reason().is_none();
        let Some(session) = self.snapshot.session.as_mut().filter(goes_on) else { return Vec::new() };
        let planned = session.ends;
        let had = session.extensions.iter().position(|known| known.grant_id == grant.grant_id);
        if had.is_none() && !concerned {
            return Vec::new();
        }
        if let Some(position) = had {
            let SessionExtension { run, window, .. } = session.extensions.remove(position);
            session.ends.run = session.ends.run.map(|end| end.before(run));
            session.ends.window = session.ends.window.map(|end| end.before(window));
            self.reapply_window_grants(at, now);
        } else if let (GrantKind::OpenUntil { .. }, Some(closes), true) =
            (grant.gift, closes, grant.is_valid_at(at))
        {
            session.ends.window = earlier_deadline(session.ends.window, Some(closes), now);
        }
        self.shorten_to_quota(now);
        let ends = self.snapshot.session.as_ref().map(|session| session.ends);
        if ends == Some(planned) { Vec::new() } else { self.rearm_warnings(now) }
    }

    /// What one grant no longer keeps open, another one that the session has had may.
    fn reapply_window_grants(&mut self, at: Timestamp, now: ClockReading) {
        let Some(session) = &self.snapshot.session else { return };
        let had = |grant: &&GrantView| {
            grant.is_valid_at(at) && session.extensions.iter().any(|more| more.grant_id == grant.grant_id)
        };
        let until = |grant: &GrantView| match grant.gift {
            GrantKind::OpenUntil { until } => Some((grant.grant_id.clone(), until.min(grant.lapses_at))),
            GrantKind::Extra { .. } => None,
        };
        let others: Vec<_> = self.snapshot.grants.iter().filter(had).filter_map(until).collect();
        for (grant_id, until) in others {
            self.move_deadlines(&grant_id, Duration::ZERO, self.window_shortfall(until, now));
        }
    }

    /// When the window of the session that runs closes by what is in force now; at once if it is closed.
    fn ungranted_window_end(&self, now: ClockReading) -> Option<Deadline> {
        let session = self.snapshot.session.as_ref()?;
        let entry = self.policy.entry(&session.entry_id)?;
        let finding = self.evaluate_running(session, entry, now);
        if finding.reasons.iter().any(is_outside_hours) {
            Some(Deadline::after(now.mono, Duration::ZERO, DeadlineClock::Total))
        } else {
            self.session_deadlines(&finding, now).window
        }
    }

    /// A change of the end re-plans the warnings (S3.5b): those that fit before the new end come, none comes twice.
    pub(super) fn rearm_warnings(&mut self, now: ClockReading) -> Vec<CoreEvent> {
        let Some(session) = &mut self.snapshot.session else { return Vec::new() };
        let remaining = session.ends.remaining(now.mono);
        for warning in &mut session.warnings {
            warning.armed |= remaining.is_some_and(|remaining| warning.before < remaining);
        }
        let session_id = session.session_id.clone();
        let left = remaining.map(Into::into);
        self.append_audit(
            now,
            POLICY_ACTOR,
            AuditKind::DeadlineChanged { session_id: session_id.clone(), remaining: left },
        );
        vec![CoreEvent::DeadlineChanged { session_id, remaining }]
    }
}
