//! Moves the deadlines of running sessions, and their warnings with them, when grants begin or end (S2.7, S3.5b).

use std::cmp::Reverse;
use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{AuditKind, EntryScope, GrantKind, GrantView, SessionView};
use shepherd_util::{ClockReading, Deadline, DeadlineClock, GrantId, SessionId};

use super::errors::GrantError;
use super::grants::{MovedDeadlines, NewGrant};
use super::launch::schedule_warnings;
use super::reload::{earlier_deadline, is_outside_hours};
use super::{CoreEngine, CoreEvent, EngineReply, POLICY_ACTOR};
use crate::policy::PolicyEntry;
use crate::session::{ScheduledWarning, SessionDeadlines, SessionExtension, SessionRecord};

/// A session with a later end, and the grant that extended it.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtendedSession {
    pub session: SessionView,
    pub grant: GrantView,
}

impl CoreEngine {
    /// Extends a running session, or one whose program is being started, beyond all limits except the ceilings. The
    /// extension is recorded as a grant. The answer is an error if there is no such session, it is being ended, or the
    /// ceilings forbid the grant.
    pub fn extend_session(
        &mut self,
        session_id: &SessionId,
        by: Duration,
        grant_id: &GrantId,
        actor: &str,
        now: ClockReading,
    ) -> EngineReply<Result<ExtendedSession, GrantError>> {
        let extended = self.try_extend(session_id, by, grant_id, actor, now);
        let extended = extended.inspect(|extended| self.announce_given(&extended.grant));
        self.answer(extended)
    }

    fn try_extend(
        &mut self,
        session_id: &SessionId,
        by: Duration,
        grant_id: &GrantId,
        actor: &str,
        now: ClockReading,
    ) -> Result<ExtendedSession, GrantError> {
        self.observe(now);
        let session = match self.sessions.get(session_id) {
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
        let grant = self.apply_grant(new, &MovedDeadlines::OfSession(session_id.clone()), now)?;
        let session = self.session_view(session_id, now).ok_or(GrantError::NoSession)?;
        Ok(ExtendedSession { session, grant })
    }

    /// Returns how far the window of a session has to move for this much more time, as far as it may.
    fn window_extension_for(&self, session: &SessionRecord, by: Duration, now: ClockReading) -> Duration {
        let Some(window) = session.ends.window else { return Duration::ZERO };
        let left = window.remaining(now.mono);
        let end = session.ends.remaining(now.mono).unwrap_or(left);
        // The window moves no further than the new end, so that later extra time doesn't pass the window as well.
        let needed = end.saturating_add(by).saturating_sub(left);
        // The ceiling of the day on which the session began applies, even after midnight.
        let began = session.started_at;
        let day = self.window_day(began, Some(&session.profile), |entry| entry.entry_id == session.entry_id);
        self.latest_open_until(began, day).map_or(needed, |latest| {
            let until =
                Duration::try_from(latest.duration_since(self.effective_time(now))).unwrap_or_default();
            until.saturating_sub(left).min(needed)
        })
    }

    /// Returns the sessions that a grant applies to.
    pub(super) fn sessions_for_grant(&self, grant: &GrantView) -> impl Iterator<Item = &SessionRecord> {
        self.sessions.iter().filter(|session| is_granted_to(grant, session))
    }

    /// Extends a session by grants that were given in advance and become valid now.
    pub(super) fn apply_due_grants(&mut self, session_id: &SessionId, now: ClockReading) {
        let Some(session) = self.sessions.get(session_id) else { return };
        if self.snapshot.grants.is_empty() {
            return;
        }
        let at = self.effective_time(now);
        // Grants that were valid before are part of the plan, and those given since are among the extensions.
        let begins = |grant: &&GrantView| {
            session.judged_at < grant.valid_from
                && grant.is_valid_at(at)
                && !session.extensions.iter().any(|known| known.grant_id == grant.grant_id)
        };
        let starting: Vec<GrantView> = self.snapshot.grants.iter().filter(begins).cloned().collect();
        for grant in &starting {
            self.extend_by_grant(session_id, grant, &MovedDeadlines::RunOnly, now);
        }
    }

    /// Extends a session by a grant, if the grant applies to it.
    pub(super) fn extend_by_grant(
        &mut self,
        session_id: &SessionId,
        grant: &GrantView,
        moved: &MovedDeadlines,
        now: ClockReading,
    ) {
        let session = self.sessions.get(session_id).filter(|session| is_granted_to(grant, session));
        let Some(session) = session.filter(|_| moved.includes(session_id)) else { return };
        let profile = session.profile.clone();
        // The limits are compared with usage up to now.
        self.charge_profile(&profile, now);
        let Some(session) = self.sessions.get(session_id) else { return };
        let (run, window) = match grant.gift {
            // A larger budget doesn't mean a longer run: only the limit of the budget moves, the other limits stay.
            GrantKind::Extra { amount } if matches!(grant.scope, EntryScope::Budget { .. }) => {
                (self.run_headroom(session, now).min(amount.into()), Duration::ZERO)
            }
            GrantKind::Extra { amount } => match moved {
                MovedDeadlines::RunOnly => (amount.into(), Duration::ZERO),
                MovedDeadlines::OfSession(_) => {
                    (amount.into(), self.window_extension_for(session, amount.into(), now))
                }
            },
            GrantKind::OpenUntil { until } => {
                (Duration::ZERO, self.window_shortfall(session, until.min(grant.lapses_at), now))
            }
        };
        self.move_deadlines(session_id, &grant.grant_id, run, window);
        // Other quotas may allow less than this grant gives.
        self.shorten_to_quota(session_id, now);
        self.rearm_warnings(session_id, now);
    }

    /// Returns how far the window of a session has to move to be open until then. If that time is inside another window,
    /// the session goes on to the end of that window.
    fn window_shortfall(&self, session: &SessionRecord, until: Timestamp, now: ClockReading) -> Duration {
        let Some(window) = session.ends.window else { return Duration::ZERO };
        let at = self.evaluation_time(now);
        let facts = self.evaluation_context(at);
        // A time that has passed is not extended through later windows.
        let entry = self.policy.entry(&session.entry_id).filter(|_| at.wall < until);
        let until =
            entry.map_or(until, |entry| facts.extend_through_open_hours(&session.profile, entry, until));
        let left = Duration::try_from(until.duration_since(at.wall)).unwrap_or_default();
        left.saturating_sub(window.remaining(now.mono))
    }

    /// Returns how much longer a session could go on by all rules but its present end.
    pub(super) fn run_headroom(&self, session: &SessionRecord, now: ClockReading) -> Duration {
        let left = session.ends.run.and_then(|end| Some((self.run_left_by_rules(session, now)?, end)));
        left.map_or(Duration::ZERO, |(left, end)| left.saturating_sub(end.remaining(now.mono)))
    }

    /// Returns how long a session could go on by all rules and grants but its present end and its window; `None` if there
    /// is no limit. The session has been charged up to now.
    pub(super) fn run_left_by_rules(&self, session: &SessionRecord, now: ClockReading) -> Option<Duration> {
        let entry = self.policy.entry(&session.entry_id)?;
        let at = self.evaluation_time(now);
        let longer = session.extensions.iter().filter(|more| !self.is_of_budget(more)).map(|more| more.run);
        let granted = longer.fold(Duration::ZERO, Duration::saturating_add);
        let left = |limit: Duration, used: Duration| limit.saturating_add(granted).saturating_sub(used);
        let quota = self.evaluation_context(at).quota_left(&session.profile, entry, at);
        let run = entry.limits.max_run.map(|max_run| left(max_run, session.charged));
        let breaks = self.policy.rules().breaks;
        let in_a_row = breaks.map(|rule| left(rule.after, session.played_in_a_row()));
        [quota, run, in_a_row].into_iter().flatten().min()
    }

    /// Moves the deadlines of a session, and remembers which grant moved them.
    fn move_deadlines(
        &mut self,
        session_id: &SessionId,
        grant_id: &GrantId,
        run: Duration,
        window: Duration,
    ) {
        let Some(session) = self.sessions.get_mut(session_id) else { return };
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

    /// Takes back the time that a grant gave to a session, at its launch or later. The grant may have lapsed since, or
    /// may not have begun.
    pub(super) fn retract_from_session(
        &mut self,
        session_id: &SessionId,
        grant: &GrantView,
        now: ClockReading,
    ) {
        let goes_on = |session: &&SessionRecord| session.stage.end_reason().is_none();
        let Some(session) = self.sessions.get(session_id).filter(goes_on) else { return };
        let (at, planned) = (self.effective_time(now), session.ends);
        let had = session.extensions.iter().position(|known| known.grant_id == grant.grant_id);
        let closes = match (had, grant.gift) {
            (None, _) if !is_granted_to(grant, session) => return,
            (None, GrantKind::OpenUntil { .. }) if grant.is_valid_at(at) => {
                self.ungranted_window_end(session, now)
            }
            _ => None,
        };
        if let Some(session) = self.sessions.get_mut(session_id) {
            if let Some(position) = had {
                let SessionExtension { run, window, .. } = session.extensions.remove(position);
                session.ends.run = session.ends.run.map(|end| end.before(run));
                session.ends.window = session.ends.window.map(|end| end.before(window));
            }
            if let Some(closes) = closes {
                session.ends.window = earlier_deadline(session.ends.window, Some(closes), now);
            }
        }
        if had.is_some() {
            self.reapply_window_grants(session_id, planned.window, at, now);
        }
        self.shorten_to_quota(session_id, now);
        self.announce_new_end(session_id, planned, now);
    }

    /// Moves the window again by the other grants of a session, which may open the same hours as the revoked grant. The
    /// window never closes later than planned, even if the hours or the zone have changed since: nothing that is taken back
    /// makes a session longer.
    fn reapply_window_grants(
        &mut self,
        session_id: &SessionId,
        planned: Option<Deadline>,
        at: Timestamp,
        now: ClockReading,
    ) {
        let Some(session) = self.sessions.get(session_id) else { return };
        let had = |grant: &&GrantView| {
            grant.is_valid_at(at) && session.extensions.iter().any(|more| more.grant_id == grant.grant_id)
        };
        let until = |grant: &GrantView| match grant.gift {
            GrantKind::OpenUntil { until } => Some((grant.grant_id.clone(), until.min(grant.lapses_at))),
            GrantKind::Extra { .. } => None,
        };
        let others: Vec<_> = self.snapshot.grants.iter().filter(had).filter_map(until).collect();
        for (grant_id, until) in others {
            let Some(session) = self.sessions.get(session_id) else { return };
            let lost = match (planned, session.ends.window) {
                (Some(planned), Some(window)) => {
                    planned.remaining(now.mono).saturating_sub(window.remaining(now.mono))
                }
                _ => Duration::ZERO,
            };
            let window = self.window_shortfall(session, until, now).min(lost);
            self.move_deadlines(session_id, &grant_id, Duration::ZERO, window);
        }
    }

    /// Returns when the window of a session closes by the rules and grants that apply now. A window that is already
    /// closed closes now.
    fn ungranted_window_end(&self, session: &SessionRecord, now: ClockReading) -> Option<Deadline> {
        let entry = self.policy.entry(&session.entry_id)?;
        let finding = self.evaluate_running(session, entry, now);
        if finding.reasons.iter().any(is_outside_hours) {
            Some(Deadline::after(now.mono, Duration::ZERO, DeadlineClock::Total))
        } else {
            self.session_deadlines(&finding, now).window
        }
    }

    /// Announces deadlines that differ from the planned ones. The warnings are planned anew only if the end itself was moved:
    /// a warning that fell due before, and that was not given yet, is due as long as the end stays.
    pub(super) fn announce_new_end(
        &mut self,
        session_id: &SessionId,
        planned: SessionDeadlines,
        now: ClockReading,
    ) {
        let Some(ends) = self.sessions.get(session_id).map(|session| session.ends) else { return };
        if ends.remaining(now.mono) != planned.remaining(now.mono) {
            self.rearm_warnings(session_id, now);
        } else if ends != planned {
            self.announce_deadline(session_id, now);
        }
    }

    /// Plans the warnings anew after the end was moved (S3.5b): those that fit before the new end come, none of them
    /// twice for one end.
    pub(super) fn rearm_warnings(&mut self, session_id: &SessionId, now: ClockReading) {
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        if let Some(entry) = self.policy.entry(&session.entry_id) {
            restore_given_warnings(session, entry);
        }
        session.replan_warnings(session.ends.remaining(now.mono));
        self.announce_deadline(session_id, now);
    }

    /// Records and announces the time that is left.
    pub(super) fn announce_deadline(&mut self, session_id: &SessionId, now: ClockReading) {
        let Some(session) = self.sessions.get(session_id) else { return };
        let remaining = session.ends.remaining(now.mono);
        let session_id = session_id.clone();
        let left = remaining.map(Into::into);
        self.append_audit(
            now,
            POLICY_ACTOR,
            AuditKind::DeadlineChanged { session_id: session_id.clone(), remaining: left },
        );
        self.announce(CoreEvent::DeadlineChanged { session_id, remaining });
    }
}

/// Returns whether a grant applies to a session that isn't being ended.
fn is_granted_to(grant: &GrantView, session: &SessionRecord) -> bool {
    session.stage.end_reason().is_none()
        && grant.scope.includes(&session.entry_id, &session.budgets)
        && grant.is_for(&session.profile)
}

/// Adds the warnings that an older daemon dropped from its record when it gave them.
fn restore_given_warnings(session: &mut SessionRecord, entry: &PolicyEntry) {
    let SessionRecord { warnings, given, .. } = session;
    let is_lost = |warning: &ScheduledWarning| {
        given.contains(&warning.before) && warnings.iter().all(|known| known.before != warning.before)
    };
    let lost: Vec<_> = schedule_warnings(entry, None).into_iter().filter(is_lost).collect();
    warnings.extend(lost);
    warnings.sort_by_key(|warning| Reverse(warning.before));
}
