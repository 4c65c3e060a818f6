//! The loop (S13.3b): wait for one thing, tell the engine, carry out what it says. Nothing in it waits for a disk, a
//! program or a client.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;

use jiff::tz::TimeZone;
use shepherd_api::{ApiError, CommandReply};
use shepherd_core::CoreEngine;
use shepherd_host_api::{HostAdapter, HostEvent, HostEvents};
use shepherd_ipc::{ClientHub, IncomingEvent, IpcServer};
use shepherd_util::{ClientId, Clock, ClockReading, SessionId, SystemClock};
use tokio::signal::unix::Signal;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Interval;

use crate::file_watch::{FileWatcher, WatchedFile};
use crate::heartbeat::{HeartbeatMode, HeartbeatReport, HeartbeatThread};
use crate::metrics::DaemonMetrics;
use crate::policy_source::{PolicyRejection, PolicySource};
use crate::store_thread::{StoreReport, StoreThread};
use crate::timeline_thread::TimelineThread;
use crate::timer::{ClockSetWatcher, DueTimer};

mod authority;
mod effects;
mod file_reads;
mod health;
mod host_events;
mod policy;
mod profile_choice;
mod refusals;
mod requests;
mod shut_down;

use effects::PendingCommit;
pub(crate) use file_reads::{FileReadQueue, FileReadResult, read_accounts};
pub(crate) use refusals::RefusalLimiter;

/// Everything that the loop waits for.
pub(crate) struct InputSources {
    pub(crate) due: DueTimer,
    pub(crate) clock: ClockSetWatcher,
    pub(crate) host: HostEvents,
    pub(crate) store: UnboundedReceiver<StoreReport>,
    pub(crate) heartbeat: UnboundedReceiver<HeartbeatReport>,
    pub(crate) clients: IpcServer,
    pub(crate) terminate_signals: [Signal; 2],
    pub(crate) reload_signal: Signal,
    pub(crate) file_watch: FileWatcher,
    pub(crate) file_results: UnboundedReceiver<FileReadResult>,
    pub(crate) watchdog: Option<Interval>,
}

/// One thing that happened.
enum LoopInput {
    TimerDue,
    Host(HostEvent),
    Store(StoreReport),
    Heartbeat(HeartbeatReport),
    Terminate,
    Reload,
    ClockSet,
    FileChanged(WatchedFile),
    FileRead(FileReadResult),
    Watchdog,
    Client(IncomingEvent),
}

impl InputSources {
    /// The next thing that happened. Of several, what enforces comes first and what clients want last.
    async fn next(&mut self) -> io::Result<LoopInput> {
        let Self {
            due,
            clock,
            host,
            store,
            heartbeat: pulse,
            clients,
            terminate_signals: [terminate, interrupt],
            reload_signal: reload,
            file_watch: files,
            file_results: read,
            watchdog,
        } = self;
        Ok(tokio::select! {
            biased;
            result = due.wait_until_due() => { result?; LoopInput::TimerDue }
            Some(event) = host.recv() => LoopInput::Host(event),
            Some(_) = terminate.recv() => LoopInput::Terminate,
            Some(_) = interrupt.recv() => LoopInput::Terminate,
            Some(report) = store.recv() => LoopInput::Store(report),
            Some(report) = pulse.recv() => LoopInput::Heartbeat(report),
            result = clock.wait_until_set() => { result?; LoopInput::ClockSet }
            _ = watchdog_tick(watchdog) => LoopInput::Watchdog,
            Some(_) = reload.recv() => LoopInput::Reload,
            Some(read) = read.recv() => LoopInput::FileRead(read),
            change = files.next_change() => LoopInput::FileChanged(change?),
            Some(incoming) = clients.next_event() => LoopInput::Client(incoming),
        })
    }
}

async fn watchdog_tick(watchdog: &mut Option<Interval>) {
    match watchdog {
        Some(interval) => drop(interval.tick().await),
        None => std::future::pending().await,
    }
}

/// What the loop owns.
pub(crate) struct DaemonService {
    pub(crate) engine: CoreEngine,
    pub(crate) host: Box<dyn HostAdapter>,
    pub(crate) store: StoreThread,
    pub(crate) heartbeat: HeartbeatThread,
    pub(crate) clients: ClientHub,
    pub(crate) clock: SystemClock,
    pub(crate) metrics: DaemonMetrics,
    pub(crate) policy: PolicyState,
    /// What is read beside the loop.
    pub(crate) file_reads: FileReadQueue,
    /// The system's time zone.
    pub(crate) zone: TimeZone,
    /// When it came up.
    pub(crate) started: ClockReading,
    /// What this daemon can't do besides what its host can't, in sentences.
    pub(crate) limitations: Vec<String>,
    /// Where the audit log is.
    pub(crate) audit_log: PathBuf,
    /// Why the store does not work, as long as it does not.
    pub(crate) store_error: Option<String>,
    /// What was found running when the daemon came up, and ended, because no store knew of it.
    pub(crate) stopped_strays: Vec<SessionId>,
    /// Why no sign of life can be written, as long as that is so.
    pub(crate) heartbeat_error: Option<String>,
    /// What happens when its batch is durable, in the order of the batches.
    pub(crate) pending_commits: VecDeque<PendingCommit>,
    /// Who waits for lines of the audit log, by the number of the question.
    pub(crate) audit_queries: BTreeMap<u64, RequestAddress>,
    /// Who draws timelines.
    pub(crate) timeline_thread: TimelineThread,
    /// Which refusals are recorded.
    pub(crate) refusals: RefusalLimiter,
    /// What clients were told last.
    pub(crate) announced: AnnouncedState,
}

/// The policy that applies, and where it came from.
pub(crate) struct PolicyState {
    pub(crate) path: PathBuf,
    /// `None` while none could be loaded: everything is refused.
    pub(crate) source: Option<PolicySource>,
    /// Why the file, as it is now, does not apply.
    pub(crate) rejected: Option<PolicyRejection>,
    /// Who else can change the file, in sentences.
    pub(crate) exposed: Vec<String>,
}

/// What clients are told only when it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnnouncedState {
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
enum LoopControl {
    Continue,
    ShutDown,
}

impl DaemonService {
    /// Runs until a signal ends it.
    pub(crate) async fn run(mut self, mut inputs: InputSources) -> io::Result<()> {
        loop {
            let due = self.engine.next_due();
            inputs.due.arm(due)?;
            let input = inputs.next().await?;
            let now = self.clock.now();
            // The runtime looks at its timers only now and then while clients keep it busy.
            if matches!(input, LoopInput::Client(_)) && due.is_some_and(|due| due.total() <= now.mono.total())
            {
                self.handle(LoopInput::TimerDue, now);
            }
            if self.handle(input, now) == LoopControl::ShutDown {
                self.shut_down(inputs).await;
                return Ok(());
            }
        }
    }

    fn handle(&mut self, input: LoopInput, now: ClockReading) -> LoopControl {
        if let Some(last) = self.heartbeat.take_beat_before_sleep(now) {
            // What was played before belongs to the day before.
            self.engine.count_usage_until(last);
        }
        let next = self.dispatch(input, now);
        self.heartbeat.set_mode(self.heartbeat_mode());
        next
    }

    /// Signs of life are given while there is a session.
    pub(crate) fn heartbeat_mode(&self) -> HeartbeatMode {
        match &self.engine.snapshot().session {
            Some(_) => HeartbeatMode::Active,
            None => HeartbeatMode::Paused,
        }
    }

    fn dispatch(&mut self, input: LoopInput, now: ClockReading) -> LoopControl {
        match input {
            LoopInput::TimerDue | LoopInput::ClockSet => self.tick(now),
            LoopInput::Host(event) => self.handle_host_event(event, now),
            LoopInput::Store(report) => self.handle_store_report(report, now),
            LoopInput::Heartbeat(report) => self.handle_heartbeat_report(report, now),
            LoopInput::Terminate => return LoopControl::ShutDown,
            LoopInput::Reload => self.request_policy_read(policy::PolicyRequester::Signal),
            LoopInput::FileChanged(WatchedFile::Policy) => self.policy_file_changed(),
            LoopInput::FileChanged(WatchedFile::Zone) => {
                self.request_file_read(file_reads::FileReadRequest::Zone);
            }
            LoopInput::FileRead(read) => self.handle_file_read(read, now),
            LoopInput::Watchdog => crate::notify::ping_watchdog(),
            LoopInput::Client(incoming) => self.handle_incoming(incoming, now),
        }
        LoopControl::Continue
    }

    fn respond(&self, to: &RequestAddress, answer: Result<CommandReply, ApiError>) {
        self.clients.respond(&to.client_id, to.request_id, answer);
    }

    /// The engine takes note of the moment, and does what is due.
    fn tick(&mut self, now: ClockReading) {
        let events = self.engine.tick(now);
        self.apply_events(events, now);
    }

    /// A sign of life that can't be written is no reason to end anything. The store gets what it would have said.
    fn handle_heartbeat_report(&mut self, report: HeartbeatReport, now: ClockReading) {
        match report {
            HeartbeatReport::Failed { detail } => {
                if self.heartbeat_error.replace(detail.clone()).is_none() {
                    tracing::warn!(
                        detail,
                        "no sign of life can be written; use is written to the store instead"
                    );
                }
                self.engine.count_usage_until(now);
                self.apply_events(Vec::new(), now);
            }
            HeartbeatReport::Recovered => {
                self.heartbeat_error = None;
                tracing::info!("signs of life are written again");
            }
        }
    }

    fn apply_time_zone(&mut self, zone: TimeZone, now: ClockReading) {
        if zone != self.zone {
            self.zone.clone_from(&zone);
            let events = self.engine.zone_changed(zone, now);
            self.apply_events(events, now);
        }
    }
}
