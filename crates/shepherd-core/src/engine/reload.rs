//! Another policy (S7.3): whole, or not at all.

use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{AuditKind, Gift, ReasonCode};
use shepherd_util::{Counting, Deadline, Now};

use super::{CoreEngine, CoreEvent, NextChange};
use crate::hours::Opening;
use crate::judge::{Finding, Nobody};
use crate::policy::{Cost, Entry, OnReload, Policy};
use crate::session::{Ends, Extension, SessionRecord};

impl CoreEngine {
    /// Another policy applies from now on. A running session keeps its plan, unless the new policy says otherwise,
    /// and then its end can only come nearer.
    pub fn reload(
        &mut self,
        policy: Policy,
        digest: Option<String>,
        actor: &str,
        now: Now,
    ) -> Vec<CoreEvent> {
        self.observe(now);
        self.charge(now);
        let begun = self.settle_what_begins(now);
        self.policy = policy;
        self.next_change = NextChange::Unknown;
        // Another zone in the policy is the parents' own wish.
        self.snapshot.clock.zone = None;
        if self.snapshot.mode.as_ref().is_some_and(|mode| !self.policy.rules().modes.names.contains(mode)) {
            self.snapshot.mode = None;
        }
        let entry_count = self.policy.entries().len();
        self.audit(now, actor, AuditKind::PolicyLoaded { entry_count, digest });
        let mut events = vec![CoreEvent::PolicyReloaded { entry_count }, CoreEvent::EntryAvailabilityChanged];
        events.extend(begun);
        self.charge_by_new_rules();
        if self.policy.rules().on_reload == OnReload::Replan {
            events.extend(self.replan_after_reload(now));
        }
        self.save();
        events
    }

    /// A policy that was refused leaves a trace, and nothing else.
    pub fn reload_failed(&mut self, faults: Vec<String>, actor: &str, now: Now) {
        self.observe(now);
        self.audit(now, actor, AuditKind::PolicyRejected { faults });
    }

    /// Whatever the end of a session is, its time counts by the rules that apply.
    fn charge_by_new_rules(&mut self) {
        let Some(session) = &mut self.snapshot.session else { return };
        if let Some(entry) = self.policy.entry(&session.entry_id) {
            session.budgets.clone_from(&entry.budgets);
            session.free = entry.cost == Cost::Free;
            session.cooldown = entry.limits.cooldown_after_run;
        }
    }

    /// What holds by now was given by the rules under which it began, or was none of this session's: it is not given
    /// again by others.
    fn settle_what_begins(&mut self, now: Now) -> Vec<CoreEvent> {
        let (events, at) = (self.give_what_begins(now), self.counted(now));
        if let Some(session) = &mut self.snapshot.session {
            session.judged_at = session.judged_at.max(at);
        }
        events
    }

    /// Both ends are now: more time opens no window, and a window gives no time.
    fn end_now(&mut self, now: Now) -> Vec<CoreEvent> {
        let end = Some(Deadline::after(now.mono, Duration::ZERO, Counting::Total));
        if let Some(session) = &mut self.snapshot.session {
            session.ends = Ends { run: end, window: end };
        }
        self.rearm(now)
    }

    /// The end by the new policy, with what grants have added; it takes effect only where it comes sooner.
    fn replan_after_reload(&mut self, now: Now) -> Vec<CoreEvent> {
        self.take_openings_into_the_plan(now);
        let goes_on = |session: &&SessionRecord| session.stage.end().is_none();
        let Some(session) = self.snapshot.session.as_ref().filter(goes_on) else { return Vec::new() };
        let planned = session.ends;
        let finding =
            self.policy.entry(&session.entry_id).map(|entry| self.judge_running(session, entry, now));
        let Some(finding) = finding.filter(|finding| !finding.reasons.iter().any(ends_a_session)) else {
            return self.end_now(now);
        };
        // What it has run already counts, and so does what it was granted: once.
        let run = self.left_by_rules(now).map(|left| Deadline::after(now.mono, left, self.counting()));
        let window = self.ends(&finding, now).window;
        let ends = Ends { run: sooner(planned.run, run, now), window: sooner(planned.window, window, now) };
        if ends == planned {
            return Vec::new();
        }
        if let Some(session) = &mut self.snapshot.session {
            session.ends = ends;
        }
        self.rearm(now)
    }

    /// A new plan goes by all that holds now: what opens a window is part of it, and no longer moves it.
    fn take_openings_into_the_plan(&mut self, now: Now) {
        let at = self.counted(now);
        let grants = &self.snapshot.grants;
        let opens = |more: &Extension| {
            let grant = grants.iter().find(|grant| grant.grant_id == more.grant_id);
            grant.is_some_and(|grant| matches!(grant.gift, Gift::OpenUntil { .. }) && grant.holds_at(at))
        };
        if let Some(session) = &mut self.snapshot.session {
            session.extensions.retain(|more| !opens(more));
        }
    }

    /// What the rules say of a session that runs. A window that grants have moved closes so much later, also if it
    /// would be closed by now.
    pub(super) fn judge_running(&self, session: &SessionRecord, entry: &Entry, now: Now) -> Finding {
        let at = self.moment(now);
        let facts = self.facts(at);
        let mut finding = facts.judge(&session.profile, entry, at, &mut Nobody);
        let moved = session.extensions.iter().map(|more| more.window);
        let moved = moved.fold(Duration::ZERO, Duration::saturating_add);
        let before = at.wall.checked_sub(moved).unwrap_or(Timestamp::MIN);
        if finding.reasons.iter().any(is_closed)
            && let Opening::Open { closes } = facts.hours(entry).at(before)
        {
            finding.reasons.retain(|reason| !is_closed(reason));
            finding.closes = closes;
        }
        finding.closes = finding.closes.map(|closes| closes.checked_add(moved).unwrap_or(Timestamp::MAX));
        finding
    }
}

/// Whether a reason is that no window is open.
pub(super) fn is_closed(reason: &ReasonCode) -> bool {
    matches!(reason, ReasonCode::OutsideHours { .. })
}

/// Whether a reason against a launch also ends a session that already runs.
fn ends_a_session(reason: &ReasonCode) -> bool {
    !matches!(
        reason,
        ReasonCode::SessionActive { .. }
            | ReasonCode::Cooldown { .. }
            | ReasonCode::ClockUntrusted { .. }
            | ReasonCode::StoreUnavailable { .. }
    )
}

/// The nearer of two ends. If either counts sleep, so does it: it never comes later than either.
pub(super) fn sooner(old: Option<Deadline>, new: Option<Deadline>, now: Now) -> Option<Deadline> {
    match (old, new) {
        (Some(old), Some(new)) => {
            let nearer = if new.remaining(now.mono) < old.remaining(now.mono) { new } else { old };
            let same_clock = old.counting() == new.counting();
            let counts_sleep = || Deadline::after(now.mono, nearer.remaining(now.mono), Counting::Total);
            Some(if same_clock { nearer } else { counts_sleep() })
        }
        (old, new) => old.or(new),
    }
}
