//! Sessions whose time doesn't count for a while, or counts without a reward, and time that is earned meanwhile.

use std::collections::BTreeMap;
use std::time::Duration;

use shepherd_api::SessionCounting;
use shepherd_util::{BudgetId, ClockReading, Deadline, DeadlineClock, ProfileId, SessionId};

use super::{CoreEngine, Effects};
use crate::policy::Day;
use crate::session::SessionRecord;
use crate::usage::used_on_day;

impl CoreEngine {
    /// Sets how the time of a session counts. With [`SessionCounting::Stopped`], run time and quotas stand still, the
    /// run deadline moves away as time passes, and the window still closes; budgets are charged only by other sessions
    /// of the profile. With [`SessionCounting::Idle`], the time counts, but earns and unlocks nothing.
    ///
    /// The state is stored with the session. A session that doesn't exist, or has that state already, stays as it is.
    pub fn set_counting(
        &mut self,
        session_id: &SessionId,
        counting: SessionCounting,
        now: ClockReading,
    ) -> Effects {
        self.observe(now);
        let changes = |session: &&SessionRecord| session.counting != counting;
        let Some(session) = self.sessions.get(session_id).filter(changes) else {
            return self.take_effects();
        };
        let (before, profile) = (session.counting, session.profile.clone());
        self.charge_profile(&profile, now);
        match (before, counting) {
            (_, SessionCounting::Stopped) => self.stop_counting(session_id, now),
            (SessionCounting::Stopped, _) => self.resume_counting(session_id, counting, now),
            _ => {
                if let Some(session) = self.sessions.get_mut(session_id) {
                    session.counting = counting;
                }
            }
        }
        self.save_snapshot();
        self.take_effects()
    }

    fn stop_counting(&mut self, session_id: &SessionId, now: ClockReading) {
        if let Some(session) = self.sessions.get(session_id).filter(|session| session.is_counting()).cloned()
        {
            self.interrupt_streak(&session, now);
        }
        if let Some(session) = self.sessions.get_mut(session_id) {
            session.counting = SessionCounting::Stopped;
            session.ends.set_run_clock(now.mono, DeadlineClock::Stopped);
        }
        self.announce_deadline(session_id, now);
    }

    /// Lets a session count again. Other sessions of the profile may have used up shared time meanwhile, and the pause may
    /// have been the break that was due.
    fn resume_counting(&mut self, session_id: &SessionId, counting: SessionCounting, now: ClockReading) {
        let Some(session) = self.sessions.get(session_id) else { return };
        let in_a_row = self.streak_so_far(&session.profile, self.evaluation_time(now));
        let has_rested = in_a_row < session.played_in_a_row();
        let (clock, day) = (self.counting_mode(), self.evaluation_time(now).day);
        if let Some(session) = self.sessions.get_mut(session_id) {
            session.counting = counting;
            session.ends.set_run_clock(now.mono, clock);
            session.in_a_row = in_a_row;
            session.charged_before_row = session.charged;
            session.charged_to = now.mono;
            session.charged_day = day;
        }
        if has_rested && self.policy.rules().breaks.is_some() {
            self.plan_run_after_break(session_id, now);
        }
        self.shorten_to_quota(session_id, now);
        self.rearm_warnings(session_id, now);
    }

    /// Plans the run of a session anew, because its profile has had a break since the plan was made.
    fn plan_run_after_break(&mut self, session_id: &SessionId, now: ClockReading) {
        let Some(session) = self.sessions.get(session_id) else { return };
        let planned = session.ends.run.map(|end| end.remaining(now.mono));
        let left = self.run_left_by_rules(session, now);
        let (Some(planned), Some(left)) = (planned, left) else { return };
        let run = Deadline::after(now.mono, left.max(planned), session.run_clock(self.counting_mode()));
        if let Some(session) = self.sessions.get_mut(session_id) {
            session.ends.run = Some(run);
        }
    }

    /// Returns the time that a profile has earned for budgets on a day.
    pub(super) fn earned_time(
        &self,
        profile: &ProfileId,
        budgets: &[BudgetId],
        day: Day,
    ) -> BTreeMap<BudgetId, Duration> {
        let usage = self.usage.profile_usage(profile);
        let earned = |budget_id: &BudgetId| {
            let earnings = self.policy.earning_entries(budget_id).map(|(entry_id, earning)| {
                let used = usage.and_then(|usage| usage.entry_usage(entry_id));
                earning.earned_for(used_on_day(used, day))
            });
            earnings.fold(Duration::ZERO, Duration::saturating_add)
        };
        let amounts = budgets.iter().map(|budget_id| (budget_id.clone(), earned(budget_id)));
        amounts.filter(|(_, earned)| !earned.is_zero()).collect()
    }

    /// Makes a session longer by the time that another session of its profile has earned since it was planned. The
    /// session has been charged up to now. What a session earns itself counts from the next one on.
    pub(super) fn apply_earned_time(&mut self, session_id: &SessionId, now: ClockReading) {
        let earns = |session: &SessionRecord| {
            let earning = self.policy.entry(&session.entry_id).and_then(|entry| entry.earns.as_ref());
            earning.is_some_and(|earning| session.budgets.contains(&earning.budget))
        };
        let session = self.sessions.get(session_id).filter(|session| !session.budgets.is_empty());
        let Some(session) = session.filter(|session| !earns(session)) else { return };
        let earned = self.earned_time(&session.profile, &session.budgets, self.evaluation_time(now).day);
        let more = earned.iter().map(|(budget_id, amount)| {
            let known = session.earned.get(budget_id).copied().unwrap_or_default();
            amount.saturating_sub(known)
        });
        let more = more.max().unwrap_or_default();
        if more.is_zero() {
            return;
        }
        let run = self.run_headroom(session, now).min(more);
        if let Some(session) = self.sessions.get_mut(session_id) {
            session.earned = earned;
            session.ends.run = session.ends.run.map(|end| end.extended(run));
        }
        if !run.is_zero() {
            self.rearm_warnings(session_id, now);
        }
    }
}
