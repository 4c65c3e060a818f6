//! Recovery after a crash, a restart or a reboot, and an orderly shutdown (S9).

use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{AuditKind, EndReason, StopMode, StopRequester};
use shepherd_util::{ClockReading, Deadline};

use super::{CoreEngine, Effects, EngineReply, POLICY_ACTOR};
use crate::policy::OnShutdown;
use crate::session::SessionDeadlines;
use crate::state::{DaemonHeartbeat, HEARTBEAT_INTERVAL};

/// The longest time that a heartbeat takes to reach the disk.
const MAX_SYNC_TIME: Duration = Duration::from_secs(1);

/// If no heartbeat was written for this long, the daemon had ended.
pub(super) const HEARTBEAT_TIMEOUT: Duration = HEARTBEAT_INTERVAL.saturating_add(MAX_SYNC_TIME);

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
    /// Continues from the stored state. Within one boot the monotonic clock kept running, so the session is charged
    /// exactly; after a reboot the time since the last heartbeat is charged as if it had all been used.
    pub fn recover(&mut self, liveness: SessionLiveness, now: ClockReading) -> Effects {
        let same_boot =
            self.snapshot.session.as_ref().is_some_and(|session| session.boot == self.environment.boot);
        self.record_unlogged_start(&liveness, now);
        let last_heartbeat = self.session_heartbeat(now).map(|heartbeat| heartbeat.at.mono);
        let unobserved = self.count_until_heartbeat(now);
        self.observe(now);
        let word = if matches!(liveness, SessionLiveness::Alive { .. }) { "alive" } else { "gone" };
        let recovered =
            self.snapshot.session.as_ref().map(|session| format!("{} {word}", session.session_id));
        self.append_audit(now, POLICY_ACTOR, AuditKind::DaemonStarted { recovered });
        let Some(session) = &self.snapshot.session else {
            self.save_snapshot();
            return self.take_effects();
        };
        let had_program = session.stage.has_program();
        match (liveness, same_boot) {
            (SessionLiveness::Alive { .. }, true) => {
                let missed = self.find_missed_warning(last_heartbeat, now);
                self.resume_session(now);
                self.missed_warning = missed.filter(|_| self.snapshot.session.is_some());
            }
            // No program survives a reboot. If the host reports one all the same, it is stopped.
            (SessionLiveness::Alive { .. }, false) => {
                self.charge_time_lost_to_reboot(unobserved, now);
                self.move_to_this_boot(now);
                self.resume_session(now);
            }
            (SessionLiveness::Gone | SessionLiveness::GoneAfterStart, true) if had_program => {
                self.end_lost_session(now);
            }
            (SessionLiveness::Gone | SessionLiveness::GoneAfterStart, false) if had_program => {
                self.charge_time_lost_to_reboot(unobserved, now);
                self.end_session(EndReason::Lost, now);
            }
            (SessionLiveness::Gone | SessionLiveness::GoneAfterStart, _) => {
                let restarted = if same_boot { "daemon" } else { "machine" };
                let detail = format!("the {restarted} was restarted");
                self.end_session(EndReason::LaunchFailed { detail }, now);
            }
        }
        self.take_effects()
    }

    /// Records the start of a program that the store missed because of the crash.
    fn record_unlogged_start(&mut self, liveness: &SessionLiveness, now: ClockReading) {
        let handle = match liveness {
            SessionLiveness::Gone => return,
            SessionLiveness::Alive { handle } => handle.clone(),
            SessionLiveness::GoneAfterStart => String::new(),
        };
        let Some(session) = &mut self.snapshot.session else { return };
        if !session.stage.has_program() {
            // The start was at an unknown moment before the crash, so the time counts from the approval.
            session.charged_to = session.started;
        }
        session.stage.program_started(handle, now.mono);
    }

    /// Counts usage up to the last heartbeat, and returns what is known of the time after it.
    fn count_until_heartbeat(&mut self, now: ClockReading) -> UnobservedTime {
        let Some(heartbeat) = self.session_heartbeat(now) else {
            return UnobservedTime::Unknown(self.charged_to_wall());
        };
        self.heartbeat = None;
        let present = std::mem::replace(&mut self.environment.boot, heartbeat.boot);
        self.anchor = self.snapshot.clock.latest_in_boot(heartbeat.boot);
        self.count_usage_until(heartbeat.at);
        let last = self.snapshot.clock.latest_seen.unwrap_or(heartbeat.at.wall);
        if present != heartbeat.boot {
            // The clock of the earlier boot can't be compared with the clock of this one.
            (self.environment.boot, self.anchor, self.last_seen) = (present, None, None);
        }
        UnobservedTime::Since(last)
    }

    /// Returns the last heartbeat of the session. A heartbeat of another session or boot doesn't count, nor does one
    /// from the future.
    fn session_heartbeat(&self, now: ClockReading) -> Option<DaemonHeartbeat> {
        let session = self.snapshot.session.as_ref()?;
        let began = session.started.total();
        let until = if session.boot == self.environment.boot { now.mono.total() } else { Duration::MAX };
        self.heartbeat.filter(|heartbeat| {
            heartbeat.boot == session.boot && (began..=until).contains(&heartbeat.at.mono.total())
        })
    }

    /// Returns the effective time at which the session was last charged. It is computed from the monotonic clock,
    /// because the wall clock may have been set since.
    fn charged_to_wall(&self) -> Timestamp {
        let Some(session) = &self.snapshot.session else { return Timestamp::MIN };
        let charged_to = self.snapshot.clock.latest_in_boot(session.boot).and_then(|seen| {
            let later = seen.wall.checked_add(session.charged_to.total_since(seen.mono)).ok()?;
            later.checked_sub(seen.mono.total_since(session.charged_to)).ok()
        });
        charged_to.unwrap_or(session.judged_at)
    }

    /// Charges the time between the last heartbeat and the reboot. Its length is unknown, so the session is charged
    /// with the most that it can be.
    fn charge_time_lost_to_reboot(&mut self, unobserved: UnobservedTime, now: ClockReading) {
        let Some(session) = &self.snapshot.session else { return };
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
                let lost = match left {
                    // An untrusted clock doesn't show how much time has passed.
                    Some(left) if self.clock_behind(now.wall).is_some() => left,
                    Some(left) => left.min(passed),
                    None => passed,
                };
                (last, lost)
            }
        };
        self.charge_unobserved(last.saturating_add(lost).unwrap_or(Timestamp::MAX), lost, now);
    }

    /// Moves a session to the clock of this boot, with an end that is due now.
    fn move_to_this_boot(&mut self, now: ClockReading) {
        let end = Deadline::after(now.mono, Duration::ZERO, self.counting_mode());
        let Some(session) = &mut self.snapshot.session else { return };
        session.stage.expire(EndReason::Lost, now.mono);
        session.stage.restart_grace(now.mono);
        session.boot = self.environment.boot;
        session.charged_to = now.mono;
        session.ends = SessionDeadlines { run: Some(end), window: None };
    }

    /// Repeats orders that the new host process hasn't received: a session that was being ended is stopped again.
    fn resume_session(&mut self, now: ClockReading) {
        if self.snapshot.session.as_ref().is_some_and(|session| session.stage.end_reason().is_some()) {
            self.order_expiry(now);
        }
        self.advance_to(now);
        self.save_snapshot();
    }

    /// Ends a session whose program ended unobserved. The session is charged up to now, but not beyond its deadline:
    /// killing the daemon gains no time, and days without a daemon cost none.
    fn end_lost_session(&mut self, now: ClockReading) {
        let counting = self.counting_mode();
        let most = self.snapshot.session.as_ref().and_then(|session| {
            let left = session.ends.max_counted_since(session.charged_to, now.mono, counting)?;
            // A program that was being ended may have resisted for its whole grace period.
            let grace =
                if session.stage.end_reason().is_some() { session.stop_grace } else { Duration::ZERO };
            Some(left.max(grace))
        });
        self.charge_unobserved_at_most(most.unwrap_or(Duration::MAX), now);
        self.end_session(EndReason::Lost, now);
    }

    /// Prepares an orderly shutdown of the daemon: usage is written (S9.2b), and the policy decides whether the session
    /// is ended first or left to be reattached (S9.3).
    pub fn shut_down(&mut self, now: ClockReading) -> EngineReply<ShutdownDecision> {
        self.observe(now);
        self.charge(now);
        let decision = match &mut self.snapshot.session {
            Some(session) if self.policy.rules().on_shutdown == OnShutdown::EndSessions => {
                let grace = session.stop_grace;
                // A session that is already being ended gets no second order.
                if session.stage.end_reason().is_none() {
                    let (session_id, by) = (session.session_id.clone(), StopRequester::Policy);
                    session.stage.expire(EndReason::Stopped { by }, now.mono);
                    self.order_expiry(now);
                    let requested = AuditKind::StopRequested { session_id, by, mode: StopMode::Graceful };
                    self.append_audit(now, POLICY_ACTOR, requested);
                }
                ShutdownDecision::AwaitSessionEnd { grace }
            }
            Some(_) | None => ShutdownDecision::ExitNow,
        };
        self.append_audit(now, POLICY_ACTOR, AuditKind::DaemonStopped);
        self.save_snapshot();
        self.answer(decision)
    }
}
