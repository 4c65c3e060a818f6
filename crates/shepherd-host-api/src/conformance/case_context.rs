//! The context of a running case: the host, its events, and the sessions that the case started.

use std::time::Duration;

use shepherd_util::{ProfileId, SessionId};

use super::{ConformanceHarness, TestProgram};
use crate::{
    ExitStatus, HostAdapter, HostEvent, HostEvents, HostSessionHandle, HostSpawnRequest, HostStopRequest,
};

/// The longest wait for an event: long enough for the slowest machine, and reached only by a failing case.
const EVENT_TIMEOUT: Duration = Duration::from_secs(30);

/// The time between two checks for an event.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The time without an event after which a host counts as quiet.
const QUIET_PERIOD: Duration = Duration::from_millis(50);

pub(super) struct CaseContext<'a, S: ConformanceHarness> {
    pub(super) harness: &'a mut S,
    pub(super) host: Option<S::TestedHost>,
    events: HostEvents,
    started: Vec<SessionId>,
}

/// The result of a step of a case, with the violation as the error.
pub(super) type CaseResult<T = ()> = Result<T, String>;

impl<'a, S: ConformanceHarness> CaseContext<'a, S> {
    pub(super) fn new(harness: &'a mut S) -> Self {
        let mut host = harness.host();
        let events = host.subscribe();
        Self { harness, host: Some(host), events, started: Vec::new() }
    }

    /// Replaces the host by another, as a restart of the daemon does.
    pub(super) fn restart(&mut self) {
        self.host = None;
        self.restart_after(Duration::ZERO);
    }

    /// Replaces the host by another after a time without any host.
    pub(super) fn restart_after(&mut self, absence: Duration) {
        self.host = None;
        self.harness.advance_time(absence);
        let mut host = self.harness.host();
        self.events = host.subscribe();
        self.host = Some(host);
    }

    /// Subscribes a second time, and returns the first stream.
    pub(super) fn subscribe_again(&mut self) -> CaseResult<HostEvents> {
        let events = self.host()?.subscribe();
        Ok(std::mem::replace(&mut self.events, events))
    }

    pub(super) fn host(&mut self) -> CaseResult<&mut S::TestedHost> {
        self.host.as_mut().ok_or_else(|| "there is no host".to_owned())
    }

    pub(super) fn spawn(&mut self, program: TestProgram) -> CaseResult<SessionId> {
        let (entry, session_id) = (self.harness.entry_for(program), self.harness.new_session_id());
        self.started.push(session_id.clone());
        let request = HostSpawnRequest {
            session_id: session_id.clone(),
            entry,
            profile: ProfileId::default(),
            display: None,
        };
        self.host()?.spawn(request);
        Ok(session_id)
    }

    /// Starts a program and waits until it runs.
    pub(super) fn start(&mut self, program: TestProgram) -> CaseResult<(SessionId, HostSessionHandle)> {
        let session_id = self.spawn(program)?;
        let handle = self.expect_spawned(&session_id)?;
        Ok((session_id, handle))
    }

    pub(super) fn stop(&mut self, session_id: &SessionId, grace: Duration) -> CaseResult {
        self.host()?.stop(HostStopRequest { session_id: session_id.clone(), grace });
        Ok(())
    }

    /// Returns the next event, or an error if no event comes.
    pub(super) fn next_event(&mut self) -> CaseResult<HostEvent> {
        let mut waited = Duration::ZERO;
        while waited < EVENT_TIMEOUT {
            if let Ok(event) = self.events.try_recv() {
                return Ok(event);
            }
            self.harness.advance_time(POLL_INTERVAL);
            waited += POLL_INTERVAL;
        }
        Err("received no event".to_owned())
    }

    pub(super) fn expect_event(&mut self, wanted: &HostEvent) -> CaseResult {
        let event = self.next_event()?;
        if event == *wanted { Ok(()) } else { Err(format!("received {event:?} instead of {wanted:?}")) }
    }

    pub(super) fn expect_spawned(&mut self, wanted: &SessionId) -> CaseResult<HostSessionHandle> {
        match self.next_event()? {
            HostEvent::Spawned { session_id, handle, .. } if session_id == *wanted => Ok(handle),
            event => Err(format!("received {event:?} instead of the start of {wanted}")),
        }
    }

    pub(super) fn expect_reattached(&mut self, wanted: &SessionId) -> CaseResult {
        match self.next_event()? {
            HostEvent::Reattached { session_id, .. } if session_id == *wanted => Ok(()),
            event => Err(format!("received {event:?} instead of the reattachment of {wanted}")),
        }
    }

    pub(super) fn expect_exited(&mut self, wanted: &SessionId) -> CaseResult<ExitStatus> {
        match self.next_event()? {
            HostEvent::Exited { session_id, status } if session_id == *wanted => Ok(status),
            event => Err(format!("received {event:?} instead of the end of {wanted}")),
        }
    }

    pub(super) fn expect_no_event(&mut self) -> CaseResult {
        self.expect_no_event_for(QUIET_PERIOD)
    }

    pub(super) fn expect_no_event_for(&mut self, length: Duration) -> CaseResult {
        self.harness.advance_time(length);
        self.events.try_recv().map_or(Ok(()), |event| Err(format!("received an unexpected {event:?}")))
    }

    /// Stops all programs of the case, even if the case failed.
    pub(super) fn stop_all(&mut self) {
        if self.host.is_none() {
            self.restart();
        }
        for session_id in std::mem::take(&mut self.started) {
            let _ = self.stop(&session_id, Duration::ZERO);
        }
        // The host reports unknown sessions as gone at once. The limit is for a host that never becomes quiet.
        let _ = (0..1_000).find(|_| self.expect_no_event().is_ok());
        self.host = None;
    }
}
