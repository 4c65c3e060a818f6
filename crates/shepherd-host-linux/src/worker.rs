//! The one thread that watches and ends programs. It sleeps unless something happens.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use shepherd_host_api::{ExitStatus, HostEvent, SpawnFailure, StopOrder};
use shepherd_util::SessionId;
use tokio::sync::mpsc::UnboundedSender;
use ward_process::{Exit, Supervisor};

use crate::doubts::Doubts;
use crate::janitor::Remains;
use crate::line::{Inbox, Line};
use crate::sway::WindowsLine;
use crate::take_back::TakeBack;

mod remembered;
mod session;

use remembered::Remembered;
pub(crate) use session::Running;
use session::{Session, Stop};

/// What the thread is told.
pub(crate) enum Message {
    /// A session is being started or taken back.
    Expect(SessionId),
    /// What came of it.
    Started(SessionId, Result<Box<Started>, SpawnFailure>),
    /// What came of it.
    TakenBack(SessionId, Result<Box<Started>, Lost>),
    /// End it, by an order of this moment.
    Stop(StopOrder, Instant),
    /// The request of this index could not be made.
    NotAsked(SessionId, usize),
    /// It shows its first window.
    #[cfg_attr(not(feature = "sway"), expect(dead_code, reason = "only a compositor module says so"))]
    WindowReady(SessionId),
    /// Something is not as it should be, of no session in particular.
    #[cfg_attr(not(feature = "sway"), expect(dead_code, reason = "only a compositor module says so"))]
    Trouble(String),
    /// Events go here from now on.
    Subscribe(UnboundedSender<HostEvent>),
    /// The host is no more; what runs goes on.
    Leave,
}

/// A program that runs, and the event that says so.
pub(crate) struct Started {
    pub(crate) running: Running,
    pub(crate) event: HostEvent,
}

/// A program that could not be taken back.
pub(crate) enum Lost {
    /// It is gone.
    Gone {
        /// The folder of its control socket.
        sockets: Option<PathBuf>,
    },
    /// That is not certain. What was written down of it stays.
    InDoubt {
        /// Why.
        detail: String,
        /// What to do again.
        again: Box<TakeBack>,
    },
}

/// Whom the thread hears and whom it tells.
pub(crate) struct Ends {
    pub(crate) inbox: Inbox<Message>,
    /// To itself, for those who work for it elsewhere.
    pub(crate) line: Line<Message>,
    pub(crate) windows: WindowsLine,
    pub(crate) events: UnboundedSender<HostEvent>,
    pub(crate) janitor: Sender<Remains>,
}

/// Between two attempts to take back what is in doubt: its cause is a person or another program, and goes unannounced.
const TRY_AGAIN: Duration = Duration::from_secs(2);

/// Between two looks at those who have been killed: about as long as one takes to die.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What is behind every wake-up that is no tree's.
const BELL: u64 = 0;

pub(crate) struct Worker {
    supervisor: Arc<Supervisor>,
    doubts: Doubts,
    ends: Ends,
    wakers: OwnedFd,
    sessions: BTreeMap<SessionId, Session>,
    /// Those whose last event is out.
    over: Remembered,
}

impl Worker {
    /// Starts the thread.
    pub(crate) fn start(
        supervisor: Arc<Supervisor>,
        doubts: Doubts,
        ends: Ends,
    ) -> io::Result<JoinHandle<()>> {
        let wakers = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&wakers, ends.inbox.bell(), epoll::EventData::new_u64(BELL), epoll::EventFlags::IN)?;
        let (sessions, over) = (BTreeMap::new(), Remembered::default());
        let worker = Self { supervisor, doubts, ends, wakers, sessions, over };
        Builder::new().name("host-worker".into()).spawn(move || worker.run())
    }

    fn run(mut self) {
        let mut woken = Vec::with_capacity(16);
        loop {
            self.sleep(&mut woken);
            while let Some(message) = self.ends.inbox.next() {
                if let Message::Leave = message {
                    return;
                }
                self.hear(message);
            }
            self.see_to_sessions();
        }
    }

    /// Until there is news, or until the next step of a stop that is under way.
    fn sleep(&self, woken: &mut Vec<epoll::Event>) {
        let now = Instant::now();
        let due = self.sessions.values().filter_map(Session::due).min();
        let timeout = due.map(|due| due.saturating_duration_since(now));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        woken.clear();
        // Interrupted is woken, too: whoever is woken looks at everything.
        let _ = epoll::wait(&self.wakers, rustix::buffer::spare_capacity(woken), timeout.as_ref());
        if woken.iter().any(|event| event.data.u64() == BELL) {
            self.ends.inbox.silence();
        }
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Expect(session_id) => self.expect(session_id),
            Message::Started(session_id, Ok(started)) | Message::TakenBack(session_id, Ok(started)) => {
                if self.is_not_running(&session_id) {
                    self.run_on(&session_id, *started);
                }
            }
            Message::Started(session_id, Err(failure)) => {
                if self.is_not_running(&session_id) {
                    self.sessions.remove(&session_id);
                    self.ends.windows.forget(&session_id);
                    self.over.insert(session_id.clone());
                    self.say(HostEvent::SpawnFailed { session_id, failure });
                }
            }
            Message::TakenBack(session_id, Err(lost)) => {
                if self.is_not_running(&session_id) {
                    self.lose(session_id, lost);
                }
            }
            Message::Stop(order, since) => self.stop(&order, since),
            Message::NotAsked(session_id, request) => {
                if let Some(Session::Running(running)) = self.sessions.get_mut(&session_id) {
                    running.skip(request);
                }
            }
            Message::WindowReady(session_id) => {
                if let Some(Session::Running(_)) = self.sessions.get(&session_id) {
                    self.say(HostEvent::WindowReady { session_id });
                }
            }
            Message::Trouble(detail) => self.say(HostEvent::Trouble { session_id: None, detail }),
            Message::Subscribe(events) => self.ends.events = events,
            // Heard by `run`.
            Message::Leave => {}
        }
    }

    fn expect(&mut self, session_id: SessionId) {
        self.sessions.entry(session_id).or_insert(Session::Starting { stop: None, again: None });
    }

    /// Whoever starts or takes back what runs already changes nothing about it.
    fn is_not_running(&self, session_id: &SessionId) -> bool {
        let running = matches!(self.sessions.get(session_id), Some(Session::Running(_)));
        if running {
            self.trouble(session_id, "it was to be started or taken back, but it runs already".to_owned());
        }
        !running
    }

    fn lose(&mut self, session_id: SessionId, lost: Lost) {
        let earlier = self.sessions.remove(&session_id);
        match lost {
            Lost::InDoubt { detail, again } => {
                if self.doubts.add(&session_id, &detail) {
                    self.say(HostEvent::InDoubt { session_id: session_id.clone(), detail });
                }
                let stop = earlier.and_then(|session| session.ordered());
                let again = Some((Instant::now() + TRY_AGAIN, again));
                self.sessions.insert(session_id, Session::Starting { stop, again });
            }
            Lost::Gone { sockets } => {
                self.doubts.settle(&session_id);
                let remains = Remains { session_id: session_id.clone(), tree: None, sockets };
                let _ = self.ends.janitor.send(remains);
                self.over.insert(session_id.clone());
                self.say(HostEvent::Gone { session_id });
            }
        }
    }

    fn run_on(&mut self, session_id: &SessionId, started: Started) {
        let Started { mut running, event } = started;
        let stop = self.sessions.remove(session_id).and_then(|session| session.ordered());
        self.doubts.settle(session_id);
        // Before it is said: whoever hears it may want it shown.
        self.ends.windows.runs(session_id, &running.tree);
        self.say(event);
        let data = epoll::EventData::new_u64(BELL + 1);
        let watched = epoll::add(&self.wakers, running.tree.readiness(), data, epoll::EventFlags::IN);
        if let Err(error) = watched {
            // Nothing would tell us of its end.
            let detail = format!("the program can't be watched ({error}), so it is ended");
            self.trouble(session_id, detail);
            running.stop(Stop::at_once(Instant::now()));
        }
        if let Some(stop) = stop {
            running.stop(stop);
        }
        self.sessions.insert(session_id.clone(), Session::Running(Box::new(running)));
        self.see_to(session_id);
    }

    fn stop(&mut self, order: &StopOrder, since: Instant) {
        let ordered = Stop { since, grace: order.grace };
        match self.sessions.get_mut(&order.session_id) {
            Some(Session::Starting { stop, .. }) => {
                *stop = Some(stop.map_or(ordered, |earlier| earlier.stricter(ordered)));
            }
            Some(Session::Running(running)) => {
                running.stop(ordered);
                self.see_to(&order.session_id);
            }
            None if self.over.contains(&order.session_id) => {}
            None => {
                self.over.insert(order.session_id.clone());
                self.say(HostEvent::Gone { session_id: order.session_id.clone() });
            }
        }
    }

    fn see_to_sessions(&mut self) {
        let all: Vec<SessionId> = self.sessions.keys().cloned().collect();
        all.iter().for_each(|session_id| self.see_to(session_id));
    }

    /// Takes the steps that are due, and notices the end.
    fn see_to(&mut self, session_id: &SessionId) {
        let running = match self.sessions.get_mut(session_id) {
            Some(Session::Running(running)) => running,
            Some(starting) => {
                if let Some(again) = starting.take_due(Instant::now()) {
                    again.apart(&self.ends.line);
                }
                return;
            }
            None => return,
        };
        let survives = running.carry_on(session_id, &self.supervisor, &self.ends.line);
        match running.tree.poll_ended() {
            Ok(Some(ended)) if self.ends.windows.clear_away(session_id) => self.bury(session_id, ended.exit),
            Ok(Some(_)) => {
                // Its end would be news until what the compositor started for it is gone.
                let _ = epoll::delete(&self.wakers, running.tree.readiness());
                running.look_again(Instant::now() + LOOK_AGAIN);
            }
            Ok(None) if survives => {
                let left = running.tree.processes();
                let detail = format!("{} processes outlive their kill: {left:?}", left.len());
                self.trouble(session_id, detail);
            }
            Ok(None) => {}
            Err(error) => {
                // It would be news for ever. From now on it is only looked at after each strike.
                let _ = epoll::delete(&self.wakers, running.tree.readiness());
                running.stop(Stop::at_once(Instant::now()));
                if running.first_trouble() {
                    let detail = format!("the program can't be watched ({error}), so it is ended");
                    self.trouble(session_id, detail);
                }
            }
        }
    }

    fn bury(&mut self, session_id: &SessionId, exit: Exit) {
        let Some(Session::Running(running)) = self.sessions.remove(session_id) else { return };
        let _ = epoll::delete(&self.wakers, running.tree.readiness());
        running.end_asking();
        self.ends.windows.ended(session_id);
        self.over.insert(session_id.clone());
        let status = match exit {
            Exit::Code(code) => ExitStatus { code: Some(code), signal: None },
            Exit::Signal(signal) => ExitStatus { code: None, signal: Some(signal) },
            Exit::Unknown => ExitStatus::default(),
        };
        self.say(HostEvent::Exited { session_id: session_id.clone(), status });
        let _ = self.ends.janitor.send(Remains {
            session_id: session_id.clone(),
            tree: Some(Box::new(running.tree)),
            sockets: running.sockets,
        });
    }

    fn trouble(&self, session_id: &SessionId, detail: String) {
        self.say(HostEvent::Trouble { session_id: Some(session_id.clone()), detail });
    }

    fn say(&self, event: HostEvent) {
        // Nobody has to listen.
        let _ = self.ends.events.send(event);
    }
}
