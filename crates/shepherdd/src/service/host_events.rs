//! Passes the events of the host on to the engine.

use shepherd_api::AuditKind;
use shepherd_core::ExitInfo;
use shepherd_host_api::HostEvent;
use shepherd_util::{ClockReading, SessionId};

use super::DaemonService;

/// The actor in audit lines about what the host reports.
const HOST_ACTOR: &str = "host";

impl DaemonService {
    pub(crate) fn handle_host_event(&mut self, event: HostEvent, now: ClockReading) {
        match event {
            HostEvent::Spawned { session_id, handle, output, shortcomings } => {
                self.launch_fault = None;
                tracing::info!(%session_id, output = output.map(|path| path.display().to_string()), "started");
                for text in shortcomings {
                    tracing::warn!(%session_id, "{text}");
                    let text = format!("{session_id}: {text}");
                    self.append_audit(HOST_ACTOR, AuditKind::Note { text }, now);
                }
                self.confirm_session_start(&session_id, handle.as_str().to_owned(), now);
            }
            // The daemon was unsure whether the program runs, and counted its time as if it did.
            HostEvent::Reattached { session_id, .. } if self.is_running_session(&session_id) => {
                tracing::info!(%session_id, "the program was reattached");
            }
            HostEvent::Reattached { session_id, handle } => {
                self.confirm_session_start(&session_id, handle.as_str().to_owned(), now);
            }
            HostEvent::SpawnFailed { session_id, failure } => {
                tracing::warn!(%session_id, "could not start the program: {failure}");
                let effects = self.engine.launch_failed(&session_id, failure.to_string(), now);
                self.carry_out(effects, now);
            }
            HostEvent::Exited { session_id, status } => {
                let exit = ExitInfo { session_id, code: status.code, signal: status.signal };
                self.handle_session_exit(&exit, now);
            }
            HostEvent::Gone { session_id } => {
                self.handle_session_exit(&ExitInfo { session_id, code: None, signal: None }, now);
            }
            HostEvent::ReattachPending { session_id, detail } => {
                tracing::error!(%session_id, "{detail}");
                let text = format!("{session_id}: {detail}; no program is started until it is found");
                self.append_audit(HOST_ACTOR, AuditKind::Note { text }, now);
            }
            HostEvent::WindowReady { session_id } => {
                tracing::debug!(%session_id, "the first window is shown");
            }
            HostEvent::Problem { session_id, detail } => {
                tracing::warn!(session_id = session_id.map(|id| id.to_string()), "{detail}");
                self.append_audit(HOST_ACTOR, AuditKind::Note { text: detail }, now);
            }
        }
    }

    fn is_running_session(&self, session_id: &SessionId) -> bool {
        let session = self.engine.sessions().get(session_id);
        session.is_some_and(|session| session.stage.host_session_handle().is_some())
    }

    fn confirm_session_start(&mut self, session_id: &SessionId, handle: String, now: ClockReading) {
        let outcome = self.engine.start_session(session_id, handle, now);
        if let Err(not_awaited) = outcome.answer {
            tracing::warn!(%session_id, "{not_awaited}");
        }
        self.carry_out(outcome.effects, now);
        self.update_counting(now);
    }

    pub(super) fn handle_session_exit(&mut self, exit: &ExitInfo, now: ClockReading) {
        tracing::info!(session_id = %exit.session_id, code = exit.code, signal = exit.signal, "ended");
        let effects = self.engine.notify_session_exited(exit, now);
        self.carry_out(effects, now);
    }
}
