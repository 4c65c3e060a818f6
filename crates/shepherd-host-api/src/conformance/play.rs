//! One case being played: a host, its events, and what was started.

use std::time::Duration;

use shepherd_util::{ProfileId, SessionId};

use super::{Part, Stage};
use crate::{ExitStatus, Host, HostEvent, HostEvents, HostSessionHandle, SpawnOrder, StopOrder};

/// Long enough for the slowest machine; nothing waits that long unless it has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks.
const TICK: Duration = Duration::from_millis(5);

/// How long nothing may come for it to be taken for silence.
const SILENCE: Duration = Duration::from_millis(50);

pub(super) struct Play<'a, S: Stage> {
    pub(super) stage: &'a mut S,
    pub(super) host: Option<S::Host>,
    events: HostEvents,
    started: Vec<SessionId>,
}

/// What a step of a case comes to.
pub(super) type Outcome<T = ()> = Result<T, String>;

impl<'a, S: Stage> Play<'a, S> {
    pub(super) fn new(stage: &'a mut S) -> Self {
        let mut host = stage.host();
        let events = host.subscribe();
        Self { stage, host: Some(host), events, started: Vec::new() }
    }

    /// Another host comes after this one.
    pub(super) fn restart(&mut self) {
        self.host = None;
        self.restart_after(Duration::ZERO);
    }

    /// The same, but nobody is there for so long.
    pub(super) fn restart_after(&mut self, absence: Duration) {
        self.host = None;
        self.stage.pass(absence);
        let mut host = self.stage.host();
        self.events = host.subscribe();
        self.host = Some(host);
    }

    /// A second subscriber.
    pub(super) fn subscribe_again(&mut self) -> Outcome<HostEvents> {
        let events = self.host()?.subscribe();
        Ok(std::mem::replace(&mut self.events, events))
    }

    pub(super) fn host(&mut self) -> Outcome<&mut S::Host> {
        self.host.as_mut().ok_or_else(|| "there is no host".to_owned())
    }

    pub(super) fn spawn(&mut self, part: Part) -> Outcome<SessionId> {
        let (entry, session_id) = (self.stage.entry(part), self.stage.session_id());
        self.started.push(session_id.clone());
        let order = SpawnOrder { session_id: session_id.clone(), entry, profile: ProfileId::default() };
        self.host()?.spawn(order);
        Ok(session_id)
    }

    /// The same, and waits until it runs.
    pub(super) fn start(&mut self, part: Part) -> Outcome<(SessionId, HostSessionHandle)> {
        let session_id = self.spawn(part)?;
        let handle = self.expect_spawned(&session_id)?;
        Ok((session_id, handle))
    }

    pub(super) fn stop(&mut self, session_id: &SessionId, grace: Duration) -> Outcome {
        self.host()?.stop(StopOrder { session_id: session_id.clone(), grace });
        Ok(())
    }

    /// The next event; an error if none comes.
    pub(super) fn next(&mut self) -> Outcome<HostEvent> {
        let mut waited = Duration::ZERO;
        while waited < PATIENCE {
            if let Ok(event) = self.events.try_recv() {
                return Ok(event);
            }
            self.stage.pass(TICK);
            waited += TICK;
        }
        Err("no event came".to_owned())
    }

    pub(super) fn expect(&mut self, wanted: &HostEvent) -> Outcome {
        let event = self.next()?;
        if event == *wanted { Ok(()) } else { Err(format!("{event:?} came, not {wanted:?}")) }
    }

    pub(super) fn expect_spawned(&mut self, wanted: &SessionId) -> Outcome<HostSessionHandle> {
        match self.next()? {
            HostEvent::Spawned { session_id, handle, .. } if session_id == *wanted => Ok(handle),
            event => Err(format!("{event:?} came, not the start of {wanted}")),
        }
    }

    pub(super) fn expect_reattached(&mut self, wanted: &SessionId) -> Outcome {
        match self.next()? {
            HostEvent::Reattached { session_id, .. } if session_id == *wanted => Ok(()),
            event => Err(format!("{event:?} came, and {wanted} was to be taken back")),
        }
    }

    pub(super) fn expect_exited(&mut self, wanted: &SessionId) -> Outcome<ExitStatus> {
        match self.next()? {
            HostEvent::Exited { session_id, status } if session_id == *wanted => Ok(status),
            event => Err(format!("{event:?} came, not the end of {wanted}")),
        }
    }

    pub(super) fn silence(&mut self) -> Outcome {
        self.silence_of(SILENCE)
    }

    pub(super) fn silence_of(&mut self, length: Duration) -> Outcome {
        self.stage.pass(length);
        self.events.try_recv().map_or(Ok(()), |event| Err(format!("{event:?} came, and nothing was to")))
    }

    /// Leaves nothing running, whatever the case came to.
    pub(super) fn clear(&mut self) {
        if self.host.is_none() {
            self.restart();
        }
        for session_id in std::mem::take(&mut self.started) {
            let _ = self.stop(&session_id, Duration::ZERO);
        }
        // Those that it does not know any more are gone at once. One that never falls silent is not waited for.
        let _ = (0..1_000).find(|_| self.silence().is_ok());
        self.host = None;
    }
}
