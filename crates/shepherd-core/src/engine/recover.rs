//! Recovery after a crash, a restart or a reboot, and an orderly shutdown (S9).

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{AuditKind, EndReason, StopMode, StopRequester};
use shepherd_util::{ClockReading, Deadline, MonotonicInstant, ProfileId, SessionId};

use super::charged_time::{PlayObserved, UnchargedTime};
use super::{CoreEngine, Effects, EngineReply, POLICY_ACTOR};
use crate::policy::OnShutdown;
use crate::session::{ScheduledWarning, SessionDeadlines, SessionRecord};
use crate::state::{DaemonHeartbeat, HEARTBEAT_INTERVAL};

/// The longest time that a heartbeat takes to reach the disk.
const MAX_SYNC_TIME: Duration = Duration::from_secs(1);

/// If no heartbeat was written for this long, the daemon had ended.
pub(super) const HEARTBEAT_TIMEOUT: Duration = HEARTBEAT_INTERVAL.saturating_add(MAX_SYNC_TIME);

/// A stored session, and what is known of it after a restart.
struct RecoveredSession {
    session_id: SessionId,
    liveness: SessionLiveness,
    same_boot: bool,
    last_heartbeat: Option<DaemonHeartbeat>,
}

impl RecoveredSession {
    fn description(&self) -> String {
        let word = if matches!(self.liveness, SessionLiveness::Alive { .. }) { "alive" } else { "gone" };
        format!("{} {word}", self.session_id)
    }
}

/// The end of the earlier boot, as far as it is known.
#[derive(Clone, Copy)]
enum UnobservedTime {
    /// The last heartbeat came at this time.
    Since(Timestamp),
    /// There is no usable heartbeat. The session was charged up to this time.
    Unknown(Timestamp),
}

/// The state of the stored session's program, as the host found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionLiveness {
    /// The program still runs and was reattached.
    Alive {
        /// The text by which the host finds the program again. It may not have been stored before the crash.
        handle: String,
    },
    /// The program is gone.
    Gone,
    /// The program is gone, and the host knows that it was started, even if the store doesn't.
    GoneAfterStart,
}

/// The answer to a shutdown of the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum ShutdownDecision {
    /// Nothing has to end first. A running session is left to be reattached.
    ExitNow,
    /// The session is being ended, and its program gets this long.
    AwaitSessionEnd { grace: Duration },
}

impl CoreEngine {
    /// Continues from the stored state. Within one boot the monotonic clock kept running, so sessions are charged
    /// exactly; after a reboot the time since the last heartbeat is charged as if it had all been used. A stored session
    /// that isn't in `liveness` is gone.
    pub fn recover(&mut self, liveness: &BTreeMap<SessionId, SessionLiveness>, now: ClockReading) -> Effects {
        let sessions: Vec<RecoveredSession> = self
            .sessions
            .iter()
            .map(|session| {
                let liveness = liveness.get(&session.session_id).cloned().unwrap_or(SessionLiveness::Gone);
                RecoveredSession {
                    session_id: session.session_id.clone(),
                    liveness,
                    same_boot: session.boot == self.environment.boot,
                    last_heartbeat: self.session_heartbeat(session, now),
                }
            })
            .collect();
        for session in &sessions {
            self.record_unlogged_start(&session.session_id, &session.liveness, now);
        }
        let unobserved = self.count_until_heartbeat(&sessions);
        self.observe(now);
        let words: Vec<String> = sessions.iter().map(RecoveredSession::description).collect();
        let recovered = (!words.is_empty()).then(|| words.join(", "));
        self.append_audit(now, POLICY_ACTOR, AuditKind::DaemonStarted { recovered });
        let missed: Vec<_> = sessions.iter().map(|session| self.warning_missed_by(session, now)).collect();
        self.charge_unobserved_time(&sessions, &unobserved, now);
        for session in &sessions {
            self.continue_session(session, now);
        }
        if sessions.iter().any(|session| self.sessions.get(&session.session_id).is_some()) {
            self.advance_to(now);
        }
        for (session, missed) in sessions.into_iter().zip(missed) {
            let missed = missed.filter(|_| self.sessions.get(&session.session_id).is_some());
            self.missed_warnings.extend(missed.map(|missed| (session.session_id, missed)));
        }
        self.save_snapshot();
        self.take_effects()
    }

    /// Records the start of a program that the store missed because of the crash.
    fn record_unlogged_start(
        &mut self,
        session_id: &SessionId,
        liveness: &SessionLiveness,
        now: ClockReading,
    ) {
        let handle = match liveness {
            SessionLiveness::Gone => return,
            SessionLiveness::Alive { handle } => handle.clone(),
            SessionLiveness::GoneAfterStart => String::new(),
        };
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        if !session.stage.has_program() {
            // The start was at an unknown moment before the crash, so the time counts from the approval.
            session.charged_to = session.started;
        }
        session.stage.program_started(handle, now.mono);
    }

    /// Counts usage up to the last heartbeat, and returns what is known of the time after it, for each session.
    fn count_until_heartbeat(
        &mut self,
        sessions: &[RecoveredSession],
    ) -> BTreeMap<SessionId, UnobservedTime> {
        // Without a heartbeat, the wall clock at the last charge is needed, and counting usage would move that.
        let mut unobserved: BTreeMap<SessionId, UnobservedTime> = sessions
            .iter()
            .filter_map(|session| self.sessions.get(&session.session_id))
            .map(|session| {
                (
                    session.session_id.clone(),
                    UnobservedTime::Unknown(self.wall_time_of(session, session.charged_to)),
                )
            })
            .collect();
        let Some(heartbeat) = sessions.iter().find_map(|session| session.last_heartbeat) else {
            return unobserved;
        };
        self.heartbeat = None;
        let present = std::mem::replace(&mut self.environment.boot, heartbeat.boot);
        self.anchor = self.snapshot.clock.latest_in_boot(heartbeat.boot);
        self.count_usage_until(heartbeat.at);
        // The earlier daemon may have applied a grant that was given in advance, and not have stored that.
        for session in sessions.iter().filter(|session| session.last_heartbeat.is_some()) {
            if self.is_running(&session.session_id) {
                self.apply_due_grants(&session.session_id, heartbeat.at);
            }
        }
        let last = self.snapshot.clock.latest_seen.unwrap_or(heartbeat.at.wall);
        for session in sessions.iter().filter(|session| session.last_heartbeat.is_some()) {
            // A session that began after the heartbeat was alive when it began.
            let began = self.sessions.get(&session.session_id);
            let began = began.filter(|session| heartbeat.at.mono.total() < session.started.total());
            let began = began.map(|session| self.wall_time_of(session, session.charged_to));
            unobserved.insert(session.session_id.clone(), UnobservedTime::Since(began.unwrap_or(last)));
        }
        if present != heartbeat.boot {
            // The clock of the earlier boot can't be compared with the clock of this one.
            (self.environment.boot, self.anchor, self.last_seen) = (present, None, None);
        }
        unobserved
    }

    /// Returns the last heartbeat, if the daemon that wrote it had the session. A heartbeat of another boot doesn't count,
    /// nor does one from the future. A session that began just after a heartbeat had no other one yet: as long as there
    /// is a session, the next heartbeat follows within its interval.
    fn session_heartbeat(&self, session: &SessionRecord, now: ClockReading) -> Option<DaemonHeartbeat> {
        let began = session.started.total().saturating_sub(HEARTBEAT_TIMEOUT);
        let until = if session.boot == self.environment.boot { now.mono.total() } else { Duration::MAX };
        self.heartbeat.filter(|heartbeat| {
            heartbeat.boot == session.boot && (began..=until).contains(&heartbeat.at.mono.total())
        })
    }

    /// Returns the effective time at a moment of a session's boot. It is computed from the monotonic clock, because the
    /// wall clock may have been set since.
    fn wall_time_of(&self, session: &SessionRecord, at: MonotonicInstant) -> Timestamp {
        let time = self.snapshot.clock.latest_in_boot(session.boot).and_then(|seen| {
            let later = seen.wall.checked_add(at.total_since(seen.mono)).ok()?;
            later.checked_sub(seen.mono.total_since(at)).ok()
        });
        time.unwrap_or(session.judged_at)
    }

    fn warning_missed_by(&self, recovered: &RecoveredSession, now: ClockReading) -> Option<ScheduledWarning> {
        let is_alive = recovered.same_boot && matches!(recovered.liveness, SessionLiveness::Alive { .. });
        let session = self.sessions.get(&recovered.session_id).filter(|_| is_alive)?;
        self.find_missed_warning(session, recovered.last_heartbeat.map(|heartbeat| heartbeat.at.mono), now)
    }

    /// Charges all sessions up to now, or up to the moment at which they can have ended at the latest. The sessions of a
    /// profile are charged together, because they share the time.
    fn charge_unobserved_time(
        &mut self,
        sessions: &[RecoveredSession],
        unobserved: &BTreeMap<SessionId, UnobservedTime>,
        now: ClockReading,
    ) {
        let mut times = BTreeMap::<ProfileId, Vec<UnchargedTime>>::new();
        for recovered in sessions {
            let Some(session) = self.sessions.get(&recovered.session_id) else { continue };
            let time = match (recovered.same_boot, &recovered.liveness) {
                (true, SessionLiveness::Alive { .. }) => {
                    self.uncharged_time(session, Duration::MAX, PlayObserved::Yes, now)
                }
                (true, SessionLiveness::Gone | SessionLiveness::GoneAfterStart) => {
                    self.uncharged_time(session, self.most_after_loss(session, now), PlayObserved::No, now)
                }
                (false, _) => unobserved
                    .get(&recovered.session_id)
                    .filter(|_| session.is_counting())
                    .map(|unobserved| self.time_lost_to_reboot(session, *unobserved, now)),
            };
            times.entry(session.profile.clone()).or_default().extend(time);
        }
        for times in times.into_values() {
            self.charge_times(&times, now);
        }
    }

    /// Returns the most time since the last charge that a session can have run whose program ended unobserved: killing the
    /// daemon gains no time, and days without a daemon cost none.
    fn most_after_loss(&self, session: &SessionRecord, now: ClockReading) -> Duration {
        let left = session.ends.max_counted_since(session.charged_to, now.mono, self.counting_mode());
        // A program that was being ended may have resisted for its whole grace period.
        let grace = if session.stage.end_reason().is_some() { session.stop_grace } else { Duration::ZERO };
        left.map_or(Duration::MAX, |left| left.max(grace))
    }

    /// Returns the time between the last heartbeat and the reboot. Its length is unknown, so it is the most that it can
    /// be.
    fn time_lost_to_reboot(
        &self,
        session: &SessionRecord,
        unobserved: UnobservedTime,
        now: ClockReading,
    ) -> UnchargedTime {
        let left = session.ends.remaining(session.charged_to);
        let being_ended = session.stage.end_reason().is_some();
        let (last, lost) = match unobserved {
            UnobservedTime::Since(last) => {
                let most = HEARTBEAT_TIMEOUT;
                // A program that was being ended may have run on through its grace period; any other program ended with
                // its time.
                let left = left.filter(|_| !being_ended);
                (last, left.map_or(most, |left| left.min(most)))
            }
            UnobservedTime::Unknown(last) => {
                // The lost heartbeat may have come as late as the end of the grace period, and losing it must not
                // reduce the charge.
                let resisted = session.stop_grace.saturating_add(HEARTBEAT_TIMEOUT);
                let left = left.map(|left| if being_ended { left.max(resisted) } else { left });
                // A trusted clock may be behind by the tolerance.
                let tolerance = self.policy.rules().clock_tolerance;
                let passed =
                    Duration::try_from(self.effective_time(now).duration_since(last)).unwrap_or_default();
                let passed = passed.saturating_add(tolerance);
                // An untrusted clock doesn't show how much time has passed, nor does one that wasn't trusted before the
                // reboot and hasn't reached the last known time.
                let shows_passed = self.clock_behind(now.wall).is_none() && last <= self.effective_time(now);
                let lost = match left {
                    Some(left) if !shows_passed => left,
                    Some(left) => left.min(passed),
                    None => passed,
                };
                (last, lost)
            }
        };
        UnchargedTime {
            session_id: session.session_id.clone(),
            end: last.saturating_add(lost).unwrap_or(Timestamp::MAX),
            asleep: lost,
            awake: Duration::ZERO,
            observed: PlayObserved::No,
        }
    }

    /// Takes back a session, or ends it. It has been charged.
    fn continue_session(&mut self, recovered: &RecoveredSession, now: ClockReading) {
        let session_id = &recovered.session_id;
        let Some(session) = self.sessions.get(session_id) else { return };
        let had_program = session.stage.has_program();
        let is_alive = matches!(recovered.liveness, SessionLiveness::Alive { .. });
        if is_alive && !recovered.same_boot {
            // No program survives a reboot. If the host reports one all the same, it is stopped.
            self.move_to_this_boot(session_id, now);
        }
        if is_alive {
            // The new host process hasn't received the order for a session that was being ended.
            if self.sessions.get(session_id).is_some_and(|session| session.stage.end_reason().is_some()) {
                self.order_expiry(session_id, now);
            }
        } else if had_program {
            self.end_session(session_id, EndReason::Lost, now);
        } else {
            let restarted = if recovered.same_boot { "daemon" } else { "machine" };
            let detail = format!("the {restarted} was restarted");
            self.end_session(session_id, EndReason::LaunchFailed { detail }, now);
        }
    }

    /// Moves a session to the clock of this boot, with an end that is due now.
    fn move_to_this_boot(&mut self, session_id: &SessionId, now: ClockReading) {
        let end = Deadline::after(now.mono, Duration::ZERO, self.counting_mode());
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        session.stage.expire(EndReason::Lost, now.mono);
        session.stage.restart_grace(now.mono);
        session.boot = self.environment.boot;
        session.charged_to = now.mono;
        session.ends = SessionDeadlines { run: Some(end), window: None };
    }

    /// Prepares an orderly shutdown of the daemon: usage is written (S9.2b), and the policy decides whether the sessions
    /// are ended first or left to be reattached (S9.3).
    pub fn shut_down(&mut self, now: ClockReading) -> EngineReply<ShutdownDecision> {
        self.observe(now);
        self.charge_all(now);
        let grace = self.sessions.iter().map(|session| session.stop_grace).max();
        let decision = match grace {
            Some(grace) if self.policy.rules().on_shutdown == OnShutdown::EndSessions => {
                self.end_all_sessions(now);
                ShutdownDecision::AwaitSessionEnd { grace }
            }
            Some(_) | None => ShutdownDecision::ExitNow,
        };
        self.append_audit(now, POLICY_ACTOR, AuditKind::DaemonStopped);
        self.save_snapshot();
        self.answer(decision)
    }

    /// Asks every session to end that isn't being ended already.
    fn end_all_sessions(&mut self, now: ClockReading) {
        let goes_on = |session: &&SessionRecord| session.stage.end_reason().is_none();
        let sessions: Vec<SessionId> =
            self.sessions.iter().filter(goes_on).map(|session| session.session_id.clone()).collect();
        for session_id in sessions {
            let by = StopRequester::Policy;
            if let Some(session) = self.sessions.get_mut(&session_id) {
                session.stage.expire(EndReason::Stopped { by }, now.mono);
            }
            self.order_expiry(&session_id, now);
            let requested = AuditKind::StopRequested { session_id, by, mode: StopMode::Graceful };
            self.append_audit(now, POLICY_ACTOR, requested);
        }
    }
}
