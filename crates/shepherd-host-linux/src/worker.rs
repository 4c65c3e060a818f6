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
use shepherd_host_api::{ExitStatus, HostEvent, HostStopRequest, SpawnFailure};
use shepherd_util::SessionId;
use tokio::sync::mpsc::UnboundedSender;
use ward_process::{ProcessExit, Supervisor};

use crate::cleanup::SessionRemains;
use crate::mailbox::{MailboxReceiver, MailboxSender};
use crate::reattach_job::ReattachJob;
use crate::sway::WindowNotifier;
use crate::unresolved::UnresolvedSessions;

mod ended_sessions;
mod session;

use ended_sessions::EndedSessions;
pub(crate) use session::RunningSession;
use session::{StopDeadline, WorkerSession};

/// What the thread is told.
pub(crate) enum WorkerMessage {
    /// A session is being started or taken back.
    SessionStarting(SessionId),
    /// What came of it.
    Started(SessionId, Result<Box<StartedSession>, SpawnFailure>),
    /// What came of it.
    Reattached(SessionId, Result<Box<StartedSession>, ReattachFailure>),
    /// End it, by an order of this moment.
    Stop(HostStopRequest, Instant),
    /// The request of this index could not be made.
    StopRequestFailed(SessionId, usize),
    /// It shows its first window.
    #[cfg_attr(not(feature = "sway"), expect(dead_code, reason = "only a compositor module says so"))]
    WindowReady(SessionId),
    /// Something is not as it should be, of no session in particular.
    #[cfg_attr(not(feature = "sway"), expect(dead_code, reason = "only a compositor module says so"))]
    Problem(String),
    /// Events go here from now on.
    Subscribe(UnboundedSender<HostEvent>),
    /// The host is no more; what runs goes on.
    Shutdown,
}

/// A program that runs, and the event that says so.
pub(crate) struct StartedSession {
    pub(crate) running: RunningSession,
    pub(crate) event: HostEvent,
}

/// A program that could not be taken back.
pub(crate) enum ReattachFailure {
    /// It is gone.
    Gone {
        /// The folder of its control socket.
        sockets: Option<PathBuf>,
    },
    /// That is not certain. What was written down of it stays.
    Uncertain {
        /// Why.
        detail: String,
        /// What to do again.
        retry: Box<ReattachJob>,
    },
}

/// Whom the thread hears and whom it tells.
pub(crate) struct WorkerChannels {
    pub(crate) inbox: MailboxReceiver<WorkerMessage>,
    /// To itself, for those who work for it elsewhere.
    pub(crate) own_mailbox: MailboxSender<WorkerMessage>,
    pub(crate) window_notifier: WindowNotifier,
    pub(crate) events: UnboundedSender<HostEvent>,
    pub(crate) cleanup: Sender<SessionRemains>,
}

/// Between two attempts to take back what is in doubt: its cause is a person or another program, and goes unannounced.
const REATTACH_INTERVAL: Duration = Duration::from_secs(2);

/// Between two looks at those who have been killed: about as long as one takes to die.
const KILL_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// What is behind every wake-up that is no tree's.
const WAKE_TOKEN: u64 = 0;

pub(crate) struct SessionWorker {
    supervisor: Arc<Supervisor>,
    unresolved: UnresolvedSessions,
    channels: WorkerChannels,
    epoll: OwnedFd,
    sessions: BTreeMap<SessionId, WorkerSession>,
    /// Those whose last event is out.
    ended: EndedSessions,
}

impl SessionWorker {
    /// Starts the thread.
    pub(crate) fn start(
        supervisor: Arc<Supervisor>,
        doubts: UnresolvedSessions,
        ends: WorkerChannels,
    ) -> io::Result<JoinHandle<()>> {
        let wakers = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(
            &wakers,
            ends.inbox.wake_fd(),
            epoll::EventData::new_u64(WAKE_TOKEN),
            epoll::EventFlags::IN,
        )?;
        let (sessions, over) = (BTreeMap::new(), EndedSessions::default());
        let worker =
            Self { supervisor, unresolved: doubts, channels: ends, epoll: wakers, sessions, ended: over };
        Builder::new().name("host-worker".into()).spawn(move || worker.run())
    }

    fn run(mut self) {
        let mut woken = Vec::with_capacity(16);
        loop {
            self.sleep(&mut woken);
            while let Some(message) = self.channels.inbox.try_next() {
                if let WorkerMessage::Shutdown = message {
                    return;
                }
                self.handle_message(message);
            }
            self.update_sessions();
        }
    }

    /// Until there is news, or until the next step of a stop that is under way.
    fn sleep(&self, woken: &mut Vec<epoll::Event>) {
        let now = Instant::now();
        let due = self.sessions.values().filter_map(WorkerSession::next_due).min();
        let timeout = due.map(|due| due.saturating_duration_since(now));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        woken.clear();
        // Interrupted is woken, too: whoever is woken looks at everything.
        let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(woken), timeout.as_ref());
        if woken.iter().any(|event| event.data.u64() == WAKE_TOKEN) {
            self.channels.inbox.clear_wake();
        }
    }

    fn handle_message(&mut self, message: WorkerMessage) {
        match message {
            WorkerMessage::SessionStarting(session_id) => self.add_starting(session_id),
            WorkerMessage::Started(session_id, Ok(started))
            | WorkerMessage::Reattached(session_id, Ok(started)) => {
                if self.is_not_running(&session_id) {
                    self.add_running(&session_id, *started);
                }
            }
            WorkerMessage::Started(session_id, Err(failure)) => {
                if self.is_not_running(&session_id) {
                    self.sessions.remove(&session_id);
                    self.channels.window_notifier.session_failed(&session_id);
                    self.ended.insert(session_id.clone());
                    self.emit(HostEvent::SpawnFailed { session_id, failure });
                }
            }
            WorkerMessage::Reattached(session_id, Err(lost)) => {
                if self.is_not_running(&session_id) {
                    self.handle_reattach_failure(session_id, lost);
                }
            }
            WorkerMessage::Stop(order, since) => self.stop(&order, since),
            WorkerMessage::StopRequestFailed(session_id, request) => {
                if let Some(WorkerSession::Running(running)) = self.sessions.get_mut(&session_id) {
                    running.skip_request(request);
                }
            }
            WorkerMessage::WindowReady(session_id) => {
                if let Some(WorkerSession::Running(_)) = self.sessions.get(&session_id) {
                    self.emit(HostEvent::WindowReady { session_id });
                }
            }
            WorkerMessage::Problem(detail) => self.emit(HostEvent::Problem { session_id: None, detail }),
            WorkerMessage::Subscribe(events) => self.channels.events = events,
            // Heard by `run`.
            WorkerMessage::Shutdown => {}
        }
    }

    fn add_starting(&mut self, session_id: SessionId) {
        self.sessions.entry(session_id).or_insert(WorkerSession::Starting { stop: None, retry: None });
    }

    /// Whoever starts or takes back what runs already changes nothing about it.
    fn is_not_running(&self, session_id: &SessionId) -> bool {
        let running = matches!(self.sessions.get(session_id), Some(WorkerSession::Running(_)));
        if running {
            self.report_problem(
                session_id,
                "it was to be started or taken back, but it runs already".to_owned(),
            );
        }
        !running
    }

    fn handle_reattach_failure(&mut self, session_id: SessionId, lost: ReattachFailure) {
        let earlier = self.sessions.remove(&session_id);
        match lost {
            ReattachFailure::Uncertain { detail, retry: again } => {
                if self.unresolved.add(&session_id, &detail) {
                    self.emit(HostEvent::ReattachPending { session_id: session_id.clone(), detail });
                }
                let stop = earlier.and_then(|session| session.pending_stop());
                let again = Some((Instant::now() + REATTACH_INTERVAL, again));
                self.sessions.insert(session_id, WorkerSession::Starting { stop, retry: again });
            }
            ReattachFailure::Gone { sockets } => {
                self.unresolved.resolve(&session_id);
                let remains = SessionRemains { session_id: session_id.clone(), tree: None, sockets };
                let _ = self.channels.cleanup.send(remains);
                self.ended.insert(session_id.clone());
                self.emit(HostEvent::Gone { session_id });
            }
        }
    }

    fn add_running(&mut self, session_id: &SessionId, started: StartedSession) {
        let StartedSession { mut running, event } = started;
        let stop = self.sessions.remove(session_id).and_then(|session| session.pending_stop());
        self.unresolved.resolve(session_id);
        // Before it is said: whoever hears it may want it shown.
        self.channels.window_notifier.session_running(session_id, &running.tree);
        self.emit(event);
        let data = epoll::EventData::new_u64(WAKE_TOKEN + 1);
        let watched = epoll::add(&self.epoll, running.tree.readiness_fd(), data, epoll::EventFlags::IN);
        if let Err(error) = watched {
            // Nothing would tell us of its end.
            let detail = format!("the program can't be watched ({error}), so it is ended");
            self.report_problem(session_id, detail);
            running.stop(StopDeadline::immediate(Instant::now()));
        }
        if let Some(stop) = stop {
            running.stop(stop);
        }
        self.sessions.insert(session_id.clone(), WorkerSession::Running(Box::new(running)));
        self.update_session(session_id);
    }

    fn stop(&mut self, order: &HostStopRequest, since: Instant) {
        let ordered = StopDeadline { since, grace: order.grace };
        match self.sessions.get_mut(&order.session_id) {
            Some(WorkerSession::Starting { stop, .. }) => {
                *stop = Some(stop.map_or(ordered, |earlier| earlier.merge_stricter(ordered)));
            }
            Some(WorkerSession::Running(running)) => {
                running.stop(ordered);
                self.update_session(&order.session_id);
            }
            None if self.ended.contains(&order.session_id) => {}
            None => {
                self.ended.insert(order.session_id.clone());
                self.emit(HostEvent::Gone { session_id: order.session_id.clone() });
            }
        }
    }

    fn update_sessions(&mut self) {
        let all: Vec<SessionId> = self.sessions.keys().cloned().collect();
        all.iter().for_each(|session_id| self.update_session(session_id));
    }

    /// Takes the steps that are due, and notices the end.
    fn update_session(&mut self, session_id: &SessionId) {
        let running = match self.sessions.get_mut(session_id) {
            Some(WorkerSession::Running(running)) => running,
            Some(starting) => {
                if let Some(again) = starting.take_due_reattach(Instant::now()) {
                    again.run_on_thread(&self.channels.own_mailbox);
                }
                return;
            }
            None => return,
        };
        let survives = running.advance_stop(session_id, &self.supervisor, &self.channels.own_mailbox);
        match running.tree.poll_ended() {
            Ok(Some(ended)) if self.channels.window_notifier.kill_sway_children(session_id) => {
                self.finish_session(session_id, ended.exit);
            }
            Ok(Some(_)) => {
                // Its end would be news until what the compositor started for it is gone.
                let _ = epoll::delete(&self.epoll, running.tree.readiness_fd());
                running.check_at(Instant::now() + KILL_CHECK_INTERVAL);
            }
            Ok(None) if survives => {
                let left = running.tree.processes();
                let detail = format!("{} processes outlive their kill: {left:?}", left.len());
                self.report_problem(session_id, detail);
            }
            Ok(None) => {}
            Err(error) => {
                // It would be news for ever. From now on it is only looked at after each strike.
                let _ = epoll::delete(&self.epoll, running.tree.readiness_fd());
                running.stop(StopDeadline::immediate(Instant::now()));
                if running.mark_problem_reported() {
                    let detail = format!("the program can't be watched ({error}), so it is ended");
                    self.report_problem(session_id, detail);
                }
            }
        }
    }

    fn finish_session(&mut self, session_id: &SessionId, exit: ProcessExit) {
        let Some(WorkerSession::Running(running)) = self.sessions.remove(session_id) else { return };
        let _ = epoll::delete(&self.epoll, running.tree.readiness_fd());
        running.cancel_stop_requests();
        self.channels.window_notifier.session_ended(session_id);
        self.ended.insert(session_id.clone());
        let status = match exit {
            ProcessExit::Code(code) => ExitStatus { code: Some(code), signal: None },
            ProcessExit::Signal(signal) => ExitStatus { code: None, signal: Some(signal) },
            ProcessExit::Unknown => ExitStatus::default(),
        };
        self.emit(HostEvent::Exited { session_id: session_id.clone(), status });
        let _ = self.channels.cleanup.send(SessionRemains {
            session_id: session_id.clone(),
            tree: Some(Box::new(running.tree)),
            sockets: running.sockets,
        });
    }

    fn report_problem(&self, session_id: &SessionId, detail: String) {
        self.emit(HostEvent::Problem { session_id: Some(session_id.clone()), detail });
    }

    fn emit(&self, event: HostEvent) {
        // Nobody has to listen.
        let _ = self.channels.events.send(event);
    }
}
