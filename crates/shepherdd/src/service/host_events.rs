//! What the host reports.

use std::time::Duration;

use shepherd_api::AuditKind;
use shepherd_core::ExitInfo;
use shepherd_host_api::{HostEvent, StopOrder};
use shepherd_util::{Now, SessionId};

use super::Service;

/// On whose behalf the host speaks, in the audit log.
const HOST: &str = "host";

impl Service {
    pub(crate) fn host_event(&mut self, event: HostEvent, now: Now) {
        match event {
            HostEvent::Spawned { session_id, handle, output, shortcomings } => {
                tracing::info!(%session_id, output = output.map(|path| path.display().to_string()), "started");
                for text in shortcomings {
                    tracing::warn!(%session_id, "{text}");
                    self.note(HOST, AuditKind::Note { text: format!("{session_id}: {text}") }, now);
                }
                self.started(&session_id, handle.as_str().to_owned(), now);
            }
            // It was in doubt, and counted as if it ran.
            HostEvent::Reattached { session_id, .. } if self.counts_as_running(&session_id) => {
                tracing::info!(%session_id, "its program was found and is watched again");
            }
            HostEvent::Reattached { session_id, handle } => {
                self.started(&session_id, handle.as_str().to_owned(), now);
            }
            HostEvent::SpawnFailed { session_id, failure } => {
                tracing::warn!(%session_id, %failure, "could not be started");
                let events = self.engine.launch_failed(&session_id, failure.to_string(), now);
                self.carry_out(events, now);
            }
            HostEvent::Exited { session_id, status } => {
                self.exited(&ExitInfo { session_id, code: status.code, signal: status.signal }, now);
            }
            HostEvent::Gone { session_id } => {
                self.exited(&ExitInfo { session_id, code: None, signal: None }, now);
            }
            HostEvent::InDoubt { session_id, detail } => {
                tracing::error!(%session_id, "{detail}");
                let text = format!("{session_id}: {detail}; until it is found, nothing else is started");
                self.note(HOST, AuditKind::Note { text }, now);
            }
            HostEvent::WindowReady { session_id } => tracing::debug!(%session_id, "shows its window"),
            HostEvent::Trouble { session_id, detail } => {
                tracing::warn!(session_id = session_id.map(|id| id.to_string()), "{detail}");
                self.note(HOST, AuditKind::Note { text: detail }, now);
            }
        }
    }

    fn counts_as_running(&self, session_id: &SessionId) -> bool {
        let session = self.engine.snapshot().session.as_ref();
        session.is_some_and(|session| {
            session.session_id == *session_id && session.stage.host_session_handle().is_some()
        })
    }

    fn started(&mut self, session_id: &SessionId, handle: String, now: Now) {
        match self.engine.start_session(session_id, handle, now) {
            Ok(events) => self.carry_out(events, now),
            Err(not_awaited) => {
                tracing::warn!(%session_id, "{not_awaited}");
                self.host.stop(StopOrder { session_id: session_id.clone(), grace: Duration::ZERO });
            }
        }
    }

    fn exited(&mut self, exit: &ExitInfo, now: Now) {
        tracing::info!(session_id = %exit.session_id, code = exit.code, signal = exit.signal, "ended");
        let events = self.engine.notify_session_exited(exit, now);
        self.carry_out(events, now);
    }
}
