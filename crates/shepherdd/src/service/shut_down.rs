//! Going down in order (S9.3): what was used is on record, and by policy the session is ended or left to be taken
//! back.

use std::time::Duration;

use shepherd_core::policy::OnShutdown;
use shepherd_util::Clock;

use super::{Input, Inputs, Service};

/// How much longer than its grace a program that is to be ended gets: the kill itself takes a moment.
const KILL: Duration = Duration::from_secs(5);

impl Service {
    pub(super) async fn shut_down(mut self, mut inputs: Inputs) {
        crate::notify::stopping();
        let now = self.clock.now();
        let grace =
            self.engine.snapshot().session.as_ref().map_or(Duration::ZERO, |session| session.stop_grace);
        let ends_sessions = self.engine.policy().rules().on_shutdown == OnShutdown::EndSessions;
        let events = self.engine.shut_down(now);
        // Also one whose end was called before.
        let must_end = ends_sessions && self.engine.snapshot().session.is_some();
        self.carry_out(events, now);
        self.tell_of_refusals(now);
        if must_end {
            let ended = self.until_the_session_ends(&mut inputs);
            if tokio::time::timeout(grace + KILL, ended).await.is_err() {
                tracing::warn!("a program outlives its end; the next daemon takes it back");
            }
        }
        inputs.clients.shutdown().await;
        self.store.finish();
        tracing::info!("ended in order");
    }

    /// Nobody is heard any more but the host and the store.
    async fn until_the_session_ends(&mut self, inputs: &mut Inputs) {
        while self.engine.snapshot().session.is_some() {
            let input = tokio::select! {
                Some(event) = inputs.host.recv() => Input::Host(event),
                Some(report) = inputs.store.recv() => Input::Store(report),
                Some(report) = inputs.pulse.recv() => Input::Pulse(report),
                else => return,
            };
            let now = self.clock.now();
            self.handle(input, now);
        }
    }
}
