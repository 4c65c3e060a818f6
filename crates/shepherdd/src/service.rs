//! The daemon's loop (S13.3b): wait for one input, report it to the engine, carry out the effects that it returns.
//! Nothing in the loop waits for a disk, a program or a client.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use shepherd_api::{ApiError, CommandReply};
use shepherd_core::CoreEngine;
use shepherd_host_api::{HostAdapter, HostEvent, HostEvents, LoginEvent, LoginEvents};
use shepherd_ipc::{AccessRules, ClientHub, IncomingEvent, IpcServer};
use shepherd_util::{ClientId, Clock, ClockReading, SessionId, SystemClock};
use tokio::signal::unix::Signal;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Interval;

use crate::file_watch::{FileWatcher, WatchedFile};
use crate::heartbeat::{HeartbeatMode, HeartbeatReport, HeartbeatThread};
use crate::metrics::DaemonMetrics;
use crate::policy_copy::PolicyCopy;
use crate::policy_source::{PolicySource, RejectedPolicyFile};
use crate::query_thread::QueryThread;
use crate::session_log_thread::SessionLogThread;
use crate::store_thread::{StoreReport, StoreThread};
use crate::timer::{ClockSetWatcher, DueTimer};

mod authority;
mod effects;
mod file_reads;
mod health;
mod host_events;
mod logins;
mod policy;
mod profile_choice;
mod refusals;
mod requests;
mod shut_down;
mod time_sync;
mod wording;

use effects::PendingCommit;
pub(crate) use file_reads::{FileReadQueue, FileReadResult, read_accounts};
pub(crate) use logins::MachineLogins;
pub(crate) use refusals::RefusalLimiter;
pub(crate) use time_sync::{TimeSyncCheck, TimeSyncSource};

/// The sources of everything that the loop waits for.
pub(crate) struct InputSources {
    pub(crate) due: DueTimer,
    pub(crate) clock: ClockSetWatcher,
    pub(crate) host: HostEvents,
    pub(crate) logins: LoginEvents,
    pub(crate) store: UnboundedReceiver<StoreReport>,
    pub(crate) heartbeat: UnboundedReceiver<HeartbeatReport>,
    pub(crate) clients: IpcServer,
    pub(crate) terminate_signals: [Signal; 2],
    pub(crate) reload_signal: Signal,
    pub(crate) file_watch: FileWatcher,
    pub(crate) file_results: UnboundedReceiver<FileReadResult>,
    pub(crate) watchdog: Option<Interval>,
}

/// One input of the loop.
enum LoopInput {
    TimerDue,
    Host(HostEvent),
    Login(LoginEvent),
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
    /// Waits for the next input. Of several, those that enforce the policy come first and those of clients last.
    async fn next(&mut self) -> io::Result<LoopInput> {
        let Self {
            due,
            clock,
            host,
            logins,
            store,
            heartbeat,
            clients,
            terminate_signals: [terminate, interrupt],
            reload_signal,
            file_watch,
            file_results,
            watchdog,
        } = self;
        Ok(tokio::select! {
            biased;
            result = due.wait_until_due() => { result?; LoopInput::TimerDue }
            Some(event) = host.recv() => LoopInput::Host(event),
            Some(event) = logins.recv() => LoopInput::Login(event),
            Some(_) = terminate.recv() => LoopInput::Terminate,
            Some(_) = interrupt.recv() => LoopInput::Terminate,
            Some(report) = store.recv() => LoopInput::Store(report),
            Some(report) = heartbeat.recv() => LoopInput::Heartbeat(report),
            result = clock.wait_until_set() => { result?; LoopInput::ClockSet }
            _ = watchdog_tick(watchdog) => LoopInput::Watchdog,
            Some(_) = reload_signal.recv() => LoopInput::Reload,
            Some(read) = file_results.recv() => LoopInput::FileRead(read),
            change = file_watch.next_change() => LoopInput::FileChanged(change?),
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

/// The actor in audit lines about what the daemon does by itself.
pub(crate) const DAEMON_ACTOR: &str = "shepherdd";

/// The time after which the work of the start is done: the first writes to the store, and the first clients.
const START_WORK_TIME: Duration = Duration::from_secs(1);

/// The state that the loop owns.
pub(crate) struct DaemonService {
    /// The folder of the daemon's records.
    pub(crate) data_folder: PathBuf,
    pub(crate) engine: CoreEngine,
    pub(crate) host: Box<dyn HostAdapter>,
    pub(crate) logins: MachineLogins,
    pub(crate) store: StoreThread,
    pub(crate) heartbeat: HeartbeatThread,
    pub(crate) clients: ClientHub,
    /// The roles and profiles of accounts, as the clients have them.
    pub(crate) access: Arc<AccessRules>,
    pub(crate) clock: SystemClock,
    pub(crate) time_sync: TimeSyncCheck,
    pub(crate) metrics: DaemonMetrics,
    pub(crate) policy: PolicyState,
    pub(crate) file_reads: FileReadQueue,
    /// The system's time zone.
    pub(crate) zone: TimeZone,
    pub(crate) started: ClockReading,
    /// Sentences about what this daemon can't do, besides the limitations of its host.
    pub(crate) limitations: Vec<String>,
    /// The reason why no program can be started, until one starts all the same.
    pub(crate) launch_fault: Option<String>,
    /// The path of the audit log.
    pub(crate) audit_log: PathBuf,
    /// Sessions that were found running at startup and stopped, because the store didn't know them.
    pub(crate) stopped_strays: Vec<SessionId>,
    /// The reason why heartbeats can't be written, while they can't.
    pub(crate) heartbeat_error: Option<String>,
    /// Changes that wait until their batch is durable, in the order of the batches.
    pub(crate) pending_commits: VecDeque<PendingCommit>,
    /// Clients that wait for lines of the audit log, by query id.
    pub(crate) audit_queries: BTreeMap<u64, RequestAddress>,
    pub(crate) listing_thread: QueryThread,
    pub(crate) timeline_thread: QueryThread,
    pub(crate) session_log_thread: SessionLogThread,
    pub(crate) refusals: RefusalLimiter,
    pub(crate) announced: AnnouncedState,
}

/// The policy that applies, and its source.
pub(crate) struct PolicyState {
    pub(crate) path: PathBuf,
    /// The copy of the last valid policy.
    pub(crate) copy: PolicyCopy,
    /// The reason why the copy can't be written or used.
    pub(crate) copy_fault: Option<String>,
    /// `None` while no policy could be loaded; every launch is denied then.
    pub(crate) source: Option<PolicySource>,
    /// The reason why the present file doesn't apply.
    pub(crate) rejected: Option<RejectedPolicyFile>,
    /// Sentences about other users who can change the file.
    pub(crate) exposed: Vec<String>,
    /// Sentences about accounts that the policy needs and doesn't name, or that don't exist.
    pub(crate) account_faults: Vec<String>,
    /// The reason why nobody would be refused to log in while no daemon runs.
    pub(crate) login_fault: Option<String>,
}

impl PolicyState {
    /// Describes the consequence of a rejected file.
    pub(crate) fn consequence(&self) -> &'static str {
        match self.source {
            Some(_) => "the old rules still apply",
            None => "there are no old rules, so every launch is denied",
        }
    }
}

/// The part of the state that was last sent to clients, and is sent again only when it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnnouncedState {
    pub(crate) mode: String,
    pub(crate) clock_trusted: bool,
}

impl AnnouncedState {
    pub(crate) fn of(engine: &CoreEngine, now: ClockReading) -> Self {
        Self { mode: engine.mode(now).to_owned(), clock_trusted: engine.is_clock_trusted(now) }
    }
}

/// The client and the request that a reply belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestAddress {
    pub(crate) client_id: ClientId,
    pub(crate) request_id: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoopControl {
    Continue,
    ShutDown,
}

impl DaemonService {
    /// Runs until a signal ends the daemon.
    pub(crate) async fn run(mut self, mut inputs: InputSources) -> io::Result<()> {
        tokio::spawn(async {
            tokio::time::sleep(START_WORK_TIME).await;
            crate::sys::release_free_memory();
        });
        loop {
            let due = self.next_due();
            inputs.due.arm(due)?;
            let input = inputs.next().await?;
            let now = self.clock.now();
            // While clients keep the runtime busy, it checks its timers only now and then.
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
            // Usage before the machine was suspended belongs to the day on which it happened.
            self.engine.count_usage_until(last);
        }
        // Questions of clients are frequent, and a trusted clock can wait for another input.
        if !matches!(input, LoopInput::Client(_)) || !self.engine.is_clock_trusted(now) {
            self.check_time_sync(now);
        }
        let next = self.dispatch(input, now);
        self.heartbeat.set_mode(self.heartbeat_mode());
        next
    }

    /// Returns the heartbeat mode: heartbeats are written while there is a session.
    pub(crate) fn heartbeat_mode(&self) -> HeartbeatMode {
        if self.engine.sessions().is_empty() { HeartbeatMode::Paused } else { HeartbeatMode::Active }
    }

    fn dispatch(&mut self, input: LoopInput, now: ClockReading) -> LoopControl {
        match input {
            LoopInput::TimerDue | LoopInput::ClockSet => self.tick(now),
            LoopInput::Host(event) => self.handle_host_event(event, now),
            LoopInput::Login(event) => self.handle_login_event(event, now),
            LoopInput::Store(report) => self.handle_store_report(report, now),
            LoopInput::Heartbeat(report) => self.handle_heartbeat_report(report, now),
            LoopInput::Terminate => return LoopControl::ShutDown,
            LoopInput::Reload => self.request_policy_read(policy::PolicyRequester::Signal),
            LoopInput::FileChanged(WatchedFile::Policy) => self.policy_file_changed(),
            LoopInput::FileChanged(WatchedFile::Zone) => {
                self.request_file_read(file_reads::FileReadRequest::Zone);
            }
            LoopInput::FileChanged(WatchedFile::Accounts) => {
                self.request_file_read(file_reads::FileReadRequest::Accounts);
            }
            LoopInput::FileRead(read) => self.handle_file_read(read, now),
            LoopInput::Watchdog => crate::notify::ping_watchdog(),
            LoopInput::Client(incoming) => self.handle_incoming(incoming, now),
        }
        LoopControl::Continue
    }

    fn respond(&self, to: &RequestAddress, reply: Result<CommandReply, ApiError>) {
        self.clients.respond(&to.client_id, to.request_id, reply);
    }

    fn tick(&mut self, now: ClockReading) {
        let effects = self.engine.tick(now);
        self.carry_out(effects, now);
    }

    /// Writes usage to the store while heartbeats can't be written. That is no reason to end a session.
    fn handle_heartbeat_report(&mut self, report: HeartbeatReport, now: ClockReading) {
        match report {
            HeartbeatReport::Failed { detail } => {
                if self.heartbeat_error.replace(detail.clone()).is_none() {
                    tracing::warn!(
                        "could not write the heartbeat: {detail}; usage goes to the store instead"
                    );
                }
                let effects = self.engine.checkpoint_usage(now);
                self.carry_out(effects, now);
            }
            HeartbeatReport::Recovered => {
                self.heartbeat_error = None;
                tracing::info!("heartbeats are written again");
            }
        }
    }

    fn apply_time_zone(&mut self, zone: TimeZone, now: ClockReading) {
        if zone != self.zone {
            self.zone.clone_from(&zone);
            let effects = self.engine.zone_changed(zone, now);
            self.carry_out(effects, now);
        }
    }
}
