//! Coming back: after a crash, a restart or a reboot (S9).

use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{AuditKind, EndReason, StopMode, StopRequester};
use shepherd_util::{Deadline, Now};

use super::{CoreEngine, CoreEvent, POLICY};
use crate::policy::OnShutdown;
use crate::session::Ends;
use crate::state::{PULSE, Pulse};

/// How long a pulse may take to get onto the disk.
const SYNC: Duration = Duration::from_secs(1);

/// When there was no sign of life for so long, there was no daemon any more.
pub(super) const SILENCE: Duration = PULSE.saturating_add(SYNC);

/// What is known of the end of an earlier boot.
#[derive(Clone, Copy)]
enum Unseen {
    /// There was a sign of life at this time, and the next one did not come.
    Since(Timestamp),
    /// There is none that can be believed. It was charged up to this time.
    Unknown(Timestamp),
}

/// What the host found of the session that the store remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionFate {
    /// Its program still runs and was taken back.
    Alive {
        /// What the host needs to find it again: it may not have been written down before the crash.
        handle: String,
    },
    /// Its program is gone.
    Gone,
    /// Its program is gone, and the host knows that it was started, even if the daemon was killed before that was
    /// written down.
    GoneUnseen,
}

impl CoreEngine {
    /// Goes on from what the store remembers. Within one boot the clock went on without us, so nothing is lost and
    /// nothing won; after a reboot the time since the last sign of life is charged as if it had all been used.
    pub fn recover(&mut self, fate: SessionFate, now: Now) -> Vec<CoreEvent> {
        let same_boot = self.snapshot.session.as_ref().is_some_and(|session| session.boot == self.place.boot);
        self.note_what_came_up(&fate, now);
        let last_sign = self.own_pulse(now).map(|pulse| pulse.at.mono);
        let lost = self.count_until_pulse(now);
        self.observe(now);
        let word = if matches!(fate, SessionFate::Alive { .. }) { "alive" } else { "gone" };
        let told = self.snapshot.session.as_ref().map(|session| format!("{} {word}", session.session_id));
        self.audit(now, POLICY, AuditKind::DaemonStarted { recovered: told });
        let Some(session) = &self.snapshot.session else {
            self.save();
            return Vec::new();
        };
        let known = session.stage.has_program();
        match (fate, same_boot) {
            (SessionFate::Alive { .. }, true) => {
                self.unheard = self.find_unheard(last_sign, now);
                self.go_on(now)
            }
            // It can't be: a boot ends every program. Whatever runs there is ended.
            (SessionFate::Alive { .. }, false) => {
                self.charge_lost(lost, now);
                self.move_to_this_boot(now);
                self.go_on(now)
            }
            (SessionFate::Gone | SessionFate::GoneUnseen, true) if known => self.end_in_this_boot(now),
            (SessionFate::Gone | SessionFate::GoneUnseen, false) if known => {
                self.charge_lost(lost, now);
                self.end(EndReason::Lost, now)
            }
            (SessionFate::Gone | SessionFate::GoneUnseen, _) => {
                let restarted = if same_boot { "daemon" } else { "machine" };
                self.end(EndReason::LaunchFailed { detail: format!("the {restarted} was restarted") }, now)
            }
        }
    }

    /// A program may have come up that was not written down any more.
    fn note_what_came_up(&mut self, fate: &SessionFate, now: Now) {
        let handle = match fate {
            SessionFate::Gone => return,
            SessionFate::Alive { handle } => handle.clone(),
            SessionFate::GoneUnseen => String::new(),
        };
        let Some(session) = &mut self.snapshot.session else { return };
        if !session.stage.has_program() {
            // It was started in the very moment of the crash: its time counts from the beginning.
            session.charged_to = session.started;
        }
        session.stage.come_up(handle, now.mono);
    }

    /// Counts what was used up to the last sign of life, as if somebody had looked at the clock then, and says what is
    /// known of the time after it.
    fn count_until_pulse(&mut self, now: Now) -> Unseen {
        let Some(pulse) = self.own_pulse(now) else { return Unseen::Unknown(self.charged_to()) };
        self.pulse = None;
        let present = std::mem::replace(&mut self.place.boot, pulse.boot);
        self.anchor = self.snapshot.clock.seen_in(pulse.boot);
        self.count_until(pulse.at);
        let last = self.snapshot.clock.latest_seen.unwrap_or(pulse.at.wall);
        if present != pulse.boot {
            // What was seen there says nothing of the clock of this one.
            (self.place.boot, self.anchor, self.last_seen) = (present, None, None);
        }
        Unseen::Since(last)
    }

    /// The last sign of life of the session. One of another session or boot is none of it; nor is one from the future.
    fn own_pulse(&self, now: Now) -> Option<Pulse> {
        let session = self.snapshot.session.as_ref()?;
        let began = session.started.total();
        let until = if session.boot == self.place.boot { now.mono.total() } else { Duration::MAX };
        self.pulse
            .filter(|pulse| pulse.boot == session.boot && (began..=until).contains(&pulse.at.mono.total()))
    }

    /// The time that counted when the session was last charged: neither when it was planned nor what the wall shows
    /// now tells that, since the clock may have been set.
    fn charged_to(&self) -> Timestamp {
        let Some(session) = &self.snapshot.session else { return Timestamp::MIN };
        let charged_to = self.snapshot.clock.seen_in(session.boot).and_then(|seen| {
            let later = seen.wall.checked_add(session.charged_to.total_since(seen.mono)).ok()?;
            later.checked_sub(seen.mono.total_since(session.charged_to)).ok()
        });
        charged_to.unwrap_or(session.judged_at)
    }

    /// How long the clock of the last boot went on after the last sign of life is lost with it.
    fn charge_lost(&mut self, unseen: Unseen, now: Now) {
        let Some(session) = &self.snapshot.session else { return };
        let left = session.ends.remaining(session.charged_to);
        let being_ended = session.stage.end().is_some();
        let (last, lost) = match unseen {
            Unseen::Since(last) => {
                let most = SILENCE;
                // One that was being ended may have resisted; any other would have been ended by then.
                let left = left.filter(|_| !being_ended);
                (last, left.map_or(most, |left| left.min(most)))
            }
            Unseen::Unknown(last) => {
                // The sign that is lost may have come as late as the end of its grace: it would have cost no less.
                let resisted = session.stop_grace.saturating_add(SILENCE);
                let left = left.map(|left| if being_ended { left.max(resisted) } else { left });
                // One that is believed may be behind, too.
                let tolerance = self.policy.rules().clock_tolerance;
                let passed = Duration::try_from(self.counted(now).duration_since(last)).unwrap_or_default();
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
        self.charge_unseen(last.saturating_add(lost).unwrap_or(Timestamp::MAX), lost, now);
    }

    /// Its ends were on the clock of the other boot.
    fn move_to_this_boot(&mut self, now: Now) {
        let end = Deadline::after(now.mono, Duration::ZERO, self.counting());
        let Some(session) = &mut self.snapshot.session else { return };
        session.stage.expire(EndReason::Lost, now.mono);
        session.stage.move_to_boot(now.mono);
        session.boot = self.place.boot;
        session.charged_to = now.mono;
        session.ends = Ends { run: Some(end), window: None };
    }

    /// Whoever carries out what we say has forgotten: an end that was called is called again.
    fn go_on(&mut self, now: Now) -> Vec<CoreEvent> {
        let mut events = Vec::new();
        if let Some(session) = self.snapshot.session.as_ref().filter(|session| session.stage.end().is_some())
        {
            events.push(CoreEvent::ExpireDue { session_id: session.session_id.clone() });
        }
        events.extend(self.tick(now));
        self.save();
        events
    }

    /// Nobody knows when it ended. It is charged up to now, as far as it may have gone on: whoever killed the daemon
    /// wins nothing by it, and nobody pays for days on which no daemon ran.
    fn end_in_this_boot(&mut self, now: Now) -> Vec<CoreEvent> {
        let counting = self.counting();
        let most = self.snapshot.session.as_ref().and_then(|session| {
            let left = session.ends.most_since(session.charged_to, now.mono, counting)?;
            // One that was being ended may have resisted for as long as it is given to go.
            let grace = if session.stage.end().is_some() { session.stop_grace } else { Duration::ZERO };
            Some(left.max(grace))
        });
        self.charge_unseen_at_most(most.unwrap_or(Duration::MAX), now);
        self.end(EndReason::Lost, now)
    }

    /// The daemon goes down in order: what was used is there (S9.2b). By policy the session is left to be taken back,
    /// or has to be ended first (S9.3).
    pub fn shut_down(&mut self, now: Now) -> Vec<CoreEvent> {
        self.observe(now);
        self.charge(now);
        let mut events = Vec::new();
        if self.policy.rules().on_shutdown == OnShutdown::EndSessions
            && let Some(session) = &mut self.snapshot.session
            // An end that was called is not called again.
            && session.stage.end().is_none()
        {
            let (by, mode) = (StopRequester::Policy, StopMode::Graceful);
            session.stage.expire(EndReason::Stopped { by }, now.mono);
            let session_id = session.session_id.clone();
            events.push(CoreEvent::ExpireDue { session_id: session_id.clone() });
            self.audit(now, POLICY, AuditKind::StopRequested { session_id, by, mode });
        }
        self.audit(now, POLICY, AuditKind::DaemonStopped);
        self.save();
        events
    }
}
