//! Going down in order (S9.3): what was used is on record, and by policy the session is ended or left to be taken
//! back.

use std::time::Duration;

use shepherd_core::policy::OnShutdown;
use shepherd_util::Clock;

use super::{DaemonService, InputSources, LoopInput};

/// How much longer than its grace a program that is to be ended gets: the kill itself takes a moment.
const KILL_ALLOWANCE: Duration = Duration::from_secs(5);

impl DaemonService {
    pub(super) async fn shut_down(mut self, mut inputs: InputSources) {
        crate::notify::stopping();
        let now = self.clock.now();
        let grace =
            self.engine.snapshot().session.as_ref().map_or(Duration::ZERO, |session| session.stop_grace);
        let ends_sessions = self.engine.policy().rules().on_shutdown == OnShutdown::EndSessions;
        let events = self.engine.shut_down(now);
        // Also one whose end was called before.
        let must_end = ends_sessions && self.engine.snapshot().session.is_some();
        self.apply_events(events, now);
        self.record_omitted_refusals(now);
        if must_end {
            let ended = self.wait_for_session_end(&mut inputs);
            if tokio::time::timeout(grace + KILL_ALLOWANCE, ended).await.is_err() {
                tracing::warn!("a program outlives its end; the next daemon takes it back");
            }
        }
        inputs.clients.shutdown().await;
        self.store.finish();
        tracing::info!("ended in order");
    }

    /// Nobody is heard any more but the host and the store.
    async fn wait_for_session_end(&mut self, inputs: &mut InputSources) {
        while self.engine.snapshot().session.is_some() {
            let input = tokio::select! {
                Some(event) = inputs.host.recv() => LoopInput::Host(event),
                Some(report) = inputs.store.recv() => LoopInput::Store(report),
                Some(report) = inputs.heartbeat.recv() => LoopInput::Heartbeat(report),
                else => return,
            };
            let now = self.clock.now();
            self.handle(input, now);
        }
    }
}
