//! Coming back: after a crash, a restart or a reboot (S9).

use std::time::Duration;

use shepherd_api::{AuditKind, EndReason, StopMode, StopRequester};
use shepherd_util::{Deadline, Now};

use super::charge::CHECKPOINT;
use super::{CoreEngine, CoreEvent, POLICY};
use crate::policy::OnShutdown;
use crate::session::{Ends, Stage};

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
    /// nothing won; after a reboot the time since the last checkpoint is charged as if it had all been used.
    pub fn recover(&mut self, fate: SessionFate, now: Now) -> Vec<CoreEvent> {
        let same_boot = self.snapshot.session.as_ref().is_some_and(|session| session.boot == self.place.boot);
        let counting = self.counting();
        self.observe(now);
        let word = if matches!(fate, SessionFate::Alive { .. }) { "alive" } else { "gone" };
        let told = self.snapshot.session.as_ref().map(|session| format!("{} {word}", session.session_id));
        self.audit(now, POLICY, AuditKind::DaemonStarted { recovered: told });
        let Some(session) = &mut self.snapshot.session else {
            self.save();
            return Vec::new();
        };
        if fate != SessionFate::Gone && !session.stage.has_program() {
            // It was started in the very moment of the crash: its time counts from the beginning.
            session.charged_to = session.started;
        }
        if fate == SessionFate::GoneUnseen {
            session.stage.come_up(String::new());
        }
        let known = session.stage.has_program();
        match (fate, same_boot) {
            (SessionFate::Alive { handle }, true) => {
                session.stage.come_up(handle);
                self.go_on(now)
            }
            // It can't be: a boot ends every program. Whatever runs there is ended.
            (SessionFate::Alive { handle }, false) => {
                session.stage.come_up(handle);
                session.stage.expire(EndReason::Lost);
                session.boot = self.place.boot;
                session.charged_to = now.mono;
                // Its ends were on the clock of the other boot.
                session.ends =
                    Ends { run: Some(Deadline::after(now.mono, Duration::ZERO, counting)), window: None };
                self.charge_unseen(CHECKPOINT, now);
                self.go_on(now)
            }
            (SessionFate::Gone | SessionFate::GoneUnseen, true) if known => self.end_in_this_boot(now),
            (SessionFate::Gone | SessionFate::GoneUnseen, false) if known => self.end_after_reboot(now),
            (SessionFate::Gone | SessionFate::GoneUnseen, _) => {
                let restarted = if same_boot { "daemon" } else { "machine" };
                self.end(EndReason::LaunchFailed { detail: format!("the {restarted} was restarted") }, now)
            }
        }
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

    /// How long the clock of the last boot went on after the last checkpoint is lost with it.
    fn end_after_reboot(&mut self, now: Now) -> Vec<CoreEvent> {
        let lost = self.snapshot.session.as_ref().map(|session| match session.stage {
            // It would have been ended by then.
            Stage::Running { .. } => {
                session.ends.remaining(session.charged_to).map_or(CHECKPOINT, |left| left.min(CHECKPOINT))
            }
            Stage::Launching | Stage::Withdrawn { .. } | Stage::Expiring { .. } => CHECKPOINT,
        });
        self.charge_unseen(lost.unwrap_or_default(), now);
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
            session.stage.expire(EndReason::Stopped { by });
            let session_id = session.session_id.clone();
            events.push(CoreEvent::ExpireDue { session_id: session_id.clone() });
            self.audit(now, POLICY, AuditKind::StopRequested { session_id, by, mode });
        }
        self.audit(now, POLICY, AuditKind::DaemonStopped);
        self.save();
        events
    }
}
