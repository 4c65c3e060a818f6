//! Starts the daemon (S9): takes earlier sessions back, and only then accepts clients.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use shepherd_api::{AuditKind, SessionSlot};
use shepherd_core::policy::{Policy, PolicyRules};
use shepherd_core::{CoreEngine, EngineEnvironment, SessionLiveness, SessionRecord, StoredState};
use shepherd_host_api::{
    HostAdapter, HostEvent, HostEvents, HostSessionHandle, HostStopRequest, LoginMonitor as _,
};
use shepherd_host_linux::{LogindBus, LogindMonitor};
use shepherd_ipc::{AccessRules, ConnectionLimits, IpcServer, PinStore, ServerOptions};
use shepherd_store::{AuditCheck, HeartbeatFile, SqliteStore, StoreOpenReport};
use shepherd_util::{BootId, Clock, ClockReading, ErrorChain, SessionId, ShepherdPaths, SystemClock};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::file_watch::FileWatcher;
use crate::heartbeat::HeartbeatThread;
use crate::metrics::DaemonMetrics;
use crate::notify;
use crate::options::SocketAccess;
use crate::policy_copy::PolicyCopy;
use crate::policy_source::{self, PolicyWithSource, RejectedPolicyFile, StartPolicy};
use crate::query_thread::{LISTINGS, QueryThread, TIMELINES};
use crate::run::StartError;
use crate::service::{
    AnnouncedState, DAEMON_ACTOR, DaemonService, FileReadQueue, InputSources, MachineLogins, PolicyState,
    RefusalLimiter, TimeSyncCheck, read_accounts,
};
use crate::session_log_thread::SessionLogThread;
use crate::store_thread::StoreThread;
use crate::timer::{ClockSetWatcher, DueTimer};
use crate::zone;

/// The time that the host may take to find an earlier daemon's programs. It reads a few files and processes.
const REATTACH_TIMEOUT: Duration = Duration::from_secs(10);

/// The parts of a store that could be opened.
pub(crate) enum StartupStore {
    Open { store: Box<SqliteStore>, opened: StoreOpenReport, stored: Box<StoredState> },
    Unavailable(String),
}

/// Sets everything up, reattaches the earlier sessions, and opens the socket.
pub(crate) async fn start_service(
    paths: &ShepherdPaths,
    socket_access: SocketAccess,
    store: StartupStore,
    mut host: Box<dyn HostAdapter>,
    policy: StartPolicy,
) -> Result<(DaemonService, InputSources), StartError> {
    // From here on the loop handles signals.
    let end = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    let reload = signal(SignalKind::hangup())?;
    let clock = SystemClock;
    let mut host_events = host.subscribe();
    let mut monitor = LogindMonitor::start(LogindBus::System);
    let logins = monitor.subscribe();
    let (mut notes, exposed) = match &store {
        StartupStore::Open { opened, .. } => (store_notes(opened), describe_exposed_folders(opened)),
        StartupStore::Unavailable(_) => Default::default(),
    };
    let boot = BootId::read()?;
    let (pulse, pulse_reports) = HeartbeatThread::start(boot, HeartbeatFile::in_folder(&paths.data))?;
    let (stored, store_trouble, (store, store_reports)) = start_store_thread(paths, store)?;
    let (applies, source) = match policy.applies {
        Some(PolicyWithSource { policy, source }) => (policy, Some(source)),
        None => (deny_all_policy(), None),
    };
    host.apply_policy(&applies);
    let zone = zone::read_system_zone();
    let place = EngineEnvironment { boot, zone: zone.clone() };
    let engine = CoreEngine::new(applies, stored, host.capabilities(), place);
    let (file_read, read) = unbounded_channel();
    // Only root and our own user have access until the policy names others.
    let nobody = AccessRules { owner_uid: rustix::process::geteuid().as_raw(), ..AccessRules::default() };
    let nobody = Arc::new(nobody);
    let options = ServerOptions {
        socket: paths.socket.clone(),
        mode: socket_access.mode,
        group: socket_access.group,
        daemon_version: env!("CARGO_PKG_VERSION").to_owned(),
        limits: ConnectionLimits::default(),
    };
    let (pin, pin_trouble) = open_pin(paths.data.join("pin"));
    notes.extend(pin_trouble);
    let server = IpcServer::bind(options, Arc::<AccessRules>::clone(&nobody), pin)?;
    let (files, unwatched) = FileWatcher::new(&paths.policy)?;
    let limitations: Vec<String> = exposed.into_iter().chain(unwatched).collect();
    notes.extend(host.limitations().into_iter().chain(limitations.iter().cloned()));
    let policy_exposed = policy_source::policy_exposure_warnings(&paths.policy);
    notes.extend(policy_exposed.iter().chain(&policy.copy_fault).cloned());
    let launch_fault = host.launch_fault();
    notes.extend(launch_fault.clone());
    let liveness = reattach_sessions(&engine, &mut *host, &mut host_events).await;
    let now = clock.now();
    let announced = AnnouncedState::of(&engine, now);
    let mut service = DaemonService {
        data_folder: paths.data.clone(),
        engine,
        host,
        logins: MachineLogins::new(Box::new(monitor)),
        store,
        heartbeat: pulse,
        clients: server.hub().clone(),
        access: nobody,
        clock,
        time_sync: TimeSyncCheck::default(),
        metrics: DaemonMetrics::new(),
        policy: PolicyState {
            path: paths.policy.clone(),
            copy: PolicyCopy::new(&paths.data, &paths.policy),
            copy_fault: policy.copy_fault,
            source,
            rejected: policy.rejected,
            exposed: policy_exposed,
            account_faults: Vec::new(),
            login_fault: None,
        },
        file_reads: FileReadQueue::new(file_read),
        zone,
        started: now,
        limitations,
        launch_fault,
        audit_log: shepherd_store::audit_log_path(&paths.data),
        stopped_strays: Vec::new(),
        heartbeat_error: None,
        pending_commits: Default::default(),
        audit_queries: Default::default(),
        listing_thread: QueryThread::start(&LISTINGS, server.hub().clone())?,
        timeline_thread: QueryThread::start(&TIMELINES, server.hub().clone())?,
        session_log_thread: SessionLogThread::start(paths.data.clone(), server.hub().clone())?,
        refusals: RefusalLimiter::new(),
        announced,
    };
    if let Some(trouble) = store_trouble {
        let effects = service.engine.store_failed(trouble);
        service.carry_out(effects, now);
    }
    service.finish_startup(&liveness, notes, now);
    let inputs = InputSources {
        due: DueTimer::new()?,
        clock: ClockSetWatcher::new()?,
        host: host_events,
        logins,
        store: store_reports,
        heartbeat: pulse_reports,
        clients: server,
        terminate_signals: end,
        reload_signal: reload,
        file_watch: files,
        file_results: read,
        watchdog: notify::watchdog_interval(),
    };
    Ok((service, inputs))
}

type StoreThreadHandles = (StoreThread, UnboundedReceiver<crate::store_thread::StoreReport>);

/// Returns the stored state. Without a store nothing is known, and nothing is granted.
fn start_store_thread(
    paths: &ShepherdPaths,
    store: StartupStore,
) -> Result<(StoredState, Option<String>, StoreThreadHandles), StartError> {
    match store {
        StartupStore::Open { store, stored, .. } => {
            Ok((*stored, None, StoreThread::start(paths.data.clone(), Some(*store))?))
        }
        StartupStore::Unavailable(trouble) => {
            tracing::error!("nothing is granted: {trouble}");
            Ok((StoredState::default(), Some(trouble), StoreThread::start(paths.data.clone(), None)?))
        }
    }
}

/// Loads the PIN. If it can't be read, the daemon runs, but accepts no PIN until root sets another.
fn open_pin(path: PathBuf) -> (PinStore, Option<String>) {
    match PinStore::open(path.clone()) {
        Ok(pin) => (pin, None),
        Err(error) => {
            let text =
                format!("{}; until root sets another PIN, only root is an administrator", ErrorChain(&error));
            (PinStore::new_locked(path), Some(text))
        }
    }
}

fn store_notes(opened: &StoreOpenReport) -> Vec<String> {
    let created = "a new store was created, so there is no earlier usage";
    let unchecked =
        "the audit log is long, so only its end was verified; `shepherd audit verify` checks all of it";
    let migrated = |version| format!("the store was migrated from version {version}");
    let notes = [
        opened.created.then(|| created.to_owned()),
        (opened.audit_check == AuditCheck::EndOnly).then(|| unchecked.to_owned()),
        opened.migrated_from.map(migrated),
    ];
    notes.into_iter().flatten().collect()
}

/// Returns the folders through which others could replace the store.
fn describe_exposed_folders(opened: &StoreOpenReport) -> Vec<String> {
    opened.exposed.iter().map(ToString::to_string).collect()
}

/// The policy of a machine without one: nothing can be launched.
fn deny_all_policy() -> Policy {
    Policy::new(PolicyRules::default()).expect("the default rules have no references")
}

/// Asks the host for the programs of the stored sessions.
async fn reattach_sessions(
    engine: &CoreEngine,
    host: &mut dyn HostAdapter,
    events: &mut HostEvents,
) -> BTreeMap<SessionId, SessionLiveness> {
    // The host records a program before it runs; the store records it afterwards.
    let started: BTreeSet<SessionId> = host.recorded_sessions().into_iter().collect();
    let mut handles = BTreeMap::new();
    let (logins, programs): (Vec<_>, Vec<_>) =
        engine.sessions().iter().partition(|session| matches!(session.slot, SessionSlot::Login { .. }));
    for session in programs {
        let handle = session.stage.host_session_handle().unwrap_or_default().to_owned();
        let known = session.stage.host_session_handle().map(|_| HostSessionHandle::new(handle.clone()));
        host.reattach(&session.session_id, known.as_ref());
        handles.insert(session.session_id.clone(), handle);
    }
    let mut answers = BTreeMap::new();
    // A session without an answer is in doubt.
    tokio::time::timeout(REATTACH_TIMEOUT, wait_for_reattach_events(&handles, events, &mut answers))
        .await
        .ok();
    let liveness_of = |(session_id, handle): (SessionId, String)| {
        let liveness = match answers.remove(&session_id) {
            Some(ReattachAnswer::Alive { handle }) => SessionLiveness::Alive { handle },
            Some(ReattachAnswer::Gone) if started.contains(&session_id) => SessionLiveness::GoneAfterStart,
            Some(ReattachAnswer::Gone) => SessionLiveness::Gone,
            // A program that may still run counts as running: it keeps its deadline and its place. The host keeps
            // trying, and reports when the program is gone.
            None => {
                tracing::error!(%session_id, "the program may still run, but could not be reattached yet");
                SessionLiveness::Alive { handle }
            }
        };
        (session_id, liveness)
    };
    let logins = logins.into_iter().map(|login| (login.session_id.clone(), login_liveness(login, engine)));
    handles.into_iter().map(liveness_of).chain(logins).collect()
}

/// Returns whether a login may go on. logind tells later whether it does; until then, it counts.
fn login_liveness(login: &SessionRecord, engine: &CoreEngine) -> SessionLiveness {
    match login.stage.host_session_handle() {
        Some(handle) if login.boot == engine.boot() => SessionLiveness::Alive { handle: handle.to_owned() },
        Some(_) | None => SessionLiveness::GoneAfterStart,
    }
}

/// The answer of the host about a program of an earlier daemon.
enum ReattachAnswer {
    Alive { handle: String },
    Gone,
}

/// Collects what the host reports about sessions, until it has reported on each.
async fn wait_for_reattach_events(
    wanted: &BTreeMap<SessionId, String>,
    events: &mut HostEvents,
    answers: &mut BTreeMap<SessionId, ReattachAnswer>,
) {
    let mut waiting: BTreeSet<&SessionId> = wanted.keys().collect();
    while !waiting.is_empty() {
        let Some(event) = events.recv().await else { return };
        match event {
            HostEvent::Reattached { session_id, handle } => {
                waiting.remove(&session_id);
                answers.insert(session_id, ReattachAnswer::Alive { handle: handle.as_str().to_owned() });
            }
            HostEvent::Gone { session_id } => {
                waiting.remove(&session_id);
                answers.insert(session_id, ReattachAnswer::Gone);
            }
            HostEvent::ReattachPending { session_id, detail } => {
                tracing::error!(%session_id, "{detail}");
                waiting.remove(&session_id);
            }
            other => tracing::debug!(?other, "event during the reattachment of earlier sessions"),
        }
    }
}

impl DaemonService {
    /// Continues where an earlier daemon stopped, and announces it.
    fn finish_startup(
        &mut self,
        liveness: &BTreeMap<SessionId, SessionLiveness>,
        notes: Vec<String>,
        now: ClockReading,
    ) {
        let effects = self.engine.recover(liveness, now);
        self.carry_out(effects, now);
        self.heartbeat.set_mode(self.heartbeat_mode());
        self.stop_unknown_sessions(liveness);
        self.record_startup_notes(notes, now);
        if let Some(RejectedPolicyFile { rejection, .. }) = &self.policy.rejected {
            tracing::error!(faults = ?rejection.faults, "{rejection}; {}", self.policy.consequence());
            let faults = rejection.faults.clone();
            self.append_audit(DAEMON_ACTOR, AuditKind::PolicyRejected { faults }, now);
        }
        if let Some(source) = &self.policy.source {
            let entry_count = self.engine.policy().entries().len();
            let digest = Some(source.digest.clone());
            self.append_audit(DAEMON_ACTOR, AuditKind::PolicyLoaded { entry_count, digest }, now);
        }
        let faults = self.refresh_authority(&read_accounts(), now);
        self.record_access_faults(faults, now);
        self.watch_logins();
        let entry_count = self.engine.policy().entries().len();
        let status = format!("{entry_count} {}", if entry_count == 1 { "entry" } else { "entries" });
        tracing::info!(policy = %self.policy.path.display(), "ready: {status}");
        notify::ready(&status);
    }

    fn record_startup_notes(&mut self, notes: Vec<String>, now: ClockReading) {
        for text in notes {
            tracing::warn!("{text}");
            self.append_audit(DAEMON_ACTOR, AuditKind::Note { text }, now);
        }
    }

    /// Switches to a store that could not be opened before. Nothing was granted meanwhile, and the sessions that it
    /// remembers were ended when the daemon started.
    pub(crate) fn adopt_reopened_store(
        &mut self,
        stored: StoredState,
        opened: &StoreOpenReport,
        now: ClockReading,
    ) {
        self.engine.restart_from(stored);
        self.store.mark_contents_known();
        let started = self.stopped_strays.iter().cloned();
        let liveness = started.map(|session_id| (session_id, SessionLiveness::GoneAfterStart)).collect();
        let effects = self.engine.recover(&liveness, now);
        self.carry_out(effects, now);
        let exposed = describe_exposed_folders(opened);
        self.limitations.extend(exposed.iter().cloned());
        self.record_startup_notes(store_notes(opened).into_iter().chain(exposed).collect(), now);
    }

    /// Stops programs of an earlier daemon that the store doesn't know, for example after damage. Their time isn't
    /// counted, so they must end.
    fn stop_unknown_sessions(&mut self, known: &BTreeMap<SessionId, SessionLiveness>) {
        for session_id in self.host.recorded_sessions() {
            if !known.contains_key(&session_id) {
                tracing::warn!(%session_id, "stopping a program that the store doesn't know");
                self.host.reattach(&session_id, None);
                self.host.stop(HostStopRequest { session_id: session_id.clone(), grace: Duration::ZERO });
                self.stopped_strays.push(session_id);
            }
        }
    }
}
