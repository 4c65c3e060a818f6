//! Coming up (S9): what was there before is taken back, and only then is anybody heard.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use shepherd_api::AuditKind;
use shepherd_core::policy::{Policy, Rules};
use shepherd_core::{CoreEngine, Place, SessionFate, StoredState};
use shepherd_host_api::{Host, HostEvent, HostEvents, HostSessionHandle, StopOrder};
use shepherd_ipc::{Authority, Limits, PinKeeper, Server, ServerOptions};
use shepherd_store::{AuditCheck, Opened, PulseFile, SqliteStore};
use shepherd_util::{BootId, Chain, Clock, Now, Paths, SessionId, SystemClock};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::metrics::Metrics;
use crate::notify;
use crate::options::Knocking;
use crate::policy_source::{self, Loaded, Rejected};
use crate::pulse::PulseThread;
use crate::run::StartError;
use crate::service::{Announced, Files, Inputs, PolicyState, Refusals, Service, accounts};
use crate::store_thread::StoreThread;
use crate::timelines::Timelines;
use crate::timer::{ClockWatch, DueTimer};
use crate::watch::Watch;
use crate::zone;

/// How long the host may take to find an earlier daemon's program. It looks at a few files and processes.
const FIND: Duration = Duration::from_secs(10);

/// The daemon itself, in the audit log.
const DAEMON: &str = "shepherdd";

/// What could be had of a store.
pub(crate) enum Store {
    Open { store: Box<SqliteStore>, opened: Opened, stored: Box<StoredState> },
    Broken(String),
}

/// Everything in its place, what was there before taken back, the socket open.
pub(crate) async fn begin(
    paths: &Paths,
    knocking: Knocking,
    store: Store,
    mut host: Box<dyn Host>,
    policy: Result<Loaded, Rejected>,
) -> Result<(Service, Inputs), StartError> {
    // From here on signals are taken as they are meant.
    let end = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    let reload = signal(SignalKind::hangup())?;
    let clock = SystemClock;
    let mut host_events = host.subscribe();
    let (mut notes, exposed) = match &store {
        Store::Open { opened, .. } => (store_notes(opened), exposed(opened)),
        Store::Broken(_) => Default::default(),
    };
    let boot = BootId::read()?;
    let (pulse, pulse_reports) = PulseThread::start(boot, PulseFile::in_folder(&paths.data))?;
    let (stored, store_trouble, (store, store_reports)) = keep(paths, store)?;
    let (applies, source, rejected) = match policy {
        Ok(Loaded { policy, source }) => (policy, Some(source), None),
        Err(rejected) => (nothing_allowed(), None, Some(rejected)),
    };
    host.policy_changed(&applies);
    let zone = zone::system();
    let place = Place { boot, zone: zone.clone() };
    let mut engine = CoreEngine::new(applies, stored, host.capabilities(), place);
    if let Some(trouble) = &store_trouble {
        engine.store_failed(trouble.clone());
    }
    let (file_read, read) = unbounded_channel();
    // Nobody but root and our own user, until the policy says who else.
    let nobody = Authority { owner_uid: rustix::process::geteuid().as_raw(), ..Authority::default() };
    let options = ServerOptions {
        socket: paths.socket.clone(),
        mode: knocking.mode,
        group: knocking.group,
        daemon_version: env!("CARGO_PKG_VERSION").to_owned(),
        limits: Limits::default(),
    };
    let (pin, pin_trouble) = open_pin(paths.data.join("pin"));
    notes.extend(pin_trouble);
    let server = Server::bind(options, Arc::new(nobody), pin)?;
    let (files, unwatched) = Watch::new(&paths.policy)?;
    let limitations: Vec<String> = exposed.into_iter().chain(unwatched).collect();
    notes.extend(host.limitations().into_iter().chain(limitations.iter().cloned()));
    let policy_exposed = policy_source::exposed_policy(&paths.policy);
    notes.extend(policy_exposed.iter().cloned());
    let fate = find_session(&engine, &mut *host, &mut host_events).await;
    let now = clock.now();
    let state = engine.get_state(now);
    let mut service = Service {
        engine,
        host,
        store,
        pulse,
        clients: server.hub().clone(),
        clock,
        metrics: Metrics::new(),
        policy: PolicyState { path: paths.policy.clone(), source, rejected, exposed: policy_exposed },
        files: Files::new(file_read),
        zone,
        started: now,
        limitations,
        audit_log: shepherd_store::audit_log_path(&paths.data),
        store_trouble,
        strays: Vec::new(),
        pulse_trouble: None,
        waiting: Default::default(),
        audit_questions: Default::default(),
        timelines: Timelines::start(server.hub().clone())?,
        refusals: Refusals::new(),
        announced: Announced { mode: state.mode, clock_trusted: state.clock_trusted },
    };
    service.come_up(fate, notes, now);
    let inputs = Inputs {
        due: DueTimer::new()?,
        clock: ClockWatch::new()?,
        host: host_events,
        store: store_reports,
        pulse: pulse_reports,
        clients: server,
        end,
        reload,
        files,
        read,
        watchdog: notify::watchdog(),
    };
    Ok((service, inputs))
}

type StoreEnds = (StoreThread, UnboundedReceiver<crate::store_thread::Report>);

/// What the store knows. If there is none, nothing is known, and nothing is granted.
fn keep(paths: &Paths, store: Store) -> Result<(StoredState, Option<String>, StoreEnds), StartError> {
    match store {
        Store::Open { store, stored, .. } => {
            Ok((*stored, None, StoreThread::start(paths.data.clone(), Some(*store))?))
        }
        Store::Broken(trouble) => {
            tracing::error!("nothing is granted, because {trouble}");
            Ok((StoredState::default(), Some(trouble), StoreThread::start(paths.data.clone(), None)?))
        }
    }
}

/// A PIN that can't be read is no reason not to run, and none to run without.
fn open_pin(path: PathBuf) -> (PinKeeper, Option<String>) {
    match PinKeeper::open(path.clone()) {
        Ok(pin) => (pin, None),
        Err(error) => {
            let text = format!("{}; until root sets another, nobody else is an administrator", Chain(&error));
            (PinKeeper::locked(path), Some(text))
        }
    }
}

fn store_notes(opened: &Opened) -> Vec<String> {
    let created = "a new store was made; nothing is known of earlier usage";
    let unchecked = "the audit log is long, so that only its end was checked; run `shepherd audit verify`";
    let migrated = |version| format!("the store was brought up to date from version {version}");
    let notes = [
        opened.created.then(|| created.to_owned()),
        (opened.audit_check == AuditCheck::End).then(|| unchecked.to_owned()),
        opened.migrated_from.map(migrated),
    ];
    notes.into_iter().flatten().collect()
}

/// Folders through which others could replace the store.
fn exposed(opened: &Opened) -> Vec<String> {
    opened.exposed.iter().map(ToString::to_string).collect()
}

/// The policy of a machine that has none: nothing can be launched.
fn nothing_allowed() -> Policy {
    Policy::new(Rules::default()).expect("the default rules name nothing that could be missing")
}

/// Asks the host for the program of the session that the store remembers.
async fn find_session(engine: &CoreEngine, host: &mut dyn Host, events: &mut HostEvents) -> SessionFate {
    let Some(session) = &engine.snapshot().session else { return SessionFate::Gone };
    // The host writes a program down before it lets it run, and the store hears of it afterwards.
    let was_started = host.earlier_sessions().contains(&session.session_id);
    let gone = if was_started { SessionFate::GoneUnseen } else { SessionFate::Gone };
    let handle = session.stage.host_session_handle().map(|handle| HostSessionHandle::new(handle.to_owned()));
    host.reattach(&session.session_id, handle.as_ref());
    let found = tokio::time::timeout(FIND, answer_about(&session.session_id, events)).await;
    match found {
        Ok(Some(HostEvent::Reattached { handle, .. })) => {
            SessionFate::Alive { handle: handle.as_str().to_owned() }
        }
        Ok(Some(HostEvent::Gone { .. })) => gone,
        // What may still run counts as if it did: its end stands, and nothing else is launched. The host goes on
        // looking, and says so when it is gone.
        doubt => {
            let session_id = &session.session_id;
            tracing::error!(%session_id, ?doubt, "nobody knows whether its program still runs");
            SessionFate::Alive {
                handle: handle.map_or_else(String::new, |handle| handle.as_str().to_owned()),
            }
        }
    }
}

/// What the host says of a session, unless it has left.
async fn answer_about(wanted: &SessionId, events: &mut HostEvents) -> Option<HostEvent> {
    loop {
        match events.recv().await? {
            event @ (HostEvent::Reattached { .. } | HostEvent::Gone { .. } | HostEvent::InDoubt { .. })
                if event.session_id() == Some(wanted) =>
            {
                return Some(event);
            }
            other => tracing::debug!(?other, "while an earlier session was looked for"),
        }
    }
}

impl Service {
    /// Goes on from where an earlier daemon was, and tells everybody who waits for it.
    fn come_up(&mut self, fate: SessionFate, notes: Vec<String>, now: Now) {
        let remembered = self.engine.snapshot().session.as_ref().map(|session| session.session_id.clone());
        let events = self.engine.recover(fate, now);
        self.carry_out(events, now);
        self.pulse.take_up(self.rhythm());
        self.end_strays(remembered.as_ref());
        self.put_on_record(notes, now);
        match (&self.policy.source, &self.policy.rejected) {
            (Some(source), _) => {
                let entry_count = self.engine.policy().entries().len();
                let digest = Some(source.digest.clone());
                self.note(DAEMON, AuditKind::PolicyLoaded { entry_count, digest }, now);
            }
            (None, Some(rejected)) => {
                tracing::error!(faults = ?rejected.faults, "everything is refused, because {rejected}");
                let faults = rejected.faults.clone();
                self.note(DAEMON, AuditKind::PolicyRejected { faults }, now);
            }
            (None, None) => {}
        }
        self.renew_authority(&accounts(), now);
        let status = format!("{} entries", self.engine.policy().entries().len());
        tracing::info!(policy = %self.policy.path.display(), "ready: {status}");
        notify::ready(&status);
        crate::sys::give_memory_back();
    }

    fn put_on_record(&mut self, notes: Vec<String>, now: Now) {
        for text in notes {
            tracing::warn!("{text}");
            self.note(DAEMON, AuditKind::Note { text }, now);
        }
    }

    /// A store could be opened that could not be before: from now on everything goes by what it knows. Nothing was
    /// granted meanwhile, and what it thinks is running was ended when the daemon came up.
    pub(crate) fn store_opened(&mut self, stored: StoredState, opened: &Opened, now: Now) {
        self.engine.begin_again(stored);
        self.store.adopted();
        if let Some(trouble) = &self.store_trouble {
            // Until something could be written.
            self.engine.store_failed(trouble.clone());
        }
        let remembered = self.engine.snapshot().session.as_ref().map(|session| &session.session_id);
        let was_started = remembered.is_some_and(|session_id| self.strays.contains(session_id));
        let fate = if was_started { SessionFate::GoneUnseen } else { SessionFate::Gone };
        let events = self.engine.recover(fate, now);
        self.carry_out(events, now);
        let exposed = exposed(opened);
        self.limitations.extend(exposed.iter().cloned());
        self.put_on_record(store_notes(opened).into_iter().chain(exposed).collect(), now);
    }

    /// Programs that an earlier daemon started and the store does not know: it may have been damaged. Nobody counts
    /// their time, so they end.
    fn end_strays(&mut self, remembered: Option<&SessionId>) {
        for session_id in self.host.earlier_sessions() {
            if Some(&session_id) != remembered {
                tracing::warn!(%session_id, "a program that nobody remembers is ended");
                self.host.reattach(&session_id, None);
                self.host.stop(StopOrder { session_id: session_id.clone(), grace: Duration::ZERO });
                self.strays.push(session_id);
            }
        }
    }
}
