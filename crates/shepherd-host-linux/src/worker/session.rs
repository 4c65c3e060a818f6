//! One session, as the worker sees it.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::Builder;
use std::time::{Duration, Instant};

use rustix::event::EventfdFlags;
use rustix::io::Errno;
use shepherd_util::SessionId;
use ward_process::{Reach, StopSignal, Supervisor, Tree};

use super::Message;
use crate::ask::{Ask, SlowAsk};
use crate::descent::{Descent, Step};
use crate::line::Line;
use crate::take_back::TakeBack;

pub(super) enum Session {
    /// Another thread is at it.
    Starting {
        /// What is to be done as soon as it is there.
        stop: Option<Stop>,
        /// Nobody is at it, because it is in doubt: when to try again.
        again: Option<(Instant, Box<TakeBack>)>,
    },
    Running(Box<Running>),
}

impl Session {
    /// When something has to be done about it, whatever happens.
    pub(super) fn due(&self) -> Option<Instant> {
        match self {
            Self::Starting { again, .. } => again.as_ref().map(|(due, _)| *due),
            Self::Running(running) => running.due,
        }
    }

    /// What is to be done as soon as it is there.
    pub(super) fn ordered(&self) -> Option<Stop> {
        match self {
            Self::Starting { stop, .. } => *stop,
            Self::Running(_) => None,
        }
    }

    /// What is to be tried again by now.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Box<TakeBack>> {
        match self {
            Self::Starting { again, .. } => again.take_if(|(due, _)| *due <= now).map(|(_, again)| again),
            Self::Running(_) => None,
        }
    }
}

/// When a stop was ordered, and how long it may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    pub(super) since: Instant,
    pub(super) grace: Duration,
}

impl Stop {
    pub(super) fn at_once(since: Instant) -> Self {
        Self { since, grace: Duration::ZERO }
    }

    /// Both at once.
    pub(super) fn stricter(self, other: Self) -> Self {
        let offset = other.since.saturating_duration_since(self.since);
        Self { since: self.since, grace: self.grace.min(offset.saturating_add(other.grace)) }
    }
}

/// A program that runs.
pub(crate) struct Running {
    pub(crate) tree: Tree,
    pub(crate) sockets: Option<PathBuf>,
    asks: Vec<Ask>,
    /// As which user it runs.
    user: u32,
    stopping: Option<Stopping>,
    /// Tells those who ask on threads of their own that it is over. Made for the first of them.
    over: Option<Arc<OwnedFd>>,
    due: Option<Instant>,
    troubled: bool,
}

struct Stopping {
    order: Stop,
    descent: Descent,
    /// When to look for those whom the signal has not reached.
    look_again: Option<Instant>,
}

impl Running {
    pub(crate) fn new(tree: Tree, asks: Vec<Ask>, user: u32, sockets: Option<PathBuf>) -> Self {
        Self { tree, sockets, asks, user, stopping: None, over: None, due: None, troubled: false }
    }

    pub(super) fn stop(&mut self, order: Stop) {
        match &mut self.stopping {
            None => {
                let descent = Descent::new(self.asks.len(), order.grace);
                self.stopping = Some(Stopping { order, descent, look_again: None });
            }
            Some(stopping) => {
                stopping.order = stopping.order.stricter(order);
                stopping.descent.tighten(stopping.order.grace);
            }
        }
        self.due = Some(order.since);
    }

    pub(super) fn skip(&mut self, request: usize) {
        if let Some(stopping) = &mut self.stopping {
            stopping.descent.skip(request);
            self.due = Some(stopping.order.since);
        }
    }

    /// Something is to be done about it then, whatever happens.
    pub(super) fn look_again(&mut self, due: Instant) {
        self.due = Some(due);
    }

    /// Whether nothing was said of it before.
    pub(super) fn first_trouble(&mut self) -> bool {
        !std::mem::replace(&mut self.troubled, true)
    }

    /// Takes the steps that are due. Whether something that outlives its kill is to be reported.
    pub(super) fn carry_on(
        &mut self,
        session_id: &SessionId,
        supervisor: &Arc<Supervisor>,
        line: &Line<Message>,
    ) -> bool {
        loop {
            let Some(Stopping { order, descent, look_again }) = &mut self.stopping else { return false };
            let since = order.since;
            match descent.next(since.elapsed()) {
                Step::Ask(request) => self.ask(request, session_id, supervisor, line),
                Step::Kill => {
                    *look_again = None;
                    self.tree.kill();
                }
                Step::WaitUntil(elapsed) => {
                    if look_again.take_if(|due| *due <= Instant::now()).is_some() {
                        *look_again = next_look(self.tree.signal_the_rest());
                    }
                    self.due = since.checked_add(elapsed).into_iter().chain(*look_again).min();
                    return false;
                }
                Step::Survives if self.tree.end_of_the_dead().is_some() => return false,
                Step::Survives => {
                    self.due = Some(Instant::now());
                    return self.first_trouble();
                }
            }
        }
    }

    fn ask(
        &mut self,
        request: usize,
        session_id: &SessionId,
        supervisor: &Arc<Supervisor>,
        line: &Line<Message>,
    ) {
        match self.asks.get(request) {
            Some(Ask::Signal) => {
                let reach = self.tree.signal(StopSignal::Terminate);
                if let Some(stopping) = &mut self.stopping {
                    stopping.look_again = next_look(reach);
                }
            }
            Some(ask) => {
                let ask = ask.clone();
                self.ask_apart(ask, request, session_id, supervisor, line);
            }
            None => self.skip(request),
        }
    }

    /// On a thread of its own, because it may take its time.
    fn ask_apart(
        &mut self,
        ask: Ask,
        request: usize,
        session_id: &SessionId,
        supervisor: &Arc<Supervisor>,
        line: &Line<Message>,
    ) {
        let not_asked = Message::NotAsked(session_id.clone(), request);
        let Ok(over) = self.over() else { return line.send(not_asked) };
        let slow = SlowAsk {
            supervisor: Arc::clone(supervisor),
            session_id: session_id.clone(),
            identity: self.tree.identity().cloned(),
            user: self.user,
            ask,
            over,
            patience: self.stopping.as_ref().map_or(Duration::ZERO, |stopping| stopping.order.grace),
        };
        let (line_of_thread, failed) = (line.clone(), Message::NotAsked(session_id.clone(), request));
        let started = Builder::new().name("host-ask".into()).spawn(move || {
            if slow.carry_out().is_err() {
                line_of_thread.send(failed);
            }
        });
        if started.is_err() {
            line.send(not_asked);
        }
    }

    fn over(&mut self) -> Result<Arc<OwnedFd>, Errno> {
        if let Some(over) = &self.over {
            return Ok(Arc::clone(over));
        }
        let over = Arc::new(rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        self.over = Some(Arc::clone(&over));
        Ok(over)
    }

    /// Nobody needs to ask any more.
    pub(super) fn end_asking(&self) {
        if let Some(over) = &self.over {
            let _ = rustix::io::write(over, &1_u64.to_ne_bytes());
        }
    }
}

fn next_look(reach: Reach) -> Option<Instant> {
    match reach {
        Reach::Everybody => None,
        Reach::NotYet { look_again } => Instant::now().checked_add(look_again),
    }
}
