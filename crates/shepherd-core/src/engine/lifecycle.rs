//! A session on its way: warnings, expiry, stops and the end.

use std::time::Duration;

use shepherd_api::{AuditKind, EndReason, StopMode, StopRequester};
use shepherd_util::{ClockReading, HumanDuration, MonotonicInstant, ProfileId, SessionId};

use super::{CoreEngine, CoreEvent, NextChange, POLICY_ACTOR};
use crate::hours::OpenState;
use crate::policy::Policy;
use crate::session::{ScheduledWarning, SessionRecord, SessionStage};

/// How a program ended, as the host saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitInfo {
    /// Of which session: an exit belongs to exactly one.
    pub session_id: SessionId,
    /// Its exit code, where it is known.
    pub code: Option<i32>,
    /// The signal that ended it, where there was one.
    pub signal: Option<i32>,
}

/// Somebody wants the session to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopRequest {
    /// Who.
    pub by: StopRequester,
    /// How.
    pub mode: StopMode,
    /// Who exactly, for the audit log.
    pub actor: String,
}

/// What to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum StopDecision {
    /// End this program in this way.
    Stop {
        /// Of which session.
        session_id: SessionId,
        /// How.
        mode: StopMode,
        /// How long it may take after it was asked.
        grace: Duration,
    },
    /// Nothing is running.
    NothingToStop,
}

impl CoreEngine {
    /// Time has passed (S3.5). Says what is due.
    pub fn tick(&mut self, now: ClockReading) -> Vec<CoreEvent> {
        self.observe(now);
        let mut events = Vec::new();
        self.charge(now);
        let slept = std::mem::take(&mut self.clock_changes.slept);
        if self.is_running() {
            let planned = self.snapshot.session.as_ref().map(|session| session.ends);
            // Who sleeps past midnight wakes up to the quota of another day.
            if std::mem::take(&mut self.clock_changes.needs_recheck) || slept {
                self.shorten_to_quota(now);
            }
            let changed = self.snapshot.session.as_ref().map(|session| session.ends) != planned;
            if slept || changed {
                events.extend(self.rearm_warnings(now));
            }
            events.extend(self.apply_due_grants(now));
        }
        if self.is_running() {
            self.issue_warnings(now, &mut events);
            self.expire_if_due(now, &mut events);
        }
        events.extend(self.time_out_launch(now));
        if !events.is_empty() {
            self.save_snapshot();
        }
        if std::mem::take(&mut self.clock_changes.clock_set) {
            self.next_change = NextChange::Unknown;
            events.push(CoreEvent::EntryAvailabilityChanged);
            self.save_snapshot();
        }
        self.announce_changes(now, &mut events);
        self.lapse_requests(now);
        events
    }

    fn is_running(&self) -> bool {
        self.snapshot
            .session
            .as_ref()
            .is_some_and(|session| matches!(session.stage, SessionStage::Running { .. }))
    }

    /// Also one that was stopped before its program came up: nobody else would end it.
    fn time_out_launch(&mut self, now: ClockReading) -> Vec<CoreEvent> {
        let timeout = self.policy.rules().launch_timeout;
        let late = |session: &SessionRecord| {
            !session.stage.has_program() && now.mono.total_since(session.started) >= timeout
        };
        if self.snapshot.session.as_ref().is_some_and(late) {
            return self.end_session(EndReason::LaunchTimedOut, now);
        }
        Vec::new()
    }

    fn issue_warnings(&mut self, now: ClockReading, events: &mut Vec<CoreEvent>) {
        let Some(session) = &mut self.snapshot.session else { return };
        let Some(remaining) = session.ends.remaining(now.mono) else { return };
        let whose = profile_label(&self.policy, &session.profile);
        let due = |warning: &ScheduledWarning| warning.armed && remaining <= warning.before;
        let (due, later): (Vec<_>, Vec<_>) = session.warnings.drain(..).partition(due);
        session.warnings = later;
        let mut told = Vec::new();
        for warning in due {
            session.given.push(warning.before);
            session.stage.record_warning(warning.severity);
            events.push(warning_event(&warning, session, whose, remaining));
            told.push((session.session_id.clone(), warning.before.as_secs()));
        }
        for (session_id, threshold_secs) in told {
            self.append_audit(now, POLICY_ACTOR, AuditKind::WarningGiven { session_id, threshold_secs });
        }
    }

    fn expire_if_due(&mut self, now: ClockReading, events: &mut Vec<CoreEvent>) {
        let Some(session) = &mut self.snapshot.session else { return };
        if session.ends.is_due(now.mono) {
            session.stage.expire(EndReason::Expired, now.mono);
            let session_id = session.session_id.clone();
            let (by, mode) = (StopRequester::Policy, StopMode::Graceful);
            events.push(CoreEvent::ExpireDue { session_id: session_id.clone() });
            self.append_audit(now, POLICY_ACTOR, AuditKind::StopRequested { session_id, by, mode });
        }
    }

    /// Somebody wants the session to end. Asking again while it is being ended can only make it end sooner.
    pub fn stop_current(&mut self, request: &StopRequest, now: ClockReading) -> StopDecision {
        self.observe(now);
        self.charge(now);
        let Some(session) = &mut self.snapshot.session else { return StopDecision::NothingToStop };
        session.stage.expire(EndReason::Stopped { by: request.by }, now.mono);
        let (session_id, grace) = (session.session_id.clone(), session.grace_left(now.mono));
        let (by, mode) = (request.by, request.mode);
        self.append_audit(
            now,
            &request.actor,
            AuditKind::StopRequested { session_id: session_id.clone(), by, mode },
        );
        self.save_snapshot();
        StopDecision::Stop { session_id, mode, grace }
    }

    /// The program and everything that came of it is gone. An exit of another session changes nothing (S6.2b).
    pub fn notify_session_exited(&mut self, exit: &ExitInfo, now: ClockReading) -> Vec<CoreEvent> {
        self.observe(now);
        let Some(session) =
            self.snapshot.session.as_ref().filter(|session| session.session_id == exit.session_id)
        else {
            return Vec::new();
        };
        let reason = match &session.stage {
            SessionStage::Withdrawn { reason } | SessionStage::Expiring { reason, .. } => reason.clone(),
            SessionStage::Launching => {
                EndReason::LaunchFailed { detail: "it ended before it was running".to_owned() }
            }
            SessionStage::Running { .. } => EndReason::Exited { code: exit.code, signal: exit.signal },
        };
        self.end_session(reason, now)
    }

    /// Charges what is left to charge, begins the pauses, forgets the session.
    pub(super) fn end_session(&mut self, reason: EndReason, now: ClockReading) -> Vec<CoreEvent> {
        self.charge(now);
        let Some(session) = self.snapshot.session.take() else { return Vec::new() };
        // What was stopped before it was started has not run either.
        let ran = session.stage.has_program()
            && !matches!(reason, EndReason::LaunchFailed { .. } | EndReason::LaunchTimedOut);
        if ran {
            self.start_pauses(&session, now);
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
        vec![CoreEvent::SessionEnded { session_id, reason }, CoreEvent::EntryAvailabilityChanged]
    }

    /// When something is due, if the machine stays awake (S4.7): the daemon sleeps until then.
    #[must_use]
    pub fn next_due(&self) -> Option<MonotonicInstant> {
        let now = self.last_seen?;
        let wait = [self.session_due(now), self.availability_change_due(now)].into_iter().flatten().min()?;
        Some(now.mono.after(wait))
    }

    fn session_due(&self, now: ClockReading) -> Option<Duration> {
        let session = self.snapshot.session.as_ref()?;
        let since = |at: MonotonicInstant, length: Duration| length.saturating_sub(now.mono.total_since(at));
        match session.stage {
            SessionStage::Launching | SessionStage::Withdrawn { .. } => {
                Some(since(session.started, self.policy.rules().launch_timeout))
            }
            // Its end was called; the host says when it has come.
            SessionStage::Expiring { .. } => None,
            SessionStage::Running { .. } => {
                let remaining = session.ends.remaining(now.mono);
                let warnings = session.warnings.iter().filter(|warning| warning.armed);
                let warning =
                    warnings.filter_map(|warning| Some(remaining?.saturating_sub(warning.before))).min();
                [remaining, warning].into_iter().flatten().min()
            }
        }
    }

    fn availability_change_due(&self, now: ClockReading) -> Option<Duration> {
        match self.next_change {
            NextChange::Unknown => Some(Duration::ZERO),
            NextChange::Known(at) => {
                Some(Duration::try_from(at?.duration_since(self.notification_time(now))).unwrap_or_default())
            }
        }
    }

    /// Tells when what can be launched has changed: windows, pauses, the refill at midnight, grants, requests. The
    /// moment is remembered with it, so that a clock that is set back later is noticed.
    fn announce_changes(&mut self, now: ClockReading, events: &mut Vec<CoreEvent>) {
        match self.next_change {
            NextChange::Known(None) => return,
            NextChange::Known(Some(at)) if at > self.notification_time(now) => return,
            NextChange::Known(Some(_)) => {
                events.push(CoreEvent::EntryAvailabilityChanged);
                self.save_snapshot();
            }
            NextChange::Unknown => {}
        }
        self.next_change = NextChange::Known(self.find_next_change(now));
    }

    fn find_next_change(&self, now: ClockReading) -> Option<jiff::Timestamp> {
        let from = self.notification_time(now);
        let requests = self.snapshot.requests.iter().filter(|request| request.state.is_open());
        let requests = requests.map(|request| request.lapses_at);
        if let Some(trust) = self.clock_trusted_at(now.wall) {
            // Until then nothing opens or closes.
            return requests.chain([trust]).filter(|change| *change > from).min();
        }
        let at = self.evaluation_time(now);
        let facts = self.evaluation_context(at);
        let hours = self.policy.entries().iter().filter_map(|entry| {
            match facts.opening_hours(entry).open_state_at(from) {
                OpenState::Open { closes } => closes,
                OpenState::Closed { opens } => opens,
            }
        });
        let used_up = self.policy.has_quotas().then(|| facts.wall.end_of_day(from, at.day)).flatten();
        let rests = self.snapshot.streaks.values().map(|streak| streak.rested);
        let pauses = self.cooldowns.values().copied().chain(rests);
        let pauses = pauses.filter_map(|until| facts.pending_until(until, at));
        let grants = self.snapshot.grants.iter().flat_map(|grant| [grant.valid_from, grant.lapses_at]);
        let changes = hours.chain(used_up).chain(pauses).chain(grants).chain(requests);
        changes.filter(|change| *change > from).min()
    }
}

/// What a profile is called. Another policy may know nobody of that name any more.
pub(super) fn profile_label<'a>(policy: &'a Policy, profile: &'a ProfileId) -> &'a str {
    policy.rules().profiles.get(profile).map_or(profile.as_str(), |profile| &profile.label)
}

pub(super) fn warning_event(
    warning: &ScheduledWarning,
    session: &SessionRecord,
    whose: &str,
    remaining: Duration,
) -> CoreEvent {
    CoreEvent::Warning {
        session_id: session.session_id.clone(),
        threshold_secs: warning.before.as_secs(),
        remaining,
        severity: warning.severity,
        message: warning_message(warning, session, whose, remaining),
    }
}

fn warning_message(
    warning: &ScheduledWarning,
    session: &SessionRecord,
    whose: &str,
    remaining: Duration,
) -> String {
    let template = warning.message_template.as_deref().unwrap_or("{label} ends in {remaining}.");
    template
        .replace("{remaining}", &HumanDuration(round_up_to_seconds(remaining)).to_string())
        .replace("{label}", &session.label)
        .replace("{profile}", whose)
}

/// A warning that comes a moment late still says what it is for: ten seconds, not nine.
fn round_up_to_seconds(length: Duration) -> Duration {
    Duration::from_secs(length.as_secs() + u64::from(length.subsec_nanos() > 0))
}
