//! Replaces the policy (S7.3), and replans the running sessions if the new policy says so.

use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{AuditKind, GrantKind, ReasonCode};
use shepherd_util::{ClockReading, Deadline, DeadlineClock, SessionId};

use super::{CoreEngine, CoreEvent, Effects, NextChange};
use crate::evaluation::{EntryFinding, NoObserver};
use crate::hours::OpenState;
use crate::policy::{OnReload, Policy, PolicyEntry, TimeCost};
use crate::session::{SessionDeadlines, SessionExtension, SessionRecord};

impl CoreEngine {
    /// Applies another policy. Running sessions keep their plan, unless the new policy says otherwise; then their end can
    /// only come nearer.
    pub fn reload(
        &mut self,
        policy: Policy,
        digest: Option<String>,
        actor: &str,
        now: ClockReading,
    ) -> Effects {
        self.observe(now);
        self.charge_all(now);
        let entry_count = policy.entries().len();
        self.announce(CoreEvent::PolicyReloaded { entry_count });
        self.announce(CoreEvent::EntryAvailabilityChanged);
        let sessions: Vec<SessionId> =
            self.sessions.iter().map(|session| session.session_id.clone()).collect();
        for session_id in &sessions {
            self.settle_due_grants(session_id, now);
        }
        self.policy = policy;
        self.next_change = NextChange::Unknown;
        if self.snapshot.mode.as_ref().is_some_and(|mode| !self.policy.rules().modes.names.contains(mode)) {
            self.snapshot.mode = None;
        }
        self.append_audit(now, actor, AuditKind::PolicyLoaded { entry_count, digest });
        for session_id in &sessions {
            self.apply_charging_rules(session_id, now);
            if self.policy.rules().on_reload == OnReload::Replan {
                self.replan_after_reload(session_id, now);
            }
        }
        self.save_snapshot();
        self.take_effects()
    }

    /// Records that a policy was rejected. The present policy still applies.
    pub fn reload_failed(&mut self, faults: Vec<String>, actor: &str, now: ClockReading) -> Effects {
        self.observe(now);
        self.append_audit(now, actor, AuditKind::PolicyRejected { faults });
        self.take_effects()
    }

    /// Charges a session by the new rules from now on, also if it keeps its plan.
    fn apply_charging_rules(&mut self, session_id: &SessionId, now: ClockReading) {
        let day = self.evaluation_time(now).day;
        let Some(session) = self.sessions.get(session_id) else { return };
        let Some(entry) = self.policy.entry(&session.entry_id) else { return };
        let earned = self.earned_time(&session.profile, &entry.budgets, day);
        if let Some(session) = self.sessions.get_mut(session_id) {
            session.earned = earned;
            session.budgets.clone_from(&entry.budgets);
            session.free = entry.cost == TimeCost::Free;
            session.cooldown = entry.limits.cooldown_after_run;
            session.crash_within = entry.limits.crash_within;
        }
    }

    /// Applies the grants that are valid by now under the rules under which they began, so that the new rules don't
    /// apply them again.
    fn settle_due_grants(&mut self, session_id: &SessionId, now: ClockReading) {
        self.apply_due_grants(session_id, now);
        let at = self.effective_time(now);
        if let Some(session) = self.sessions.get_mut(session_id) {
            session.judged_at = session.judged_at.max(at);
        }
    }

    /// Sets both deadlines to now, because a grant could move a single one.
    fn end_now(&mut self, session_id: &SessionId, now: ClockReading) {
        let end = Some(Deadline::after(now.mono, Duration::ZERO, DeadlineClock::Total));
        if let Some(session) = self.sessions.get_mut(session_id) {
            session.ends = SessionDeadlines { run: end, window: end };
        }
        self.rearm_warnings(session_id, now);
    }

    /// Brings the deadlines forward to those of the new policy and the grants, where these are earlier.
    fn replan_after_reload(&mut self, session_id: &SessionId, now: ClockReading) {
        self.absorb_window_grants(session_id, now);
        let goes_on = |session: &&SessionRecord| session.stage.end_reason().is_none();
        let Some(session) = self.sessions.get(session_id).filter(goes_on) else { return };
        let planned = session.ends;
        let finding =
            self.policy.entry(&session.entry_id).map(|entry| self.evaluate_running(session, entry, now));
        let Some(finding) = finding.filter(|finding| !finding.reasons.iter().any(ends_a_session)) else {
            return self.end_now(session_id, now);
        };
        // The run time so far counts, and each grant counts once.
        let clock = session.run_clock(self.counting_mode());
        let run = self.run_left_by_rules(session, now).map(|left| Deadline::after(now.mono, left, clock));
        let window = self.session_deadlines(&finding, now).window;
        let ends = SessionDeadlines {
            run: earlier_deadline(planned.run, run, now),
            window: earlier_deadline(planned.window, window, now),
        };
        if ends == planned {
            return;
        }
        if let Some(session) = self.sessions.get_mut(session_id) {
            session.ends = ends;
        }
        self.announce_new_end(session_id, planned, now);
    }

    /// Drops the extensions by grants that open a window now: the new plan contains that window.
    fn absorb_window_grants(&mut self, session_id: &SessionId, now: ClockReading) {
        let at = self.effective_time(now);
        let grants = &self.snapshot.grants;
        let opens = |more: &SessionExtension| {
            let grant = grants.iter().find(|grant| grant.grant_id == more.grant_id);
            grant.is_some_and(|grant| {
                matches!(grant.gift, GrantKind::OpenUntil { .. }) && grant.is_valid_at(at)
            })
        };
        if let Some(session) = self.sessions.get_mut(session_id) {
            session.extensions.retain(|more| !opens(more));
        }
    }

    /// Evaluates the rules for a running session. A window that grants have moved closes that much later, even if it
    /// would be closed by now.
    pub(super) fn evaluate_running(
        &self,
        session: &SessionRecord,
        entry: &PolicyEntry,
        now: ClockReading,
    ) -> EntryFinding {
        let at = self.evaluation_time(now);
        let facts = self.evaluation_context(at);
        let mut finding = facts.evaluate(&session.profile, entry, at, &mut NoObserver);
        let moved = session.extensions.iter().map(|more| more.window);
        let moved = moved.fold(Duration::ZERO, Duration::saturating_add);
        let before = at.wall.checked_sub(moved).unwrap_or(Timestamp::MIN);
        if finding.reasons.iter().any(is_outside_hours)
            && let OpenState::Open { closes } = facts.open_state_at(&session.profile, entry, before)
        {
            finding.reasons.retain(|reason| !is_outside_hours(reason));
            finding.closes = closes;
        }
        finding.closes = finding.closes.map(|closes| closes.checked_add(moved).unwrap_or(Timestamp::MAX));
        finding
    }
}

/// Returns whether a reason is about the hours: those of the entry, or bedtime.
pub(super) fn is_outside_hours(reason: &ReasonCode) -> bool {
    matches!(reason, ReasonCode::OutsideHours { .. } | ReasonCode::Bedtime { .. })
}

/// Returns whether a reason against a launch also ends a running session.
fn ends_a_session(reason: &ReasonCode) -> bool {
    !matches!(
        reason,
        ReasonCode::SessionActive { .. }
            | ReasonCode::Cooldown { .. }
            | ReasonCode::ClockUntrusted { .. }
            | ReasonCode::StoreUnavailable { .. }
    )
}

/// Returns the earlier of two deadlines. If either deadline counts suspended time, so does the result, so that it is
/// never later than either.
pub(super) fn earlier_deadline(
    old: Option<Deadline>,
    new: Option<Deadline>,
    now: ClockReading,
) -> Option<Deadline> {
    match (old, new) {
        (Some(old), Some(new)) => {
            let nearer = if new.remaining(now.mono) < old.remaining(now.mono) { new } else { old };
            let same_clock = old.clock() == new.clock();
            let counts_sleep = || Deadline::after(now.mono, nearer.remaining(now.mono), DeadlineClock::Total);
            Some(if same_clock { nearer } else { counts_sleep() })
        }
        (old, new) => old.or(new),
    }
}
