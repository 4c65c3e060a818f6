//! Coming back: after a crash, a restart or a reboot (S9).

use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{AuditKind, EndReason, StopMode, StopRequester};
use shepherd_util::{ClockReading, Deadline};

use super::{CoreEngine, CoreEvent, POLICY_ACTOR};
use crate::policy::OnShutdown;
use crate::session::SessionDeadlines;
use crate::state::{DaemonHeartbeat, HEARTBEAT_INTERVAL};

/// How long a pulse may take to get onto the disk.
const MAX_SYNC_TIME: Duration = Duration::from_secs(1);

/// When there was no sign of life for so long, there was no daemon any more.
pub(super) const HEARTBEAT_TIMEOUT: Duration = HEARTBEAT_INTERVAL.saturating_add(MAX_SYNC_TIME);

/// What is known of the end of an earlier boot.
#[derive(Clone, Copy)]
enum UnobservedTime {
    /// There was a sign of life at this time, and the next one did not come.
    Since(Timestamp),
    /// There is none that can be believed. It was charged up to this time.
    Unknown(Timestamp),
}

/// What the host found of the session that the store remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionLiveness {
    /// Its program still runs and was taken back.
    Alive {
        /// What the host needs to find it again: it may not have been written down before the crash.
        handle: String,
    },
    /// Its program is gone.
    Gone,
    /// Its program is gone, and the host knows that it was started, even if the daemon was killed before that was
    /// written down.
    GoneAfterStart,
}

impl CoreEngine {
    /// Goes on from what the store remembers. Within one boot the clock went on without us, so nothing is lost and
    /// nothing won; after a reboot the time since the last sign of life is charged as if it had all been used.
    pub fn recover(&mut self, fate: SessionLiveness, now: ClockReading) -> Vec<CoreEvent> {
        let same_boot =
            self.snapshot.session.as_ref().is_some_and(|session| session.boot == self.environment.boot);
        self.record_unlogged_start(&fate, now);
        let last_sign = self.session_heartbeat(now).map(|pulse| pulse.at.mono);
        let lost = self.count_until_heartbeat(now);
        self.observe(now);
        let word = if matches!(fate, SessionLiveness::Alive { .. }) { "alive" } else { "gone" };
        let told = self.snapshot.session.as_ref().map(|session| format!("{} {word}", session.session_id));
        self.append_audit(now, POLICY_ACTOR, AuditKind::DaemonStarted { recovered: told });
        let Some(session) = &self.snapshot.session else {
            self.save_snapshot();
            return Vec::new();
        };
        let known = session.stage.has_program();
        match (fate, same_boot) {
            (SessionLiveness::Alive { .. }, true) => {
                self.missed_warning = self.find_missed_warning(last_sign, now);
                self.resume_session(now)
            }
            // It can't be: a boot ends every program. Whatever runs there is ended.
            (SessionLiveness::Alive { .. }, false) => {
                self.charge_time_lost_to_reboot(lost, now);
                self.move_to_this_boot(now);
                self.resume_session(now)
            }
            (SessionLiveness::Gone | SessionLiveness::GoneAfterStart, true) if known => {
                self.end_lost_session(now)
            }
            (SessionLiveness::Gone | SessionLiveness::GoneAfterStart, false) if known => {
                self.charge_time_lost_to_reboot(lost, now);
                self.end_session(EndReason::Lost, now)
            }
            (SessionLiveness::Gone | SessionLiveness::GoneAfterStart, _) => {
                let restarted = if same_boot { "daemon" } else { "machine" };
                self.end_session(
                    EndReason::LaunchFailed { detail: format!("the {restarted} was restarted") },
                    now,
                )
            }
        }
    }

    /// A program may have come up that was not written down any more.
    fn record_unlogged_start(&mut self, fate: &SessionLiveness, now: ClockReading) {
        let handle = match fate {
            SessionLiveness::Gone => return,
            SessionLiveness::Alive { handle } => handle.clone(),
            SessionLiveness::GoneAfterStart => String::new(),
        };
        let Some(session) = &mut self.snapshot.session else { return };
        if !session.stage.has_program() {
            // It was started in the very moment of the crash: its time counts from the beginning.
            session.charged_to = session.started;
        }
        session.stage.program_started(handle, now.mono);
    }

    /// Counts what was used up to the last sign of life, as if somebody had looked at the clock then, and says what is
    /// known of the time after it.
    fn count_until_heartbeat(&mut self, now: ClockReading) -> UnobservedTime {
        let Some(pulse) = self.session_heartbeat(now) else {
            return UnobservedTime::Unknown(self.charged_to_wall());
        };
        self.heartbeat = None;
        let present = std::mem::replace(&mut self.environment.boot, pulse.boot);
        self.anchor = self.snapshot.clock.latest_in_boot(pulse.boot);
        self.count_usage_until(pulse.at);
        let last = self.snapshot.clock.latest_seen.unwrap_or(pulse.at.wall);
        if present != pulse.boot {
            // What was seen there says nothing of the clock of this one.
            (self.environment.boot, self.anchor, self.last_seen) = (present, None, None);
        }
        UnobservedTime::Since(last)
    }

    /// The last sign of life of the session. One of another session or boot is none of it; nor is one from the future.
    fn session_heartbeat(&self, now: ClockReading) -> Option<DaemonHeartbeat> {
        let session = self.snapshot.session.as_ref()?;
        let began = session.started.total();
        let until = if session.boot == self.environment.boot { now.mono.total() } else { Duration::MAX };
        self.heartbeat
            .filter(|pulse| pulse.boot == session.boot && (began..=until).contains(&pulse.at.mono.total()))
    }

    /// The time that counted when the session was last charged: neither when it was planned nor what the wall shows
    /// now tells that, since the clock may have been set.
    fn charged_to_wall(&self) -> Timestamp {
        let Some(session) = &self.snapshot.session else { return Timestamp::MIN };
        let charged_to = self.snapshot.clock.latest_in_boot(session.boot).and_then(|seen| {
            let later = seen.wall.checked_add(session.charged_to.total_since(seen.mono)).ok()?;
            later.checked_sub(seen.mono.total_since(session.charged_to)).ok()
        });
        charged_to.unwrap_or(session.judged_at)
    }

    /// How long the clock of the last boot went on after the last sign of life is lost with it.
    fn charge_time_lost_to_reboot(&mut self, unseen: UnobservedTime, now: ClockReading) {
        let Some(session) = &self.snapshot.session else { return };
        let left = session.ends.remaining(session.charged_to);
        let being_ended = session.stage.end_reason().is_some();
        let (last, lost) = match unseen {
            UnobservedTime::Since(last) => {
                let most = HEARTBEAT_TIMEOUT;
                // One that was being ended may have resisted; any other would have been ended by then.
                let left = left.filter(|_| !being_ended);
                (last, left.map_or(most, |left| left.min(most)))
            }
            UnobservedTime::Unknown(last) => {
                // The sign that is lost may have come as late as the end of its grace: it would have cost no less.
                let resisted = session.stop_grace.saturating_add(HEARTBEAT_TIMEOUT);
                let left = left.map(|left| if being_ended { left.max(resisted) } else { left });
                // One that is believed may be behind, too.
                let tolerance = self.policy.rules().clock_tolerance;
                let passed =
                    Duration::try_from(self.effective_time(now).duration_since(last)).unwrap_or_default();
                let passed = passed.saturating_add(tolerance);
                let lost = match left {
                    // A clock that is behind does not tell what has passed.
                    Some(left) if self.clock_behind(now.wall).is_some() => left,
                    Some(left) => left.min(passed),
                    None => passed,
                };
                (last, lost)
            }
        };
        self.charge_unobserved(last.saturating_add(lost).unwrap_or(Timestamp::MAX), lost, now);
    }

    /// Its ends were on the clock of the other boot.
    fn move_to_this_boot(&mut self, now: ClockReading) {
        let end = Deadline::after(now.mono, Duration::ZERO, self.counting_mode());
        let Some(session) = &mut self.snapshot.session else { return };
        session.stage.expire(EndReason::Lost, now.mono);
        session.stage.restart_grace(now.mono);
        session.boot = self.environment.boot;
        session.charged_to = now.mono;
        session.ends = SessionDeadlines { run: Some(end), window: None };
    }

    /// Whoever carries out what we say has forgotten: an end that was called is called again.
    fn resume_session(&mut self, now: ClockReading) -> Vec<CoreEvent> {
        let mut events = Vec::new();
        if let Some(session) =
            self.snapshot.session.as_ref().filter(|session| session.stage.end_reason().is_some())
        {
            events.push(CoreEvent::ExpireDue { session_id: session.session_id.clone() });
        }
        events.extend(self.tick(now));
        self.save_snapshot();
        events
    }

    /// Nobody knows when it ended. It is charged up to now, as far as it may have gone on: whoever killed the daemon
    /// wins nothing by it, and nobody pays for days on which no daemon ran.
    fn end_lost_session(&mut self, now: ClockReading) -> Vec<CoreEvent> {
        let counting = self.counting_mode();
        let most = self.snapshot.session.as_ref().and_then(|session| {
            let left = session.ends.max_counted_since(session.charged_to, now.mono, counting)?;
            // One that was being ended may have resisted for as long as it is given to go.
            let grace =
                if session.stage.end_reason().is_some() { session.stop_grace } else { Duration::ZERO };
            Some(left.max(grace))
        });
        self.charge_unobserved_at_most(most.unwrap_or(Duration::MAX), now);
        self.end_session(EndReason::Lost, now)
    }

    /// The daemon goes down in order: what was used is there (S9.2b). By policy the session is left to be taken back,
    /// or has to be ended first (S9.3).
    pub fn shut_down(&mut self, now: ClockReading) -> Vec<CoreEvent> {
        self.observe(now);
        self.charge(now);
        let mut events = Vec::new();
        if self.policy.rules().on_shutdown == OnShutdown::EndSessions
            && let Some(session) = &mut self.snapshot.session
            // An end that was called is not called again.
            && session.stage.end_reason().is_none()
        {
            let (by, mode) = (StopRequester::Policy, StopMode::Graceful);
            session.stage.expire(EndReason::Stopped { by }, now.mono);
            let session_id = session.session_id.clone();
            events.push(CoreEvent::ExpireDue { session_id: session_id.clone() });
            self.append_audit(now, POLICY_ACTOR, AuditKind::StopRequested { session_id, by, mode });
        }
        self.append_audit(now, POLICY_ACTOR, AuditKind::DaemonStopped);
        self.save_snapshot();
        events
    }
}
