//! A session as it really ran, and the limits that it must keep.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::GrantView;
use shepherd_core::policy::{BreakRule, Day, SuspendedTime, TimeCost};
use shepherd_util::{ClockReading, GrantId, MonotonicInstant};

use super::hours;
use super::household::BUDGETS;
use super::open_span::OpenSpan;
use super::usage_model::{PolicyTerms, QuotaCheck, UsageModel};

/// Ticks are at most a millisecond late in the simulation.
const TICK_LATENESS: Duration = Duration::from_millis(2);

/// The effect of a grant on the running session.
#[derive(Clone)]
pub(super) struct AppliedGrant {
    pub(super) grant_id: GrantId,
    pub(super) run: Duration,
    pub(super) window: Duration,
    /// The hours that the grant opened.
    pub(super) opened: Option<OpenSpan>,
}

/// The limits of one plan. A session has the plan of its launch, and one more for each replanning.
#[derive(Clone)]
struct PlanBounds {
    span: OpenSpan,
    suspended_time: SuspendedTime,
    /// The time that had been counted and played when the plan was made.
    counted: Duration,
    played: MonotonicInstant,
    /// True if a later policy has other rules. The session keeps its plan, but a cut follows the later rules.
    superseded: bool,
    /// True if the quotas of this plan limit the session.
    bounds_days: bool,
    /// True if the windows of this plan limit the session.
    bounds_hours: bool,
}

/// The time at which a program was gone.
#[derive(Clone, Copy)]
pub(super) struct ProgramEnd {
    pub(super) boot: u128,
    /// The real time since the start of the simulation.
    pub(super) real: Duration,
    /// The time of the trusted clock.
    pub(super) time: Timestamp,
}

#[derive(Clone)]
pub(super) struct SimulatedSession {
    pub(super) child: usize,
    pub(super) entry: usize,
    pub(super) approved: MonotonicInstant,
    /// The time up to which play is accounted; `None` while the session is being launched.
    pub(super) booked_to: Option<MonotonicInstant>,
    pub(super) day: Day,
    /// The time that the program really ran, with and without sleep.
    pub(super) played: MonotonicInstant,
    /// The part of that time that counted by the rules in force.
    pub(super) counted: Duration,
    /// The uninterrupted use before this session.
    pub(super) in_row: Duration,
    pub(super) budgets: Vec<usize>,
    pub(super) free: bool,
    pub(super) cooldown: Duration,
    pub(super) applied_grants: Vec<AppliedGrant>,
    /// Grants that were valid while play was charged to another day than the wall clock showed.
    pub(super) grants_on_other_day: BTreeSet<GrantId>,
    /// Grants that were revoked when they were no longer valid. Time that was planned with them is kept.
    pub(super) grants_revoked_late: BTreeSet<GrantId>,
    /// True if the session was asked to end. The model does not predict how fast a program exits.
    pub(super) end_requested: bool,
    /// The end of the program, if the daemon has not noticed it yet.
    pub(super) stopped: Option<ProgramEnd>,
    /// The thresholds of the warnings that were given for the current end.
    pub(super) warned: BTreeSet<u64>,
    /// The thresholds of all warnings that were ever given.
    ever_warned: BTreeSet<u64>,
    /// The real remaining time at the last check, and the time of that check.
    seen_left: Option<(Duration, MonotonicInstant)>,
    /// The remaining time at the last check, plus later grants; `Duration::MAX` if there is no end.
    pub(super) left: Duration,
    /// The longest remaining time that was ever seen.
    pub(super) longest: Duration,
    /// Grants that were valid by this time are settled: planned, applied, or not for this session.
    settled: Timestamp,
    /// True if the days changed during the launch. The session is then cut when it starts, by the rules of that time.
    upset_before: bool,
    plans: Vec<PlanBounds>,
}

impl SimulatedSession {
    pub(super) fn from_launch(
        child: usize,
        entry: usize,
        terms: &PolicyTerms,
        day: Day,
        time: Timestamp,
        now: ClockReading,
    ) -> Self {
        let mut play = Self {
            child,
            entry,
            approved: now.mono,
            booked_to: None,
            day,
            played: MonotonicInstant::BOOT,
            counted: Duration::ZERO,
            in_row: Duration::ZERO,
            budgets: Vec::new(),
            free: false,
            cooldown: Duration::ZERO,
            applied_grants: Vec::new(),
            grants_on_other_day: BTreeSet::new(),
            grants_revoked_late: BTreeSet::new(),
            end_requested: false,
            stopped: None,
            warned: BTreeSet::new(),
            ever_warned: BTreeSet::new(),
            seen_left: None,
            left: Duration::MAX,
            longest: Duration::ZERO,
            settled: time,
            upset_before: false,
            plans: Vec::new(),
        };
        play.set_charging_rules(terms);
        play.add_plan(terms, time, now);
        play
    }

    /// Applies the rules of a policy for charging time.
    pub(super) fn set_charging_rules(&mut self, terms: &PolicyTerms) {
        let Some(rules) = terms.entry(self.entry) else { return };
        let drawn = |id: &str| rules.budgets.iter().any(|budget| budget.as_str() == id);
        self.budgets = (0..BUDGETS.len()).filter(|budget| drawn(BUDGETS[*budget])).collect();
        self.free = rules.cost == TimeCost::Free;
        self.cooldown = rules.limits.cooldown_after_run;
    }

    /// Adds the limits of another plan. The session must keep all of them.
    pub(super) fn add_plan(&mut self, terms: &PolicyTerms, time: Timestamp, now: ClockReading) {
        self.plans.push(PlanBounds {
            span: OpenSpan::open_until(time, terms, time, now),
            suspended_time: terms.policy.rules().suspended_time,
            counted: self.counted,
            played: self.played,
            superseded: false,
            bounds_days: true,
            bounds_hours: true,
        });
    }

    /// Marks all plans as made by earlier rules.
    pub(super) fn supersede_plans(&mut self) {
        for plan in &mut self.plans {
            plan.superseded = true;
            plan.bounds_days &= !(self.upset_before && self.booked_to.is_none());
        }
    }

    /// Applies the rule of a policy for sleep. A plan that was made with the other rule may now be charged differently,
    /// so it is measured without sleep.
    pub(super) fn set_sleep_rule(&mut self, terms: &PolicyTerms) {
        let suspended_time = terms.policy.rules().suspended_time;
        for plan in self.plans.iter_mut().filter(|plan| plan.suspended_time != suspended_time) {
            plan.suspended_time = SuspendedTime::Free;
            plan.bounds_days = false;
        }
    }

    /// Removes limits of earlier rules, because revoking a grant cuts the session by the rules and the zone of now.
    pub(super) fn cut_plans_to_rules(&mut self, today: &PolicyTerms) {
        self.drop_superseded_day_bounds();
        for plan in &mut self.plans {
            plan.bounds_hours &= !plan.superseded && plan.span.terms.zone == today.zone;
        }
    }

    /// Restores the accounts of an earlier state. Play since then is accounted again.
    pub(super) fn roll_back_to(&mut self, before: &Self) {
        self.booked_to = before.booked_to;
        self.day = before.day;
        self.played = before.played;
        self.counted = before.counted;
        self.budgets.clone_from(&before.budgets);
        self.free = before.free;
        self.cooldown = before.cooldown;
        self.warned.clone_from(&before.warned);
        self.ever_warned.clone_from(&before.ever_warned);
        self.seen_left = before.seen_left;
        self.plans.truncate(before.plans.len());
        let known =
            |gift: &&AppliedGrant| self.applied_grants.iter().all(|own| own.grant_id != gift.grant_id);
        let back: Vec<AppliedGrant> = before.applied_grants.iter().filter(known).cloned().collect();
        self.applied_grants.extend(back);
        self.left = Duration::MAX;
        self.longest = before.longest;
        self.settled = before.settled;
    }

    /// Marks all grants that are valid by now as settled.
    pub(super) fn mark_settled(&mut self, time: Timestamp) {
        self.settled = self.settled.max(time);
    }

    /// Returns true if a grant is neither settled nor applied.
    pub(super) fn is_new(&self, grant: &GrantView) -> bool {
        grant.valid_from > self.settled
            && self.applied_grants.iter().all(|gift| gift.grant_id != grant.grant_id)
    }

    pub(super) fn is_superseded(&self) -> bool {
        self.plans.iter().any(|plan| plan.superseded)
    }

    /// Removes the day limits of superseded plans, because the clock was set or the machine slept.
    pub(super) fn drop_superseded_day_bounds(&mut self) {
        self.upset_before |= self.booked_to.is_none();
        self.plans.iter_mut().for_each(|plan| plan.bounds_days &= !plan.superseded);
    }

    /// Checks that the session has not got more time than its plans and grants allow.
    pub(super) fn check(
        &mut self,
        now: ClockReading,
        today: &PolicyTerms,
        day: Day,
        book: &UsageModel,
        grants: &[GrantView],
    ) {
        if self.booked_to.is_none() || self.end_requested {
            return;
        }
        let run: Duration = self.applied_grants.iter().map(|gift| gift.run).sum();
        let (kept, lent) = (&self.grants_revoked_late, &self.grants_on_other_day);
        let is_lent = |grant: &GrantView| lent.contains(&grant.grant_id);
        let held = grants.iter().filter(|grant| grant.revoked_at.is_none() || kept.contains(&grant.grant_id));
        for span in self.applied_grants.iter_mut().filter_map(|gift| gift.opened.as_mut()) {
            span.advance_to(now, |terms, at| hours::is_open(terms, self.child, self.entry, at));
        }
        for plan in &mut self.plans {
            let counted = plan.counted + counted_play(plan.suspended_time, self.played)
                - counted_play(plan.suspended_time, plan.played);
            let terms = &plan.span.terms;
            let rules = terms.entry(self.entry).expect("it runs, so something allows it");
            if let Some(max_run) = rules.limits.max_run {
                assert!(
                    counted <= max_run + run + TICK_LATENESS,
                    "ran for {counted:?} of {max_run:?} and {run:?}"
                );
            }
            if let Some(BreakRule { after, .. }) = terms.policy.rules().breaks {
                let in_row = self.in_row + counted;
                // The limit of a new rule may have been exceeded before the session began; grants then add to that.
                let most = after.max(self.in_row) + run;
                assert!(in_row <= most + TICK_LATENESS, "{in_row:?} in a row of {after:?} and {run:?}");
            }
            plan.span.advance_to(now, |terms, at| terms.is_open(self.child, self.entry, at, held.clone()));
            if plan.bounds_hours {
                plan.check_window(now, &self.applied_grants);
            }
            if !plan.bounds_days {
                continue;
            }
            let quotas =
                |terms: &PolicyTerms| terms.quotas(self.child, self.entry, day, book, &held, is_lent);
            if let Some(passed) = first_exceeded_quota(quotas(&plan.span.terms)) {
                // In another zone, a grant may be valid on other days.
                let here = PolicyTerms { zone: today.zone.clone(), ..plan.span.terms.clone() };
                assert!(
                    first_exceeded_quota(quotas(&here)).is_none(),
                    "more than a quota on {day}: {passed}"
                );
            }
        }
    }

    /// Records a warning, and checks that it is given only once for an end.
    pub(super) fn record_warning(&mut self, threshold: u64) {
        assert!(self.warned.insert(threshold), "warned twice for one end, {threshold} s before");
        self.ever_warned.insert(threshold);
    }

    /// Prepares for the warnings of the next tick. A warning may be repeated if the end is further away than its
    /// threshold, and must not be repeated if the end has come nearer.
    pub(super) fn expect_warnings(&mut self, left: Option<Duration>, now: ClockReading) {
        let Some(left) = left else { return };
        self.warned.retain(|threshold| Duration::from_secs(*threshold) >= left);
        let expected = self.seen_left.map(|(seen, at)| seen.saturating_sub(now.mono.total_since(at)));
        if expected.is_some_and(|expected| left < expected) {
            self.excuse_repeated_warnings(left);
        }
    }

    /// Records the end after a tick. If the end has come nearer, perhaps by sleep, no warning is expected again.
    pub(super) fn record_end(&mut self, left: Option<Duration>, now: ClockReading) {
        let Some(left) = left else { return };
        // A grant that became valid meanwhile may have moved the end.
        self.warned.retain(|threshold| Duration::from_secs(*threshold) >= left);
        let expected = self.seen_left.map(|(seen, at)| seen.saturating_sub(now.mono.awake_since(at)));
        if expected.is_some_and(|expected| left < expected) {
            self.excuse_repeated_warnings(left);
        }
        self.seen_left = Some((left, now.mono));
    }

    /// Marks warnings as given whose threshold is further away than the end.
    fn excuse_repeated_warnings(&mut self, left: Duration) {
        let passed = self.ever_warned.iter().filter(|threshold| Duration::from_secs(**threshold) >= left);
        self.warned.extend(passed.copied().collect::<Vec<_>>());
    }

    /// Checks that the remaining time grows only by grants.
    pub(super) fn check_left(&mut self, left: Option<Duration>) {
        self.longest = self.longest.max(left.unwrap_or_default());
        let left = left.unwrap_or(Duration::MAX);
        assert!(left <= self.left, "{left:?} remain where {:?} did", self.left);
        self.left = left;
    }

    /// Returns the extra time that the session has certainly used, beyond the ordinary limits of a run. A machine that
    /// sleeps past the end of a session uses none.
    pub(super) fn used_extra_time(&self, terms: &PolicyTerms) -> Vec<(GrantId, Duration)> {
        let counted = self.counted.min(self.played.awake());
        let beyond = |terms: &PolicyTerms| {
            let max_run = terms.entry(self.entry).and_then(|entry| entry.limits.max_run);
            let beyond_run = max_run.map(|max_run| counted.saturating_sub(max_run));
            let breaks = terms.policy.rules().breaks;
            let beyond_break = breaks.map(|rule| (self.in_row + counted).saturating_sub(rule.after));
            beyond_run.max(beyond_break).unwrap_or_default()
        };
        // The rules may have changed since the session was planned.
        let beyond = beyond(terms).min(beyond(&self.plans[0].span.terms));
        let all: Duration = self.applied_grants.iter().map(|gift| gift.run).sum();
        let used = |gift: &AppliedGrant| beyond.saturating_sub(all - gift.run).min(gift.run);
        self.applied_grants.iter().map(|gift| (gift.grant_id.clone(), used(gift))).collect()
    }

    /// Checks that every warning that fits before the end was given (S3.5b).
    pub(super) fn check_warnings(&self) {
        let rules = self.plans[0].span.terms.entry(self.entry).unwrap();
        for warning in rules.warnings.warnings().iter().filter(|warning| warning.before < self.longest) {
            let threshold = warning.before.as_secs();
            assert!(self.warned.contains(&threshold), "it ended without the warning {threshold} s before");
        }
    }
}

impl PlanBounds {
    /// Checks that the window in which the session began is still open, by the monotonic clock.
    fn check_window(&self, now: ClockReading, gifts: &[AppliedGrant]) {
        let granted = gifts.iter().filter_map(|gift| gift.opened.as_ref());
        let closed = granted.chain([&self.span]).map(OpenSpan::closed_at);
        let Some(closed) = closed.reduce(|latest, closed| Some(latest?.max(closed?))).flatten() else {
            return;
        };
        let more: Duration = gifts.iter().map(|gift| gift.window).sum();
        let (end, up) = (closed + more + TICK_LATENESS, now.mono.total());
        assert!(up <= end, "runs {:?} after its window closed", up - end);
    }
}

fn first_exceeded_quota(quotas: Vec<QuotaCheck>) -> Option<QuotaCheck> {
    quotas.into_iter().find(|quota| quota.played > quota.allowed + TICK_LATENESS)
}

/// Returns the part of the played time that counts.
pub(super) fn counted_play(suspended_time: SuspendedTime, played: MonotonicInstant) -> Duration {
    match suspended_time {
        SuspendedTime::Free => played.awake(),
        SuspendedTime::Counts => played.total(),
    }
}
