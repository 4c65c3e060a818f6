//! One case being played: a host, its events, and what was started.

use std::time::Duration;

use shepherd_util::{ProfileId, SessionId};

use super::{ConformanceHarness, TestProgram};
use crate::{
    ExitStatus, HostAdapter, HostEvent, HostEvents, HostSessionHandle, HostSpawnRequest, HostStopRequest,
};

/// Long enough for the slowest machine; nothing waits that long unless it has failed.
const EVENT_TIMEOUT: Duration = Duration::from_secs(30);

/// Between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How long nothing may come for it to be taken for silence.
const QUIET_PERIOD: Duration = Duration::from_millis(50);

pub(super) struct CaseContext<'a, S: ConformanceHarness> {
    pub(super) harness: &'a mut S,
    pub(super) host: Option<S::TestedHost>,
    events: HostEvents,
    started: Vec<SessionId>,
}

/// What a step of a case comes to.
pub(super) type CaseResult<T = ()> = Result<T, String>;

impl<'a, S: ConformanceHarness> CaseContext<'a, S> {
    pub(super) fn new(stage: &'a mut S) -> Self {
        let mut host = stage.host();
        let events = host.subscribe();
        Self { harness: stage, host: Some(host), events, started: Vec::new() }
    }

    /// Another host comes after this one.
    pub(super) fn restart(&mut self) {
        self.host = None;
        self.restart_after(Duration::ZERO);
    }

    /// The same, but nobody is there for so long.
    pub(super) fn restart_after(&mut self, absence: Duration) {
        self.host = None;
        self.harness.advance_time(absence);
        let mut host = self.harness.host();
        self.events = host.subscribe();
        self.host = Some(host);
    }

    /// A second subscriber.
    pub(super) fn subscribe_again(&mut self) -> CaseResult<HostEvents> {
        let events = self.host()?.subscribe();
        Ok(std::mem::replace(&mut self.events, events))
    }

    pub(super) fn host(&mut self) -> CaseResult<&mut S::TestedHost> {
        self.host.as_mut().ok_or_else(|| "there is no host".to_owned())
    }

    pub(super) fn spawn(&mut self, part: TestProgram) -> CaseResult<SessionId> {
        let (entry, session_id) = (self.harness.entry_for(part), self.harness.new_session_id());
        self.started.push(session_id.clone());
        let order = HostSpawnRequest { session_id: session_id.clone(), entry, profile: ProfileId::default() };
        self.host()?.spawn(order);
        Ok(session_id)
    }

    /// The same, and waits until it runs.
    pub(super) fn start(&mut self, part: TestProgram) -> CaseResult<(SessionId, HostSessionHandle)> {
        let session_id = self.spawn(part)?;
        let handle = self.expect_spawned(&session_id)?;
        Ok((session_id, handle))
    }

    pub(super) fn stop(&mut self, session_id: &SessionId, grace: Duration) -> CaseResult {
        self.host()?.stop(HostStopRequest { session_id: session_id.clone(), grace });
        Ok(())
    }

    /// The next event; an error if none comes.
    pub(super) fn next_event(&mut self) -> CaseResult<HostEvent> {
        let mut waited = Duration::ZERO;
        while waited < EVENT_TIMEOUT {
            if let Ok(event) = self.events.try_recv() {
                return Ok(event);
            }
            self.harness.advance_time(POLL_INTERVAL);
            waited += POLL_INTERVAL;
        }
        Err("no event came".to_owned())
    }

    pub(super) fn expect_event(&mut self, wanted: &HostEvent) -> CaseResult {
        let event = self.next_event()?;
        if event == *wanted { Ok(()) } else { Err(format!("{event:?} came, not {wanted:?}")) }
    }

    pub(super) fn expect_spawned(&mut self, wanted: &SessionId) -> CaseResult<HostSessionHandle> {
        match self.next_event()? {
            HostEvent::Spawned { session_id, handle, .. } if session_id == *wanted => Ok(handle),
            event => Err(format!("{event:?} came, not the start of {wanted}")),
        }
    }

    pub(super) fn expect_reattached(&mut self, wanted: &SessionId) -> CaseResult {
        match self.next_event()? {
            HostEvent::Reattached { session_id, .. } if session_id == *wanted => Ok(()),
            event => Err(format!("{event:?} came, and {wanted} was to be taken back")),
        }
    }

    pub(super) fn expect_exited(&mut self, wanted: &SessionId) -> CaseResult<ExitStatus> {
        match self.next_event()? {
            HostEvent::Exited { session_id, status } if session_id == *wanted => Ok(status),
            event => Err(format!("{event:?} came, not the end of {wanted}")),
        }
    }

    pub(super) fn expect_no_event(&mut self) -> CaseResult {
        self.expect_no_event_for(QUIET_PERIOD)
    }

    pub(super) fn expect_no_event_for(&mut self, length: Duration) -> CaseResult {
        self.harness.advance_time(length);
        self.events.try_recv().map_or(Ok(()), |event| Err(format!("{event:?} came, and nothing was to")))
    }

    /// Leaves nothing running, whatever the case came to.
    pub(super) fn stop_all(&mut self) {
        if self.host.is_none() {
            self.restart();
        }
        for session_id in std::mem::take(&mut self.started) {
            let _ = self.stop(&session_id, Duration::ZERO);
        }
        // Those that it does not know any more are gone at once. One that never falls silent is not waited for.
        let _ = (0..1_000).find(|_| self.expect_no_event().is_ok());
        self.host = None;
    }
}
