//! A session in progress: warnings, expiry, stops and the end.

use std::time::Duration;

use shepherd_api::{AuditKind, EndReason, StopMode, StopRequester};
use shepherd_util::{ClockReading, ProfileId, SessionId};

use super::{CoreEngine, CoreEvent, Effects, EngineReply, NextChange, POLICY_ACTOR, WarningMessage};
use crate::policy::Policy;
use crate::session::{ScheduledWarning, SessionRecord, SessionStage};

/// The exit of a program, as the host saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitInfo {
    pub session_id: SessionId,
    /// The exit code, where it is known.
    pub code: Option<i32>,
    /// The signal that killed the program, if one did.
    pub signal: Option<i32>,
}

/// A request to end a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopRequest {
    pub by: StopRequester,
    pub mode: StopMode,
    /// The client, for the audit log.
    pub actor: String,
}

/// The answer to a stop request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum StopDecision {
    /// The program is stopped within this time.
    Stop {
        session_id: SessionId,
        grace: Duration,
    },
    NothingToStop,
}

impl CoreEngine {
    /// Handles the passage of time, and orders what is due (S3.5).
    pub fn tick(&mut self, now: ClockReading) -> Effects {
        self.advance_to(now);
        self.take_effects()
    }

    pub(super) fn advance_to(&mut self, now: ClockReading) {
        self.observe(now);
        let slept = std::mem::take(&mut self.clock_changes.slept);
        if slept || !self.unchecked_plans.is_empty() {
            self.charge_all(now);
        } else {
            self.charge_all_now_and_then(now);
        }
        let sessions: Vec<SessionId> =
            self.sessions.iter().map(|session| session.session_id.clone()).collect();
        for session_id in &sessions {
            self.advance_session(session_id, slept, now);
        }
        if self.effects.has_announcements() {
            self.save_snapshot();
        }
        if std::mem::take(&mut self.clock_changes.clock_set) {
            self.next_change = NextChange::Unknown;
            self.announce(CoreEvent::EntryAvailabilityChanged);
            self.save_snapshot();
        }
        self.announce_changes(now);
        self.lapse_requests(now);
    }

    fn advance_session(&mut self, session_id: &SessionId, slept: bool, now: ClockReading) {
        if self.is_running(session_id) {
            self.check_plan(session_id, slept, now);
            self.apply_due_grants(session_id, now);
        }
        if self.is_running(session_id) && self.is_anything_due(session_id, now) {
            if let Some(profile) = self.sessions.get(session_id).map(|session| session.profile.clone()) {
                self.charge_profile(&profile, now);
            }
            self.apply_earned_time(session_id, now);
            self.issue_warnings(session_id, now);
            self.expire_if_due(session_id, now);
        }
        self.time_out_launch(session_id, now);
    }

    /// Compares the plan of a session with the quotas, if the wall clock was set or the machine was suspended. After a
    /// suspend past midnight, the quota of another day applies to the session.
    fn check_plan(&mut self, session_id: &SessionId, slept: bool, now: ClockReading) {
        let Some(planned) = self.sessions.get(session_id).map(|session| session.ends) else { return };
        if self.unchecked_plans.remove(session_id) || slept {
            self.shorten_to_quota(session_id, now);
            if self.sessions.get(session_id).is_some_and(|session| session.ends != planned) {
                self.announce_new_end(session_id, planned, now);
            } else if slept {
                self.announce_deadline(session_id, now);
            }
        }
    }

    pub(super) fn is_running(&self, session_id: &SessionId) -> bool {
        self.sessions.get(session_id).is_some_and(SessionRecord::is_running)
    }

    fn is_anything_due(&self, session_id: &SessionId, now: ClockReading) -> bool {
        self.sessions.get(session_id).is_some_and(|session| {
            let remaining = session.ends.remaining(now.mono);
            let is_due = |warning: &ScheduledWarning| is_warning_due(warning, remaining);
            session.ends.is_due(now.mono) || session.warnings.iter().any(is_due)
        })
    }

    /// Ends a session whose program takes too long to start, also if the session was stopped meanwhile.
    fn time_out_launch(&mut self, session_id: &SessionId, now: ClockReading) {
        let timeout = self.policy.rules().launch_timeout;
        let late = |session: &SessionRecord| {
            !session.stage.has_program() && now.mono.total_since(session.started) >= timeout
        };
        if self.sessions.get(session_id).is_some_and(late) {
            self.end_session(session_id, EndReason::LaunchTimedOut, now);
        }
    }

    fn issue_warnings(&mut self, session_id: &SessionId, now: ClockReading) {
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        let Some(remaining) = session.ends.remaining(now.mono) else { return };
        let profile = profile_label(&self.policy, &session.profile);
        let mut due = Vec::new();
        for warning in &mut session.warnings {
            if is_warning_due(warning, Some(remaining)) {
                warning.armed = false;
                due.push(warning.clone());
            }
        }
        for warning in &due {
            session.given.push(warning.before);
            session.stage.record_warning(warning.severity);
            self.effects.announce(warning_event(warning, session, profile, remaining));
        }
        if !due.is_empty() {
            // This warning is nearer to the present end.
            self.forget_missed_warning(session_id);
        }
        for warning in due {
            let (session_id, threshold_secs) = (session_id.clone(), warning.before.as_secs());
            self.append_audit(now, POLICY_ACTOR, AuditKind::WarningGiven { session_id, threshold_secs });
        }
    }

    fn expire_if_due(&mut self, session_id: &SessionId, now: ClockReading) {
        let is_due = |session: &SessionRecord| session.ends.is_due(now.mono);
        if !self.sessions.get(session_id).is_some_and(is_due) {
            return;
        }
        if let Some(session) = self.sessions.get_mut(session_id) {
            session.stage.expire(EndReason::Expired, now.mono);
        }
        self.order_expiry(session_id, now);
        let (session_id, by) = (session_id.clone(), StopRequester::Policy);
        let requested = AuditKind::StopRequested { session_id, by, mode: StopMode::Graceful };
        self.append_audit(now, POLICY_ACTOR, requested);
    }

    /// Orders the program of a session that is being ended to stop, within what is left of its grace period.
    pub(super) fn order_expiry(&mut self, session_id: &SessionId, now: ClockReading) {
        let Some(session) = self.sessions.get(session_id) else { return };
        self.effects.stop(session_id.clone(), session.grace_left(now.mono));
        self.effects.announce(CoreEvent::ExpireDue { session_id: session_id.clone() });
    }

    /// Ends a session on request. A second request can only make the session end sooner.
    pub fn stop_session(
        &mut self,
        session_id: &SessionId,
        request: &StopRequest,
        now: ClockReading,
    ) -> EngineReply<StopDecision> {
        self.observe(now);
        let Some(profile) = self.sessions.get(session_id).map(|session| session.profile.clone()) else {
            return self.answer(StopDecision::NothingToStop);
        };
        self.charge_profile(&profile, now);
        let Some(session) = self.sessions.get_mut(session_id) else {
            return self.answer(StopDecision::NothingToStop);
        };
        session.stage.expire(EndReason::Stopped { by: request.by }, now.mono);
        let grace = match request.mode {
            StopMode::Graceful => session.grace_left(now.mono),
            StopMode::Force => Duration::ZERO,
        };
        let session_id = session_id.clone();
        self.effects.stop(session_id.clone(), grace);
        let (by, mode) = (request.by, request.mode);
        let requested = AuditKind::StopRequested { session_id: session_id.clone(), by, mode };
        self.append_audit(now, &request.actor, requested);
        self.save_snapshot();
        self.announce(CoreEvent::StopRequested { session_id: session_id.clone() });
        self.answer(StopDecision::Stop { session_id, grace })
    }

    /// Handles the report that the program of a session and all its descendants are gone. An exit of another session
    /// changes nothing (S6.2b).
    pub fn notify_session_exited(&mut self, exit: &ExitInfo, now: ClockReading) -> Effects {
        self.observe(now);
        if let Some(session) = self.sessions.get(&exit.session_id) {
            let reason = match &session.stage {
                SessionStage::Withdrawn { reason } | SessionStage::Expiring { reason, .. } => reason.clone(),
                SessionStage::Launching => {
                    EndReason::LaunchFailed { detail: "it ended before it was running".to_owned() }
                }
                SessionStage::Running { .. } => EndReason::Exited { code: exit.code, signal: exit.signal },
            };
            self.end_session(&exit.session_id, reason, now);
        }
        self.take_effects()
    }

    /// Charges the rest of the session, starts the pauses that follow it, and drops its record.
    pub(super) fn end_session(&mut self, session_id: &SessionId, reason: EndReason, now: ClockReading) {
        let Some(profile) = self.sessions.get(session_id).map(|session| session.profile.clone()) else {
            return;
        };
        self.charge_profile(&profile, now);
        let Some(session) = self.sessions.remove(session_id) else { return };
        self.forget_missed_warning(session_id);
        self.unchecked_plans.remove(session_id);
        if session.stage.has_program() {
            self.start_pauses(&session, &reason, now);
            self.use_up_extra_run(&session, now);
        }
        self.next_change = NextChange::Unknown;
        let session_id = session.session_id;
        let charged = session.charged.into();
        self.append_audit(
            now,
            POLICY_ACTOR,
            AuditKind::SessionEnded { session_id: session_id.clone(), end: reason.clone(), charged },
        );
        self.save_snapshot();
        self.announce(CoreEvent::SessionEnded { session_id, reason });
        self.announce(CoreEvent::EntryAvailabilityChanged);
    }
}

fn is_warning_due(warning: &ScheduledWarning, remaining: Option<Duration>) -> bool {
    warning.armed && remaining.is_some_and(|remaining| remaining <= warning.before)
}

/// Returns the label of a profile, or its id if the policy doesn't have the profile any more.
pub(super) fn profile_label<'a>(policy: &'a Policy, profile: &'a ProfileId) -> &'a str {
    policy.rules().profiles.get(profile).map_or(profile.as_str(), |profile| &profile.label)
}

pub(super) fn warning_event(
    warning: &ScheduledWarning,
    session: &SessionRecord,
    profile: &str,
    remaining: Duration,
) -> CoreEvent {
    CoreEvent::Warning {
        session_id: session.session_id.clone(),
        threshold_secs: warning.before.as_secs(),
        remaining,
        severity: warning.severity,
        message: WarningMessage {
            template: warning.message_template.clone(),
            label: session.label.clone(),
            profile: profile.to_owned(),
        },
    }
}
