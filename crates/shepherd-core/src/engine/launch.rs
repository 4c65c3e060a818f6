//! From a launch request to a session plan, and to a program that runs (S3.3, S3.4).

use std::sync::Arc;
use std::time::Duration;

use shepherd_api::{AuditKind, ReasonCode, SessionCounting, SessionSlot};
use shepherd_util::{ClockReading, Deadline, DeadlineClock, EntryId, ProfileId, SessionId};

use super::{CoreEngine, CoreEvent, Effects, EngineReply, POLICY_ACTOR, ProvisionalGrant};
use crate::evaluation::{EntryFinding, NoObserver};
use crate::policy::{PolicyEntry, TimeCost, WindowDisplay};
use crate::session::{
    ScheduledWarning, SessionDeadlines, SessionPlan, SessionRecord, SessionStage, launch_slot,
};
use crate::user_display::{UserDisplay, has_own_display};

/// A request to run an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchRequest {
    pub entry_id: EntryId,
    /// The profile whose time it costs; `None` is the default profile.
    pub profile: Option<ProfileId>,
    /// The id of the session if the launch is approved. The engine makes up no ids.
    pub session_id: SessionId,
    /// The client, for the audit log.
    pub actor: String,
    /// The display of the client's desktop, if it named one.
    pub display: Option<UserDisplay>,
}

/// A program came up that no session waits for, because its launch timed out or was never approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no session waits for this program any more, so it is stopped")]
pub struct LaunchNotAwaited;

/// The answer to a launch request.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum LaunchDecision {
    /// The launch is approved on these terms. The session is `Launching` until its program has come up or failed.
    Approved(Arc<SessionPlan>),
    /// The launch is denied, for all of these reasons.
    Denied { reasons: Vec<ReasonCode> },
}

impl CoreEngine {
    /// Evaluates a launch request and, if no rule denies it, plans the session. The program is ordered to start
    /// once the approval is durable ([`CoreEngine::persist_succeeded`]).
    pub fn request_launch(
        &mut self,
        request: &LaunchRequest,
        now: ClockReading,
    ) -> EngineReply<LaunchDecision> {
        self.observe(now);
        let profile = request.profile.clone().unwrap_or_else(|| self.policy.default_profile());
        // What runs already uses up the same time.
        self.charge_profile(&profile, now);
        let finding = self.evaluate_launch(request, &profile, now);
        let entry = self.policy.entry(&request.entry_id).filter(|_| finding.reasons.is_empty());
        let decision = match entry.cloned().map(|entry| (launch_slot(&entry), entry)) {
            Some((Some(slot), entry)) => self.approve_launch(request, entry, profile, slot, &finding, now),
            Some((None, _)) | None => {
                let (entry_id, reasons) = (request.entry_id.clone(), finding.reasons.clone());
                let denied = AuditKind::LaunchDenied { entry_id, profile, reasons };
                self.append_audit(now, &request.actor, denied);
                LaunchDecision::Denied { reasons: finding.reasons }
            }
        };
        self.save_snapshot();
        self.answer(decision)
    }

    fn evaluate_launch(
        &self,
        request: &LaunchRequest,
        profile: &ProfileId,
        now: ClockReading,
    ) -> EntryFinding {
        let at = self.evaluation_time(now);
        match self.policy.entry(&request.entry_id) {
            Some(entry) if launch_slot(entry).is_none() => {
                EntryFinding { reasons: vec![ReasonCode::LoginEntry], ..EntryFinding::default() }
            }
            // With several profiles, the engine must not choose one.
            Some(_) if request.profile.is_none() && self.policy.rules().profiles.len() > 1 => {
                EntryFinding { reasons: vec![ReasonCode::NotForProfile], ..EntryFinding::default() }
            }
            Some(entry) => self.evaluation_context(at).evaluate(profile, entry, at, &mut NoObserver),
            None => EntryFinding {
                reasons: vec![ReasonCode::UnknownEntry { entry_id: request.entry_id.clone() }],
                ..EntryFinding::default()
            },
        }
    }

    fn approve_launch(
        &mut self,
        request: &LaunchRequest,
        entry: PolicyEntry,
        profile: ProfileId,
        slot: SessionSlot,
        finding: &EntryFinding,
        now: ClockReading,
    ) -> LaunchDecision {
        let session = self.new_session(&request.session_id, &entry, profile, slot, finding, now);
        let approved = AuditKind::LaunchApproved {
            session_id: session.session_id.clone(),
            entry_id: session.entry_id.clone(),
            profile: session.profile.clone(),
            max_run: finding.longest_run(self.evaluation_time(now).wall).map(Into::into),
        };
        self.append_audit(now, &request.actor, approved);
        self.announce(CoreEvent::SessionLaunching { session_id: session.session_id.clone() });
        let plan = Arc::new(self.plan_session(request.display.as_ref(), &session, entry, now));
        self.sessions.insert(session);
        self.effects.grant_provisionally(ProvisionalGrant::Launch(Arc::clone(&plan)));
        LaunchDecision::Approved(plan)
    }

    pub(super) fn new_session(
        &self,
        session_id: &SessionId,
        entry: &PolicyEntry,
        profile: ProfileId,
        slot: SessionSlot,
        finding: &EntryFinding,
        now: ClockReading,
    ) -> SessionRecord {
        let (at, ends) = (self.evaluation_time(now), self.session_deadlines(finding, now));
        let in_a_row = self.streak_so_far(&profile, at);
        let extensions = self.extensions_at_launch(&profile, entry, at);
        let earned = self.earned_time(&profile, &entry.budgets, at.day);
        SessionRecord {
            session_id: session_id.clone(),
            entry_id: entry.entry_id.clone(),
            label: entry.label.clone(),
            profile,
            slot,
            counting: SessionCounting::Active,
            started_at: now.wall,
            judged_at: at.wall,
            boot: self.environment.boot,
            started: now.mono,
            ends,
            warnings: schedule_warnings(entry, ends.remaining(now.mono)),
            given: Vec::new(),
            extensions,
            charged_to: now.mono,
            charged_day: at.day,
            charged: Duration::ZERO,
            in_a_row,
            charged_before_row: Duration::ZERO,
            earned,
            stage: SessionStage::Launching,
            stop_grace: entry.run.stop_grace.unwrap_or(self.policy.rules().stop_grace),
            budgets: entry.budgets.clone(),
            free: entry.cost == TimeCost::Free,
            cooldown: entry.limits.cooldown_after_run,
            crash_within: entry.limits.crash_within,
        }
    }

    /// Returns the terms of a new session, with the user that its program runs as.
    pub(super) fn plan_session(
        &self,
        display: Option<&UserDisplay>,
        session: &SessionRecord,
        mut entry: PolicyEntry,
        now: ClockReading,
    ) -> SessionPlan {
        if self.capabilities.can_switch_user {
            entry.run.user = self.policy.system_account(&entry, &session.profile).map(str::to_owned);
        }
        SessionPlan {
            session_id: session.session_id.clone(),
            entry_id: session.entry_id.clone(),
            display: display.filter(|_| !has_own_display(&entry.kind)).cloned(),
            entry,
            profile: session.profile.clone(),
            started_at: session.started_at,
            deadline: session.expected_end(now.mono),
            warnings: session.warnings.iter().filter(|warning| warning.armed).cloned().collect(),
            stop_grace: session.stop_grace,
        }
    }

    /// Returns the deadlines of a finding: run time on the clock that the policy counts on, the window on the
    /// clock that never stops (S4.4).
    pub(super) fn session_deadlines(&self, finding: &EntryFinding, now: ClockReading) -> SessionDeadlines {
        let window = finding.closes.map(|closes| {
            let length =
                Duration::try_from(closes.duration_since(self.effective_time(now))).unwrap_or_default();
            Deadline::after(now.mono, length, DeadlineClock::Total)
        });
        let run = finding.run_limit.map(|run| Deadline::after(now.mono, run, self.counting_mode()));
        SessionDeadlines { run, window }
    }

    /// Handles the report that the program of a session runs (S3.5). The time that the launch took is free. If somebody
    /// stopped the session meanwhile, the program is stopped.
    ///
    /// The answer is an error if no session waits for the program, which is then stopped without a grace period.
    pub fn start_session(
        &mut self,
        session_id: &SessionId,
        host_session_handle: String,
        now: ClockReading,
    ) -> EngineReply<Result<(), LaunchNotAwaited>> {
        self.observe(now);
        let day = self.evaluation_time(now).day;
        let Some(profile) = self.awaiting_profile(session_id) else {
            self.effects.stop(session_id.clone(), Duration::ZERO);
            return self.answer(Err(LaunchNotAwaited));
        };
        self.charge_profile(&profile, now);
        let in_a_row = self.streak_so_far(&profile, self.evaluation_time(now));
        let Some(session) = self.sessions.get_mut(session_id) else {
            return self.answer(Err(LaunchNotAwaited));
        };
        session.in_a_row = session.in_a_row.max(in_a_row);
        session.stage.program_started(host_session_handle, now.mono);
        session.charged_to = now.mono;
        session.charged_day = day;
        if session.stage.end_reason().is_some() {
            self.order_expiry(session_id, now);
        } else {
            let event = CoreEvent::SessionStarted {
                session_id: session.session_id.clone(),
                entry_id: session.entry_id.clone(),
                deadline: session.expected_end(now.mono),
            };
            let display = self.policy.entry(&session.entry_id).map(|entry| entry.run.display);
            self.announce(event);
            if let Some(display) = display.filter(|display| *display != WindowDisplay::Unchanged) {
                self.effects.show_window(session_id.clone(), display);
            }
            let started = AuditKind::SessionStarted { session_id: session_id.clone() };
            self.append_audit(now, POLICY_ACTOR, started);
        }
        self.save_snapshot();
        self.answer(Ok(()))
    }

    /// Returns the profile of a session whose program has not come up yet.
    fn awaiting_profile(&self, session_id: &SessionId) -> Option<ProfileId> {
        let session = self.sessions.get(session_id).filter(|session| !session.stage.has_program());
        session.map(|session| session.profile.clone())
    }

    /// Handles the report that the program of a session did not start, also if the session was stopped meanwhile. A
    /// failed launch costs no quota and no cooldown (S3.5b).
    pub fn launch_failed(&mut self, session_id: &SessionId, detail: String, now: ClockReading) -> Effects {
        self.end_failed_launch(session_id, detail, now);
        self.take_effects()
    }
}

/// Arms the warnings whose threshold lies before the end: a session shorter than a threshold gets no such warning
/// (S2.5).
pub(super) fn schedule_warnings(entry: &PolicyEntry, length: Option<Duration>) -> Vec<ScheduledWarning> {
    let armed = |before: Duration| length.is_some_and(|length| before < length);
    let warnings = entry.warnings.warnings().iter();
    warnings
        .map(|warning| ScheduledWarning {
            before: warning.before,
            severity: warning.severity,
            message_template: warning.message_template.clone(),
            armed: armed(warning.before),
            repeated: false,
        })
        .collect()
}
