//! From a wish to a plan (S3.3, S3.4).

use std::time::Duration;

use shepherd_api::{AuditKind, EndReason, ReasonCode};
use shepherd_util::{ClockReading, Deadline, DeadlineClock, EntryId, ProfileId, SessionId};

use super::{CoreEngine, CoreEvent, POLICY_ACTOR};
use crate::evaluation::{EntryFinding, NoObserver};
use crate::policy::{PolicyEntry, TimeCost};
use crate::session::{ScheduledWarning, SessionDeadlines, SessionPlan, SessionRecord, SessionStage};

/// Somebody wants an entry to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchRequest {
    /// What.
    pub entry_id: EntryId,
    /// Whose time it will be; `NotRequested` is the default profile.
    pub profile: Option<ProfileId>,
    /// The name that the session gets if there is one: the engine makes up nothing.
    pub session_id: SessionId,
    /// Who asks, for the audit log.
    pub actor: String,
}

/// A program that nobody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nobody waits for this program any more; it has to be ended")]
pub struct LaunchNotAwaited;

/// The answer.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum LaunchDecision {
    /// Yes, on these terms. The session is `Launching` until it is started or has failed.
    Approved(Box<SessionPlan>),
    /// No, and these are all the reasons.
    Denied {
        /// At least one.
        reasons: Vec<ReasonCode>,
    },
}

impl CoreEngine {
    /// Judges a wish and, if nothing speaks against it, plans the session. The intent is among the writes.
    pub fn request_launch(&mut self, request: &LaunchRequest, now: ClockReading) -> LaunchDecision {
        self.observe(now);
        let profile = request.profile.clone().unwrap_or_else(|| self.policy.default_profile());
        let at = self.evaluation_time(now);
        let entry = self.policy.entry(&request.entry_id).cloned();
        let finding = match &entry {
            // Of several children none can be taken for the one who asks.
            Some(_) if request.profile.is_none() && self.policy.rules().profiles.len() > 1 => {
                EntryFinding { reasons: vec![ReasonCode::NotForProfile], ..EntryFinding::default() }
            }
            Some(entry) => self.evaluation_context(at).evaluate(&profile, entry, at, &mut NoObserver),
            None => EntryFinding {
                reasons: vec![ReasonCode::UnknownEntry { entry_id: request.entry_id.clone() }],
                ..EntryFinding::default()
            },
        };
        let Some(entry) = entry.filter(|_| finding.reasons.is_empty()) else {
            let reasons = finding.reasons;
            let (entry_id, told) = (request.entry_id.clone(), reasons.clone());
            self.append_audit(
                now,
                &request.actor,
                AuditKind::LaunchDenied { entry_id, profile, reasons: told },
            );
            self.save_snapshot();
            return LaunchDecision::Denied { reasons };
        };
        let session = self.plan_session(&entry, profile, request.session_id.clone(), &finding, now);
        let plan = session_plan(&session, entry, now);
        self.append_audit(
            now,
            &request.actor,
            AuditKind::LaunchApproved {
                session_id: session.session_id.clone(),
                entry_id: session.entry_id.clone(),
                profile: session.profile.clone(),
                max_run: finding.longest_run(at.wall).map(Into::into),
            },
        );
        self.snapshot.session = Some(session);
        self.save_snapshot();
        LaunchDecision::Approved(Box::new(plan))
    }

    fn plan_session(
        &self,
        entry: &PolicyEntry,
        profile: ProfileId,
        session_id: SessionId,
        finding: &EntryFinding,
        now: ClockReading,
    ) -> SessionRecord {
        let (at, ends) = (self.evaluation_time(now), self.session_deadlines(finding, now));
        let in_a_row = self.streak_so_far(&profile, at);
        SessionRecord {
            session_id,
            entry_id: entry.entry_id.clone(),
            label: entry.label.clone(),
            profile,
            started_at: now.wall,
            judged_at: at.wall,
            boot: self.environment.boot,
            started: now.mono,
            ends,
            warnings: schedule_warnings(entry, ends.remaining(now.mono)),
            given: Vec::new(),
            extensions: Vec::new(),
            charged_to: now.mono,
            charged_day: at.day,
            charged: Duration::ZERO,
            in_a_row,
            stage: SessionStage::Launching,
            stop_grace: entry.run.stop_grace.unwrap_or(self.policy.rules().stop_grace),
            budgets: entry.budgets.clone(),
            free: entry.cost == TimeCost::Free,
            cooldown: entry.limits.cooldown_after_run,
        }
    }

    /// Run time on the clock that the policy counts on, the window on the one that never stops (S4.4).
    pub(super) fn session_deadlines(&self, finding: &EntryFinding, now: ClockReading) -> SessionDeadlines {
        let window = finding.closes.map(|closes| {
            let length =
                Duration::try_from(closes.duration_since(self.effective_time(now))).unwrap_or_default();
            Deadline::after(now.mono, length, DeadlineClock::Total)
        });
        let run = finding.run_limit.map(|run| Deadline::after(now.mono, run, self.counting_mode()));
        SessionDeadlines { run, window }
    }

    /// The program runs (S3.5). The time of the launch itself is free. If somebody has stopped the session
    /// meanwhile, the answer is that it must be ended.
    ///
    /// # Errors
    /// When nobody waits for this program any more: its launch has timed out. Whoever started it must end it.
    pub fn start_session(
        &mut self,
        session_id: &SessionId,
        host_session_handle: String,
        now: ClockReading,
    ) -> Result<Vec<CoreEvent>, LaunchNotAwaited> {
        self.observe(now);
        let day = self.evaluation_time(now).day;
        let session =
            self.snapshot.session.as_mut().filter(|session| is_awaiting_program(session, session_id));
        let session = session.ok_or(LaunchNotAwaited)?;
        session.stage.program_started(host_session_handle, now.mono);
        session.charged_to = now.mono;
        session.charged_day = day;
        if session.stage.end_reason().is_some() {
            let session_id = session.session_id.clone();
            self.save_snapshot();
            return Ok(vec![CoreEvent::ExpireDue { session_id }]);
        }
        let event = CoreEvent::SessionStarted {
            session_id: session.session_id.clone(),
            entry_id: session.entry_id.clone(),
            deadline: session.ends.earliest(now.mono).map(|deadline| deadline.expected_at(now.mono)),
        };
        let session_id = session.session_id.clone();
        self.append_audit(now, POLICY_ACTOR, AuditKind::SessionStarted { session_id });
        self.save_snapshot();
        Ok(vec![event])
    }

    /// The program did not start. That costs no quota and no cooldown (S3.5b).
    pub fn launch_failed(
        &mut self,
        session_id: &SessionId,
        detail: String,
        now: ClockReading,
    ) -> Vec<CoreEvent> {
        self.observe(now);
        // Also one that was stopped while it was being launched.
        if !self.snapshot.session.as_ref().is_some_and(|session| is_awaiting_program(session, session_id)) {
            return Vec::new();
        }
        self.end_session(EndReason::LaunchFailed { detail }, now)
    }
}

/// Whether the program of this session is still to come up.
fn is_awaiting_program(session: &SessionRecord, session_id: &SessionId) -> bool {
    session.session_id == *session_id && !session.stage.has_program()
}

fn session_plan(session: &SessionRecord, entry: PolicyEntry, now: ClockReading) -> SessionPlan {
    SessionPlan {
        session_id: session.session_id.clone(),
        entry_id: session.entry_id.clone(),
        entry,
        profile: session.profile.clone(),
        started_at: session.started_at,
        deadline: session.ends.earliest(now.mono).map(|deadline| deadline.expected_at(now.mono)),
        warnings: session.warnings.iter().filter(|warning| warning.armed).cloned().collect(),
        stop_grace: session.stop_grace,
    }
}

/// A session shorter than a threshold has no such warning (S2.5).
pub(super) fn schedule_warnings(entry: &PolicyEntry, length: Option<Duration>) -> Vec<ScheduledWarning> {
    let armed = |before: Duration| length.is_some_and(|length| before < length);
    let warnings = entry.warnings.warnings().iter();
    warnings
        .map(|warning| ScheduledWarning {
            before: warning.before,
            severity: warning.severity,
            message_template: warning.message_template.clone(),
            armed: armed(warning.before),
        })
        .collect()
}
