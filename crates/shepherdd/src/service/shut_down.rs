//! An orderly shutdown (S9.3): usage is recorded, and the policy decides whether sessions are ended first or left to be
//! reattached.

use std::time::Duration;

use shepherd_core::ShutdownDecision;
use shepherd_util::Clock;

use super::{DaemonService, InputSources, LoopInput};

/// The time that a program gets beyond its grace period, because the kill itself takes a moment.
const KILL_ALLOWANCE: Duration = Duration::from_secs(5);

impl DaemonService {
    pub(super) async fn shut_down(mut self, mut inputs: InputSources) {
        crate::notify::stopping();
        let now = self.clock.now();
        let outcome = self.engine.shut_down(now);
        self.carry_out(outcome.effects, now);
        self.record_omitted_refusals(now);
        match outcome.answer {
            ShutdownDecision::AwaitSessionEnd { grace } => {
                let ended = self.wait_for_session_end(&mut inputs);
                if tokio::time::timeout(grace + KILL_ALLOWANCE, ended).await.is_err() {
                    tracing::warn!("a program did not end in time; the next daemon reattaches it");
                }
            }
            ShutdownDecision::ExitNow => {}
        }
        inputs.clients.shutdown().await;
        self.store.finish();
        tracing::info!("the daemon has stopped");
    }

    /// Handles only the host, the logins, the store and the heartbeat until all sessions are over.
    async fn wait_for_session_end(&mut self, inputs: &mut InputSources) {
        while !self.engine.sessions().is_empty() {
            let input = tokio::select! {
                Some(event) = inputs.host.recv() => LoopInput::Host(event),
                Some(event) = inputs.logins.recv() => LoopInput::Login(event),
                Some(report) = inputs.store.recv() => LoopInput::Store(report),
                Some(report) = inputs.heartbeat.recv() => LoopInput::Heartbeat(report),
                else => return,
            };
            let now = self.clock.now();
            self.handle(input, now);
        }
    }
}
