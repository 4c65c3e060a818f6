//! One session, as the worker sees it.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::Builder;
use std::time::{Duration, Instant};

use rustix::event::EventfdFlags;
use rustix::io::Errno;
use shepherd_util::SessionId;
use ward_process::{ProcessTree, SignalReach, StopSignal, Supervisor};

use super::WorkerMessage;
use crate::mailbox::MailboxSender;
use crate::reattach_job::ReattachJob;
use crate::stop_ladder::{SessionStopLadder, StopStep};
use crate::stop_method::{SlowStopRequest, StopMethod};

pub(super) enum WorkerSession {
    /// Another thread is at it.
    Starting {
        /// What is to be done as soon as it is there.
        stop: Option<StopDeadline>,
        /// Nobody is at it, because it is in doubt: when to try again.
        retry: Option<(Instant, Box<ReattachJob>)>,
    },
    Running(Box<RunningSession>),
}

impl WorkerSession {
    /// When something has to be done about it, whatever happens.
    pub(super) fn next_due(&self) -> Option<Instant> {
        match self {
            Self::Starting { retry: again, .. } => again.as_ref().map(|(due, _)| *due),
            Self::Running(running) => running.due,
        }
    }

    /// What is to be done as soon as it is there.
    pub(super) fn pending_stop(&self) -> Option<StopDeadline> {
        match self {
            Self::Starting { stop, .. } => *stop,
            Self::Running(_) => None,
        }
    }

    /// What is to be tried again by now.
    pub(super) fn take_due_reattach(&mut self, now: Instant) -> Option<Box<ReattachJob>> {
        match self {
            Self::Starting { retry: again, .. } => {
                again.take_if(|(due, _)| *due <= now).map(|(_, again)| again)
            }
            Self::Running(_) => None,
        }
    }
}

/// When a stop was ordered, and how long it may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct StopDeadline {
    pub(super) since: Instant,
    pub(super) grace: Duration,
}

impl StopDeadline {
    pub(super) fn immediate(since: Instant) -> Self {
        Self { since, grace: Duration::ZERO }
    }

    /// Both at once.
    pub(super) fn merge_stricter(self, other: Self) -> Self {
        let offset = other.since.saturating_duration_since(self.since);
        Self { since: self.since, grace: self.grace.min(offset.saturating_add(other.grace)) }
    }
}

/// A program that runs.
pub(crate) struct RunningSession {
    pub(crate) tree: ProcessTree,
    pub(crate) sockets: Option<PathBuf>,
    stop_methods: Vec<StopMethod>,
    /// As which user it runs.
    user: u32,
    stopping: Option<StopProgress>,
    /// Tells those who ask on threads of their own that it is over. Made for the first of them.
    over_event: Option<Arc<OwnedFd>>,
    due: Option<Instant>,
    problem_reported: bool,
}

struct StopProgress {
    order: StopDeadline,
    ladder: SessionStopLadder,
    /// When to look for those whom the signal has not reached.
    next_check: Option<Instant>,
}

impl RunningSession {
    pub(crate) fn new(tree: ProcessTree, asks: Vec<StopMethod>, user: u32, sockets: Option<PathBuf>) -> Self {
        Self {
            tree,
            sockets,
            stop_methods: asks,
            user,
            stopping: None,
            over_event: None,
            due: None,
            problem_reported: false,
        }
    }

    pub(super) fn stop(&mut self, order: StopDeadline) {
        match &mut self.stopping {
            None => {
                let descent = SessionStopLadder::new(self.stop_methods.len(), order.grace);
                self.stopping = Some(StopProgress { order, ladder: descent, next_check: None });
            }
            Some(stopping) => {
                stopping.order = stopping.order.merge_stricter(order);
                stopping.ladder.shorten_grace(stopping.order.grace);
            }
        }
        self.due = Some(order.since);
    }

    pub(super) fn skip_request(&mut self, request: usize) {
        if let Some(stopping) = &mut self.stopping {
            stopping.ladder.skip_request(request);
            self.due = Some(stopping.order.since);
        }
    }

    /// Something is to be done about it then, whatever happens.
    pub(super) fn check_at(&mut self, due: Instant) {
        self.due = Some(due);
    }

    /// Whether nothing was said of it before.
    pub(super) fn mark_problem_reported(&mut self) -> bool {
        !std::mem::replace(&mut self.problem_reported, true)
    }

    /// Takes the steps that are due. Whether something that outlives its kill is to be reported.
    pub(super) fn advance_stop(
        &mut self,
        session_id: &SessionId,
        supervisor: &Arc<Supervisor>,
        line: &MailboxSender<WorkerMessage>,
    ) -> bool {
        loop {
            let Some(StopProgress { order, ladder: descent, next_check: look_again }) = &mut self.stopping
            else {
                return false;
            };
            let since = order.since;
            match descent.next_step(since.elapsed()) {
                StopStep::Request(request) => self.send_stop_request(request, session_id, supervisor, line),
                StopStep::Kill => {
                    *look_again = None;
                    self.tree.kill();
                }
                StopStep::WaitUntil(elapsed) => {
                    if look_again.take_if(|due| *due <= Instant::now()).is_some() {
                        *look_again = next_check(self.tree.signal_remaining());
                    }
                    self.due = since.checked_add(elapsed).into_iter().chain(*look_again).min();
                    return false;
                }
                StopStep::StillAlive if self.tree.end_if_only_zombies().is_some() => return false,
                StopStep::StillAlive => {
                    self.due = Some(Instant::now());
                    return self.mark_problem_reported();
                }
            }
        }
    }

    fn send_stop_request(
        &mut self,
        request: usize,
        session_id: &SessionId,
        supervisor: &Arc<Supervisor>,
        line: &MailboxSender<WorkerMessage>,
    ) {
        match self.stop_methods.get(request) {
            Some(StopMethod::Signal) => {
                let reach = self.tree.signal(StopSignal::Terminate);
                if let Some(stopping) = &mut self.stopping {
                    stopping.next_check = next_check(reach);
                }
            }
            Some(ask) => {
                let ask = ask.clone();
                self.send_on_thread(ask, request, session_id, supervisor, line);
            }
            None => self.skip_request(request),
        }
    }

    /// On a thread of its own, because it may take its time.
    fn send_on_thread(
        &mut self,
        ask: StopMethod,
        request: usize,
        session_id: &SessionId,
        supervisor: &Arc<Supervisor>,
        line: &MailboxSender<WorkerMessage>,
    ) {
        let not_asked = WorkerMessage::StopRequestFailed(session_id.clone(), request);
        let Ok(over) = self.over_event() else { return line.send(not_asked) };
        let slow = SlowStopRequest {
            supervisor: Arc::clone(supervisor),
            session_id: session_id.clone(),
            identity: self.tree.identity().cloned(),
            user: self.user,
            method: ask,
            session_over: over,
            timeout: self.stopping.as_ref().map_or(Duration::ZERO, |stopping| stopping.order.grace),
        };
        let (line_of_thread, failed) =
            (line.clone(), WorkerMessage::StopRequestFailed(session_id.clone(), request));
        let started = Builder::new().name("host-ask".into()).spawn(move || {
            if slow.send().is_err() {
                line_of_thread.send(failed);
            }
        });
        if started.is_err() {
            line.send(not_asked);
        }
    }

    fn over_event(&mut self) -> Result<Arc<OwnedFd>, Errno> {
        if let Some(over) = &self.over_event {
            return Ok(Arc::clone(over));
        }
        let over = Arc::new(rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        self.over_event = Some(Arc::clone(&over));
        Ok(over)
    }

    /// Nobody needs to ask any more.
    pub(super) fn cancel_stop_requests(&self) {
        if let Some(over) = &self.over_event {
            let _ = rustix::io::write(over, &1_u64.to_ne_bytes());
        }
    }
}

fn next_check(reach: SignalReach) -> Option<Instant> {
    match reach {
        SignalReach::AllMembers => None,
        SignalReach::Incomplete { retry_after: look_again } => Instant::now().checked_add(look_again),
    }
}
