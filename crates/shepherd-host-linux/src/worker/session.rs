//! The state of one session in the worker.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::Builder;
use std::time::{Duration, Instant};

use rustix::event::EventfdFlags;
use rustix::io::Errno;
use shepherd_util::SessionId;
use ward_process::{
    LadderProgress, LadderStep, ProcessTree, SignalDelivery, StopLadder, StopSignal, Supervisor,
};

use super::WorkerMessage;
use crate::mailbox::MailboxSender;
use crate::reattach_job::ReattachJob;
use crate::stop_method::{SlowStopRequest, StopMethod};

pub(super) enum WorkerSession {
    /// Another thread is starting or reattaching the program.
    Starting(QueuedOrder),
    /// The program may still run, but could not be reattached. Another attempt is made at `retry_at`.
    ReattachLater {
        retry_at: Instant,
        job: Box<ReattachJob>,
        order: QueuedOrder,
    },
    Running(Box<RunningSession>),
}

/// The order that the worker carries out as soon as the program is known to run.
#[derive(Clone, Copy)]
pub(super) enum QueuedOrder {
    KeepRunning,
    /// The stop was ordered while the program was being started or reattached.
    Stop(StopDeadline),
}

impl WorkerSession {
    /// Returns when the worker must look at the session even if nothing happens.
    pub(super) fn next_due(&self) -> Option<Instant> {
        match self {
            Self::Starting(_) => None,
            Self::ReattachLater { retry_at, .. } => Some(*retry_at),
            Self::Running(running) => running.due,
        }
    }

    pub(super) fn order(&self) -> QueuedOrder {
        match self {
            Self::Starting(order) | Self::ReattachLater { order, .. } => *order,
            Self::Running(_) => QueuedOrder::KeepRunning,
        }
    }

    /// Returns the reattachment that is due by `now`. The session then counts as starting.
    pub(super) fn take_due_reattach(&mut self, now: Instant) -> Option<Box<ReattachJob>> {
        match self {
            Self::ReattachLater { retry_at, job, order } if *retry_at <= now => {
                let job = job.clone();
                *self = Self::Starting(*order);
                Some(job)
            }
            Self::Starting(_) | Self::ReattachLater { .. } | Self::Running(_) => None,
        }
    }
}

impl QueuedOrder {
    /// Adds an order to stop. If the session is already to be stopped, the stricter deadline counts.
    pub(super) fn add_stop(&mut self, deadline: StopDeadline) {
        *self = Self::Stop(match self {
            Self::KeepRunning => deadline,
            Self::Stop(earlier) => earlier.merge_stricter(deadline),
        });
    }
}

/// The time at which a stop was ordered, and the grace from then on.
#[derive(Clone, Copy, Debug)]
pub(super) struct StopDeadline {
    pub(super) since: Instant,
    pub(super) grace: Duration,
}

impl StopDeadline {
    pub(super) fn immediate(since: Instant) -> Self {
        Self { since, grace: Duration::ZERO }
    }

    /// Returns the deadline that satisfies both orders, counted from the first.
    pub(super) fn merge_stricter(self, other: Self) -> Self {
        let offset = other.since.saturating_duration_since(self.since);
        Self { since: self.since, grace: self.grace.min(offset.saturating_add(other.grace)) }
    }
}

pub(crate) struct RunningSession {
    pub(crate) tree: ProcessTree,
    pub(crate) sockets: Option<PathBuf>,
    stop_methods: Vec<StopMethod>,
    /// The user id that the program runs as.
    user: u32,
    stopping: Option<StopProgress>,
    /// Tells threads that make slow stop requests that the session is over. Created for the first such thread.
    over_event: Option<Arc<OwnedFd>>,
    due: Option<Instant>,
    problem_reported: bool,
}

struct StopProgress {
    deadline: StopDeadline,
    ladder: LadderProgress<StopMethod>,
    /// When to signal the members that the stop signal has not reached.
    signal_retry: Option<Instant>,
}

impl RunningSession {
    pub(crate) fn new(
        tree: ProcessTree,
        stop_methods: Vec<StopMethod>,
        user: u32,
        sockets: Option<PathBuf>,
    ) -> Self {
        Self {
            tree,
            sockets,
            stop_methods,
            user,
            stopping: None,
            over_event: None,
            due: None,
            problem_reported: false,
        }
    }

    /// Starts to stop the program, or makes a stop that is under way stricter.
    pub(super) fn stop(&mut self, deadline: StopDeadline) {
        match &mut self.stopping {
            None => {
                let ladder = StopLadder::sharing_grace(self.stop_methods.iter().cloned(), deadline.grace);
                let ladder = LadderProgress::new(ladder);
                self.stopping = Some(StopProgress { deadline, ladder, signal_retry: None });
            }
            Some(stopping) => {
                stopping.deadline = stopping.deadline.merge_stricter(deadline);
                stopping.ladder.shorten_grace(stopping.deadline.grace);
            }
        }
        self.due = Some(deadline.since);
    }

    /// Goes on to the next rung if the ladder still waits for this one, whose request could not be made.
    pub(super) fn skip_rung(&mut self, rung: usize) {
        if let Some(stopping) = &mut self.stopping {
            stopping.ladder.skip_rung(rung);
            self.due = Some(stopping.deadline.since);
        }
    }

    pub(super) fn check_at(&mut self, due: Instant) {
        self.due = Some(due);
    }

    /// Returns true the first time, so that a lasting problem is reported once.
    pub(super) fn mark_problem_reported(&mut self) -> bool {
        !std::mem::replace(&mut self.problem_reported, true)
    }

    /// Takes the steps of the stop that are due. Returns whether processes that survived their kill are to be
    /// reported.
    pub(super) fn advance_stop(
        &mut self,
        session_id: &SessionId,
        supervisor: &Arc<Supervisor>,
        mailbox: &MailboxSender<WorkerMessage>,
    ) -> bool {
        loop {
            let Some(StopProgress { deadline, ladder, signal_retry }) = &mut self.stopping else {
                return false;
            };
            let since = deadline.since;
            match ladder.next_step(since.elapsed()) {
                LadderStep::TryRung { action: StopMethod::Signal, .. } => {
                    *signal_retry = next_signal_retry(self.tree.signal(StopSignal::Terminate));
                }
                LadderStep::TryRung { index, action } => {
                    let method = action.clone();
                    self.send_on_thread(method, index, session_id, supervisor, mailbox);
                }
                LadderStep::Kill => {
                    *signal_retry = None;
                    self.tree.kill();
                }
                LadderStep::WaitUntil(elapsed) => {
                    if signal_retry.take_if(|due| *due <= Instant::now()).is_some() {
                        *signal_retry = next_signal_retry(self.tree.signal_remaining());
                    }
                    self.due = since.checked_add(elapsed).into_iter().chain(*signal_retry).min();
                    return false;
                }
                LadderStep::ReportSurvivors if self.tree.end_if_only_zombies().is_some() => return false,
                LadderStep::ReportSurvivors => {
                    self.due = Some(Instant::now());
                    return self.mark_problem_reported();
                }
            }
        }
    }

    /// Makes a stop request on its own thread, because the program may be slow to answer.
    fn send_on_thread(
        &mut self,
        method: StopMethod,
        rung: usize,
        session_id: &SessionId,
        supervisor: &Arc<Supervisor>,
        mailbox: &MailboxSender<WorkerMessage>,
    ) {
        let failed = || WorkerMessage::StopRequestFailed(session_id.clone(), rung);
        let Ok(session_over) = self.over_event() else { return mailbox.send(failed()) };
        let request = SlowStopRequest {
            supervisor: Arc::clone(supervisor),
            session_id: session_id.clone(),
            identity: self.tree.identity().cloned(),
            user: self.user,
            method,
            session_over,
            timeout: self.stopping.as_ref().map_or(Duration::ZERO, |stopping| stopping.deadline.grace),
        };
        let (thread_mailbox, request_failed) = (mailbox.clone(), failed());
        let started = Builder::new().name("host-stop".into()).spawn(move || {
            if request.send().is_err() {
                thread_mailbox.send(request_failed);
            }
        });
        if started.is_err() {
            mailbox.send(failed());
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

    /// Ends the stop requests that other threads are still making.
    pub(super) fn cancel_stop_requests(&self) {
        if let Some(over) = &self.over_event {
            let _ = rustix::io::write(over, &1_u64.to_ne_bytes());
        }
    }
}

fn next_signal_retry(delivery: SignalDelivery) -> Option<Instant> {
    match delivery {
        SignalDelivery::AllMembers => None,
        SignalDelivery::Incomplete { retry_after } => Instant::now().checked_add(retry_after),
    }
}
