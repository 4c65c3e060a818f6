//! The worker: the one thread that watches all running programs and stops them. It sleeps unless something happens.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use shepherd_host_api::{ExitStatus, HostEvent, HostStopRequest};
use shepherd_util::SessionId;
use ward_process::{ProcessExit, Supervisor};

use crate::cleanup::SessionRemains;
use crate::unresolved::UnresolvedSessions;

mod ended_sessions;
mod message;
mod session;
mod step_timer;

use ended_sessions::EndedSessions;
pub(crate) use message::{ReattachFailure, StartedSession, WorkerChannels, WorkerMessage};
pub(crate) use session::RunningSession;
use session::{QueuedOrder, StopDeadline, WorkerSession};
use step_timer::StepTimer;

/// The time between two attempts to reattach a program that may still run. The cause is a person or another program,
/// and nothing announces that it is gone.
const REATTACH_INTERVAL: Duration = Duration::from_secs(2);

/// The time between two checks for killed processes: about as long as a process takes to die.
const KILL_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// The epoll token of the mailbox.
const WAKE_TOKEN: u64 = 0;
/// The epoll token of the timer.
const TIMER_TOKEN: u64 = 1;
/// The epoll token of the first tree; the others follow.
const FIRST_TREE_TOKEN: u64 = 2;

pub(crate) struct SessionWorker {
    supervisor: Arc<Supervisor>,
    unresolved: UnresolvedSessions,
    channels: WorkerChannels,
    epoll: OwnedFd,
    timer: StepTimer,
    sessions: BTreeMap<SessionId, WorkerSession>,
    /// The sessions of the trees that are watched, by epoll token.
    watched: BTreeMap<u64, SessionId>,
    next_token: u64,
    /// The sessions whose last event has been sent.
    ended: EndedSessions,
}

impl SessionWorker {
    /// Starts the worker's thread.
    pub(crate) fn start(
        supervisor: Arc<Supervisor>,
        unresolved: UnresolvedSessions,
        channels: WorkerChannels,
    ) -> io::Result<JoinHandle<()>> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let token = epoll::EventData::new_u64(WAKE_TOKEN);
        epoll::add(&epoll, channels.inbox.wake_fd(), token, epoll::EventFlags::IN)?;
        let timer = StepTimer::new()?;
        epoll::add(&epoll, timer.as_fd(), epoll::EventData::new_u64(TIMER_TOKEN), epoll::EventFlags::IN)?;
        let worker = Self {
            supervisor,
            unresolved,
            channels,
            epoll,
            timer,
            sessions: BTreeMap::new(),
            watched: BTreeMap::new(),
            next_token: FIRST_TREE_TOKEN,
            ended: EndedSessions::default(),
        };
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
            self.update_sessions(&woken);
        }
    }

    /// Sleeps until a message or a tree wakes the thread, or until the next step of a stop is due.
    fn sleep(&mut self, woken: &mut Vec<epoll::Event>) {
        let due = self.sessions.values().filter_map(WorkerSession::next_due).min();
        self.timer.arm(due);
        // The timer is exact, while the kernel may end a wait with a timeout late by a thousandth. The timeout is for a
        // timer that could not be set.
        let timeout = due.map(|due| due.saturating_duration_since(Instant::now()));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        woken.clear();
        // `EINTR` is harmless: descriptors stay readable until their sessions were updated.
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
            WorkerMessage::Abandoned(session_id) => self.channels.window_notifier.session_failed(&session_id),
            WorkerMessage::Reattached(session_id, Err(failure)) => {
                if self.is_not_running(&session_id) {
                    self.handle_reattach_failure(session_id, failure);
                }
            }
            WorkerMessage::Stop(request, since) => self.stop(&request, since),
            WorkerMessage::StopRequestFailed(session_id, rung) => {
                if let Some(WorkerSession::Running(running)) = self.sessions.get_mut(&session_id) {
                    running.skip_rung(rung);
                }
            }
            WorkerMessage::WindowReady(session_id) => {
                if let Some(WorkerSession::Running(_)) = self.sessions.get(&session_id) {
                    self.emit(HostEvent::WindowReady { session_id });
                }
            }
            WorkerMessage::Problem(detail) => self.emit(HostEvent::Problem { session_id: None, detail }),
            WorkerMessage::Subscribe(events) => self.channels.events = events,
            // `run` handles it.
            WorkerMessage::Shutdown => {}
        }
    }

    fn add_starting(&mut self, session_id: SessionId) {
        self.sessions.entry(session_id).or_insert(WorkerSession::Starting(QueuedOrder::KeepRunning));
    }

    /// Returns whether the outcome of a start or a reattachment counts. If the session is already running, the outcome
    /// changes nothing, and this is reported.
    fn is_not_running(&self, session_id: &SessionId) -> bool {
        let running = matches!(self.sessions.get(session_id), Some(WorkerSession::Running(_)));
        if running {
            let detail = "could not start or reattach the session: it is already running";
            self.report_problem(session_id, detail.to_owned());
        }
        !running
    }

    fn handle_reattach_failure(&mut self, session_id: SessionId, failure: ReattachFailure) {
        let order = self.take_queued_order(&session_id);
        match failure {
            ReattachFailure::Uncertain { detail, retry } => {
                if self.unresolved.add(&session_id, &detail) {
                    self.emit(HostEvent::ReattachPending { session_id: session_id.clone(), detail });
                }
                let retry_at = Instant::now() + REATTACH_INTERVAL;
                let later = WorkerSession::ReattachLater { retry_at, job: retry, order };
                self.sessions.insert(session_id, later);
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

    /// Removes a session that was being started, and returns the order for it.
    fn take_queued_order(&mut self, session_id: &SessionId) -> QueuedOrder {
        self.sessions.remove(session_id).map_or(QueuedOrder::KeepRunning, |session| session.order())
    }

    fn add_running(&mut self, session_id: &SessionId, started: StartedSession) {
        let StartedSession { mut running, event } = started;
        let order = self.take_queued_order(session_id);
        self.unresolved.resolve(session_id);
        // Before the event is sent: its receiver may ask at once to show the session's window.
        self.channels.window_notifier.session_running(session_id, &running.tree);
        self.emit(event);
        let data = epoll::EventData::new_u64(self.next_token);
        self.watched.insert(self.next_token, session_id.clone());
        self.next_token += 1;
        let watched = epoll::add(&self.epoll, running.tree.readiness_fd(), data, epoll::EventFlags::IN);
        if let Err(error) = watched {
            // Nothing would wake the worker when the program ends.
            self.report_problem(session_id, unwatchable(&error));
            running.stop(StopDeadline::immediate(Instant::now()));
        }
        match order {
            QueuedOrder::KeepRunning => {}
            QueuedOrder::Stop(deadline) => running.stop(deadline),
        }
        self.sessions.insert(session_id.clone(), WorkerSession::Running(Box::new(running)));
        self.update_session(session_id);
    }

    fn stop(&mut self, request: &HostStopRequest, since: Instant) {
        let session_id = &request.session_id;
        let deadline = StopDeadline { since, grace: request.grace };
        match self.sessions.get_mut(session_id) {
            Some(WorkerSession::Starting(order) | WorkerSession::ReattachLater { order, .. }) => {
                order.add_stop(deadline);
            }
            Some(WorkerSession::Running(running)) => {
                running.stop(deadline);
                self.update_session(session_id);
            }
            None if self.ended.contains(session_id) => {}
            None => {
                self.ended.insert(session_id.clone());
                self.emit(HostEvent::Gone { session_id: session_id.clone() });
            }
        }
    }

    /// Updates the sessions whose trees have woken the thread, and those with a step that is due.
    ///
    /// To look at a tree costs system calls, so that 200 sessions would delay the end of each other.
    fn update_sessions(&mut self, woken: &[epoll::Event]) {
        let now = Instant::now();
        let is_due = |session: &WorkerSession| session.next_due().is_some_and(|due| due <= now);
        let due =
            self.sessions.iter().filter(|(_, session)| is_due(session)).map(|(session_id, _)| session_id);
        let ready = woken.iter().filter_map(|event| self.watched.get(&event.data.u64()));
        let sessions: BTreeSet<SessionId> = ready.chain(due).cloned().collect();
        sessions.iter().for_each(|session_id| self.update_session(session_id));
    }

    /// Takes the steps of the session that are due, and finishes the session if its tree has ended.
    fn update_session(&mut self, session_id: &SessionId) {
        let running = match self.sessions.get_mut(session_id) {
            Some(WorkerSession::Running(running)) => running,
            Some(starting) => {
                if let Some(job) = starting.take_due_reattach(Instant::now()) {
                    job.run_on_thread(&self.channels.own_mailbox);
                }
                return;
            }
            None => return,
        };
        let report_survivors = running.advance_stop(session_id, &self.supervisor, &self.channels.own_mailbox);
        match running.tree.poll_ended() {
            Ok(Some(ended)) if self.channels.window_notifier.kill_sway_children(session_id) => {
                self.finish_session(session_id, ended.exit);
            }
            Ok(Some(_)) => {
                // The descriptor of an ended tree stays readable, which would wake the worker all the time until
                // the programs that the compositor started for the session are gone.
                let _ = epoll::delete(&self.epoll, running.tree.readiness_fd());
                running.check_at(Instant::now() + KILL_CHECK_INTERVAL);
            }
            Ok(None) if report_survivors => {
                let detail = survivors(&running.tree.processes());
                self.report_problem(session_id, detail);
            }
            Ok(None) => {}
            Err(error) => {
                // The descriptor could stay readable for ever. From now on the tree is only checked after each kill.
                let _ = epoll::delete(&self.epoll, running.tree.readiness_fd());
                running.stop(StopDeadline::immediate(Instant::now()));
                if running.mark_problem_reported() {
                    self.report_problem(session_id, unwatchable(&error));
                }
            }
        }
    }

    fn finish_session(&mut self, session_id: &SessionId, exit: ProcessExit) {
        let Some(WorkerSession::Running(running)) = self.sessions.remove(session_id) else { return };
        let _ = epoll::delete(&self.epoll, running.tree.readiness_fd());
        self.watched.retain(|_, watched| watched != session_id);
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
        // Sending fails only if there is no subscriber.
        let _ = self.channels.events.send(event);
    }
}

fn unwatchable(error: &dyn std::error::Error) -> String {
    format!("could not watch the program, so it is being stopped: {error}")
}

fn survivors(processes: &[i32]) -> String {
    match processes {
        [process] => format!("process {process} survived its kill"),
        processes => format!("{} processes survived their kill: {processes:?}", processes.len()),
    }
}
