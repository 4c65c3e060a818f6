//! Coming back: after a crash, a restart or a reboot (S9).

use shepherd_api::{AuditKind, EndReason, StopRequester};
use shepherd_util::Now;

use super::charge::CHECKPOINT;
use super::{CoreEngine, CoreEvent, POLICY};
use crate::policy::OnShutdown;
use crate::session::Stage;

/// What the host found of the session that the store remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionFate {
    /// Its program still runs and was taken back.
    Alive {
        /// What the host needs to find it again, if that was not written down before the crash.
        handle: Option<String>,
    },
    /// Its program is gone.
    Gone,
}

impl CoreEngine {
    /// Goes on from what the store remembers. Within one boot the clock went on without us, so nothing is lost and
    /// nothing won; after a reboot the time since the last checkpoint is charged as if it had all been used.
    pub fn recover(&mut self, fate: SessionFate, now: Now) -> Vec<CoreEvent> {
        let same_boot = self.snapshot.session.as_ref().is_some_and(|session| session.boot == self.place.boot);
        self.observe(now);
        let word = if fate == SessionFate::Gone { "gone" } else { "alive" };
        let told = self.snapshot.session.as_ref().map(|session| format!("{} {word}", session.session_id));
        self.audit(now, POLICY, AuditKind::DaemonStarted { recovered: told });
        let Some(session) = &mut self.snapshot.session else {
            self.save();
            return Vec::new();
        };
        match (fate, same_boot, &session.stage) {
            // It may have been started in the very moment of the crash: then it runs, and its time counts from the
            // beginning.
            (SessionFate::Alive { handle }, true, Stage::Launching) => {
                session.stage = Stage::Running;
                session.host_session_handle = Some(handle.unwrap_or_default());
                session.charged_to = session.started;
                self.tick(now)
            }
            (SessionFate::Alive { .. }, true, Stage::Running) => self.tick(now),
            (SessionFate::Alive { .. }, true, Stage::Expiring(_)) => {
                let session_id = session.session_id.clone();
                self.charge(now);
                self.save();
                vec![CoreEvent::ExpireDue { session_id }]
            }
            (SessionFate::Gone, true, Stage::Launching) => {
                self.end(EndReason::LaunchFailed { detail: "the daemon was restarted".to_owned() }, now)
            }
            // Nobody knows when it ended. It is charged up to now: whoever killed the daemon wins nothing by it.
            (SessionFate::Gone, true, _) => self.end(EndReason::Lost, now),
            // It can't be: a boot ends every program. Whatever runs there is ended.
            (SessionFate::Alive { .. }, false, _) => {
                session.stage = Stage::Expiring(EndReason::Lost);
                session.boot = self.place.boot;
                session.charged_to = now.mono;
                let session_id = session.session_id.clone();
                self.charge_with(CHECKPOINT, now);
                self.save();
                vec![CoreEvent::ExpireDue { session_id }]
            }
            (SessionFate::Gone, false, Stage::Launching) => {
                self.end(EndReason::LaunchFailed { detail: "the machine was restarted".to_owned() }, now)
            }
            (SessionFate::Gone, false, _) => self.end_after_reboot(now),
        }
    }

    fn end_after_reboot(&mut self, now: Now) -> Vec<CoreEvent> {
        let lost = self.snapshot.session.as_ref().map(|session| match session.stage {
            // It would have been ended by then.
            Stage::Running => {
                session.ends.remaining(session.charged_to).map_or(CHECKPOINT, |left| left.min(CHECKPOINT))
            }
            Stage::Launching | Stage::Expiring(_) => CHECKPOINT,
        });
        self.charge_with(lost.unwrap_or_default(), now);
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
        {
            if !matches!(session.stage, Stage::Expiring(_)) {
                session.stage = Stage::Expiring(EndReason::Stopped { by: StopRequester::Policy });
            }
            events.push(CoreEvent::ExpireDue { session_id: session.session_id.clone() });
        }
        self.audit(now, POLICY, AuditKind::DaemonStopped);
        self.save();
        events
    }
}
