//! The loop (S13.3b): wait for one thing, tell the engine, carry out what it says. Nothing in it waits for a disk, a
//! program or a client.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;

use jiff::tz::TimeZone;
use shepherd_api::{ApiError, Reply};
use shepherd_core::CoreEngine;
use shepherd_host_api::{Host, HostEvent, HostEvents};
use shepherd_ipc::{Hub, Incoming, Server};
use shepherd_util::{ClientId, Clock, Now, SessionId, SystemClock};
use tokio::signal::unix::Signal;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Interval;

use crate::metrics::Metrics;
use crate::policy_source::{Rejected, Source};
use crate::pulse::{PulseReport, PulseThread, Rhythm};
use crate::store_thread::{Report, StoreThread};
use crate::timelines::Timelines;
use crate::timer::{ClockWatch, DueTimer};
use crate::watch::{Change, Watch};

mod answer;
mod authority;
mod carry_out;
mod files;
mod health;
mod host_events;
mod policy;
mod refusals;
mod shut_down;
mod who;

use carry_out::Waiting;
pub(crate) use files::{FileRead, Files, accounts};
pub(crate) use refusals::Refusals;

/// Everything that the loop waits for.
pub(crate) struct Inputs {
    pub(crate) due: DueTimer,
    pub(crate) clock: ClockWatch,
    pub(crate) host: HostEvents,
    pub(crate) store: UnboundedReceiver<Report>,
    pub(crate) pulse: UnboundedReceiver<PulseReport>,
    pub(crate) clients: Server,
    pub(crate) end: [Signal; 2],
    pub(crate) reload: Signal,
    pub(crate) files: Watch,
    pub(crate) read: UnboundedReceiver<FileRead>,
    pub(crate) watchdog: Option<Interval>,
}

/// One thing that happened.
enum Input {
    Due,
    Host(HostEvent),
    Store(Report),
    Pulse(PulseReport),
    End,
    Reload,
    ClockSet,
    File(Change),
    Read(FileRead),
    Watchdog,
    Client(Incoming),
}

impl Inputs {
    /// The next thing that happened. Of several, what enforces comes first and what clients want last.
    async fn next(&mut self) -> io::Result<Input> {
        let Self {
            due,
            clock,
            host,
            store,
            pulse,
            clients,
            end: [terminate, interrupt],
            reload,
            files,
            read,
            watchdog,
        } = self;
        Ok(tokio::select! {
            biased;
            result = due.due() => { result?; Input::Due }
            Some(event) = host.recv() => Input::Host(event),
            Some(_) = terminate.recv() => Input::End,
            Some(_) = interrupt.recv() => Input::End,
            Some(report) = store.recv() => Input::Store(report),
            Some(report) = pulse.recv() => Input::Pulse(report),
            result = clock.set() => { result?; Input::ClockSet }
            _ = tick(watchdog) => Input::Watchdog,
            Some(_) = reload.recv() => Input::Reload,
            Some(read) = read.recv() => Input::Read(read),
            change = files.changed() => Input::File(change?),
            Some(incoming) = clients.next() => Input::Client(incoming),
        })
    }
}

async fn tick(watchdog: &mut Option<Interval>) {
    match watchdog {
        Some(interval) => drop(interval.tick().await),
        None => std::future::pending().await,
    }
}

/// What the loop owns.
pub(crate) struct Service {
    pub(crate) engine: CoreEngine,
    pub(crate) host: Box<dyn Host>,
    pub(crate) store: StoreThread,
    pub(crate) pulse: PulseThread,
    pub(crate) clients: Hub,
    pub(crate) clock: SystemClock,
    pub(crate) metrics: Metrics,
    pub(crate) policy: PolicyState,
    /// What is read beside the loop.
    pub(crate) files: Files,
    /// The system's time zone.
    pub(crate) zone: TimeZone,
    /// When it came up.
    pub(crate) started: Now,
    /// What this daemon can't do besides what its host can't, in sentences.
    pub(crate) limitations: Vec<String>,
    /// Where the audit log is.
    pub(crate) audit_log: PathBuf,
    /// Why the store does not work, as long as it does not.
    pub(crate) store_trouble: Option<String>,
    /// What was found running when the daemon came up, and ended, because no store knew of it.
    pub(crate) strays: Vec<SessionId>,
    /// Why no sign of life can be written, as long as that is so.
    pub(crate) pulse_trouble: Option<String>,
    /// What happens when its batch is durable, in the order of the batches.
    pub(crate) waiting: VecDeque<Waiting>,
    /// Who waits for lines of the audit log, by the number of the question.
    pub(crate) audit_questions: BTreeMap<u64, RequestAddress>,
    /// Who draws timelines.
    pub(crate) timelines: Timelines,
    /// Which refusals are recorded.
    pub(crate) refusals: Refusals,
    /// What clients were told last.
    pub(crate) announced: Announced,
}

/// The policy that applies, and where it came from.
pub(crate) struct PolicyState {
    pub(crate) path: PathBuf,
    /// `None` while none could be loaded: everything is refused.
    pub(crate) source: Option<Source>,
    /// Why the file, as it is now, does not apply.
    pub(crate) rejected: Option<Rejected>,
    /// Who else can change the file, in sentences.
    pub(crate) exposed: Vec<String>,
}

/// What clients are told only when it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Announced {
    pub(crate) mode: String,
    pub(crate) clock_trusted: bool,
}

/// Whom an answer is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestAddress {
    pub(crate) client_id: ClientId,
    pub(crate) request_id: u64,
}

/// Whether the loop goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    ShutDown,
}

impl Service {
    /// Runs until a signal ends it.
    pub(crate) async fn run(mut self, mut inputs: Inputs) -> io::Result<()> {
        loop {
            let due = self.engine.next_due();
            inputs.due.arm(due)?;
            let input = inputs.next().await?;
            let now = self.clock.now();
            // The runtime looks at its timers only now and then while clients keep it busy.
            if matches!(input, Input::Client(_)) && due.is_some_and(|due| due.total() <= now.mono.total()) {
                self.handle(Input::Due, now);
            }
            if self.handle(input, now) == Next::ShutDown {
                self.shut_down(inputs).await;
                return Ok(());
            }
        }
    }

    fn handle(&mut self, input: Input, now: Now) -> Next {
        if let Some(last) = self.pulse.before_sleep(now) {
            // What was played before belongs to the day before.
            self.engine.count_until(last);
        }
        let next = self.take(input, now);
        self.pulse.take_up(self.rhythm());
        next
    }

    /// Signs of life are given while there is a session.
    pub(crate) fn rhythm(&self) -> Rhythm {
        match &self.engine.snapshot().session {
            Some(_) => Rhythm::Beating,
            None => Rhythm::Resting,
        }
    }

    fn take(&mut self, input: Input, now: Now) -> Next {
        match input {
            Input::Due | Input::ClockSet => self.tick(now),
            Input::Host(event) => self.host_event(event, now),
            Input::Store(report) => self.store_report(report, now),
            Input::Pulse(report) => self.pulse_report(report, now),
            Input::End => return Next::ShutDown,
            Input::Reload => self.read_policy(policy::Asked::Signal),
            Input::File(Change::Policy) => self.policy_file_changed(),
            Input::File(Change::Zone) => self.want(files::Wanted::Zone),
            Input::Read(read) => self.file_read(read, now),
            Input::Watchdog => crate::notify::alive(),
            Input::Client(incoming) => self.incoming(incoming, now),
        }
        Next::GoOn
    }

    fn respond(&self, to: &RequestAddress, answer: Result<Reply, ApiError>) {
        self.clients.respond(&to.client_id, to.request_id, answer);
    }

    /// The engine takes note of the moment, and does what is due.
    fn tick(&mut self, now: Now) {
        let events = self.engine.tick(now);
        self.carry_out(events, now);
    }

    /// A sign of life that can't be written is no reason to end anything. The store gets what it would have said.
    fn pulse_report(&mut self, report: PulseReport, now: Now) {
        match report {
            PulseReport::Failed { detail } => {
                if self.pulse_trouble.replace(detail.clone()).is_none() {
                    tracing::warn!(
                        detail,
                        "no sign of life can be written; use is written to the store instead"
                    );
                }
                self.engine.count_until(now);
                self.carry_out(Vec::new(), now);
            }
            PulseReport::Works => {
                self.pulse_trouble = None;
                tracing::info!("signs of life are written again");
            }
        }
    }

    fn zone_read(&mut self, zone: TimeZone, now: Now) {
        if zone != self.zone {
            self.zone.clone_from(&zone);
            let events = self.engine.zone_changed(zone, now);
            self.carry_out(events, now);
        }
    }
}
