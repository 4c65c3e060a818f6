//! The host adapter: passes each request to the thread that carries it out, and returns.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use shepherd_core::policy::{Policy, WindowDisplay};
use shepherd_host_api::{
    HostAdapter, HostCapabilities, HostEvents, HostSessionHandle, HostSpawnRequest, HostStopRequest,
    SpawnFailure,
};
use shepherd_util::SessionId;
use tokio::sync::mpsc::unbounded_channel;
use ward_process::{Containment, Supervisor};

use crate::background_thread::spawn_thread;
use crate::capability;
use crate::cleanup;
use crate::launch_command::LaunchResources;
use crate::mailbox::{MailboxSender, mailbox};
use crate::options::{HostSetupError, LinuxHostOptions};
use crate::reattach_job::ReattachJob;
use crate::start_job::StartJob;
use crate::start_permission::{StartPermit, start_permission};
use crate::state_folder::StateFolder;
use crate::sway::WindowControl;
use crate::trial_launch;
use crate::unresolved::UnresolvedSessions;
use crate::worker::{SessionWorker, WorkerChannels, WorkerMessage};

/// The host adapter that runs entries on this machine.
///
/// When the host is dropped, its programs keep running. A later host with the same state folder can reattach them.
pub struct LinuxHost {
    options: Arc<LinuxHostOptions>,
    supervisor: Arc<Supervisor>,
    folder: StateFolder,
    resources: Arc<LaunchResources>,
    /// The stream for the first subscriber, so that events before the subscription are not lost.
    events: Option<HostEvents>,
    limitations: Vec<String>,
    launch_fault: Option<String>,
    window_control: WindowControl,
    unresolved: UnresolvedSessions,
    /// The starts that are prepared and not permitted yet.
    prepared: BTreeMap<SessionId, StartPermit>,
    worker_mailbox: MailboxSender<WorkerMessage>,
    worker: Option<JoinHandle<()>>,
    cleanup: Option<JoinHandle<()>>,
}

impl LinuxHost {
    /// Finds out what this machine can do, and starts the threads.
    ///
    /// # Errors
    /// Fails if the containment is not available, or the state folder can't be created.
    pub fn new(options: LinuxHostOptions) -> Result<Self, HostSetupError> {
        let probe = ward_process::probe();
        let supervisor =
            Arc::new(Supervisor::with_containment(options.containment.unwrap_or_else(|| probe.strongest()))?);
        let folder = StateFolder::open(&options.state_folder)?;
        let limitations = capability::limitations(supervisor.containment(), &probe, &options);
        let launch_fault = trial_launch::find_launch_fault(&supervisor, &options);
        let (sender, events) = unbounded_channel();
        let (remains, cleanup) = cleanup::start_thread(folder.clone()).map_err(HostSetupError::Threads)?;
        let (worker_mailbox, inbox) = mailbox().map_err(HostSetupError::Threads)?;
        let options = Arc::new(options);
        let window_control =
            WindowControl::start(&options, supervisor.containment(), folder.clone(), worker_mailbox.clone())
                .map_err(HostSetupError::Threads)?;
        let channels = WorkerChannels {
            inbox,
            own_mailbox: worker_mailbox.clone(),
            window_notifier: window_control.notifier(),
            events: sender,
            cleanup: remains,
        };
        let unresolved = UnresolvedSessions::default();
        let worker = SessionWorker::start(Arc::clone(&supervisor), unresolved.clone(), channels)
            .map_err(HostSetupError::Threads)?;
        Ok(Self {
            options,
            supervisor,
            folder,
            resources: Arc::default(),
            events: Some(events),
            limitations,
            launch_fault,
            window_control,
            unresolved,
            prepared: BTreeMap::new(),
            worker_mailbox,
            worker: Some(worker),
            cleanup: Some(cleanup),
        })
    }

    /// Returns the containment that holds the processes of a program together.
    #[must_use]
    pub fn containment(&self) -> Containment {
        self.supervisor.containment()
    }

    /// Starts a program on a thread of its own, which waits for the permission before the program runs.
    fn begin_start(&self, request: HostSpawnRequest) -> StartPermit {
        let session_id = request.session_id.clone();
        let (permit, permission) = start_permission();
        let job = StartJob {
            request,
            options: Arc::clone(&self.options),
            supervisor: Arc::clone(&self.supervisor),
            folder: self.folder.clone(),
            resources: Arc::clone(&self.resources),
            compositor: self.window_control.compositor_access(),
            unresolved: self.unresolved.clone(),
            permission,
        };
        spawn_thread(&self.worker_mailbox, || job.run(), move |reason| start_failed(&session_id, reason));
        permit
    }
}

fn start_failed(session_id: &SessionId, reason: &str) -> WorkerMessage {
    let detail = format!("this machine: {reason}; end other programs and try again");
    WorkerMessage::Started(session_id.clone(), Err(SpawnFailure { detail }))
}

impl HostAdapter for LinuxHost {
    fn capabilities(&self) -> HostCapabilities {
        capability::capabilities(self.containment(), &self.window_control, &self.options)
    }

    fn limitations(&self) -> Vec<String> {
        self.limitations.iter().cloned().chain(self.window_control.limitation()).collect()
    }

    fn launch_fault(&self) -> Option<String> {
        self.launch_fault.clone()
    }

    fn subscribe(&mut self) -> HostEvents {
        self.events.take().unwrap_or_else(|| {
            let (sender, events) = unbounded_channel();
            self.worker_mailbox.send(WorkerMessage::Subscribe(sender));
            events
        })
    }

    fn apply_policy(&mut self, policy: &Policy) {
        let rules = policy.rules();
        let (libraries, drivers) = (rules.libraries.clone(), rules.drivers.clone());
        self.resources = Arc::new(LaunchResources { libraries, drivers });
        self.window_control.use_compositor(rules.compositor.as_ref());
    }

    fn prepare(&mut self, request: HostSpawnRequest) {
        let session_id = request.session_id.clone();
        let permit = self.begin_start(request);
        self.prepared.insert(session_id, permit);
    }

    fn abandon(&mut self, session_id: &SessionId) {
        self.prepared.remove(session_id);
    }

    fn spawn(&mut self, request: HostSpawnRequest) {
        let session_id = &request.session_id;
        self.worker_mailbox.send(WorkerMessage::SessionStarting(session_id.clone()));
        let prepared = self.prepared.remove(session_id);
        prepared.unwrap_or_else(|| self.begin_start(request)).permit_start();
    }

    fn stop(&mut self, request: HostStopRequest) {
        self.worker_mailbox.send(WorkerMessage::Stop(request, Instant::now()));
    }

    fn reattach(&mut self, session_id: &SessionId, handle: Option<&HostSessionHandle>) {
        self.worker_mailbox.send(WorkerMessage::SessionStarting(session_id.clone()));
        let job = ReattachJob {
            session_id: session_id.clone(),
            handle: handle.cloned(),
            supervisor: Arc::clone(&self.supervisor),
            folder: self.folder.clone(),
        };
        job.run_on_thread(&self.worker_mailbox);
    }

    fn recorded_sessions(&self) -> Vec<SessionId> {
        self.folder.recorded_sessions()
    }

    fn output_folder(&self) -> Option<PathBuf> {
        Some(self.folder.log_folder())
    }

    fn show_window(&mut self, session_id: &SessionId, display: WindowDisplay) {
        self.window_control.show_window(session_id, display);
    }
}

impl Drop for LinuxHost {
    fn drop(&mut self) {
        self.worker_mailbox.send(WorkerMessage::Shutdown);
        // The cleanup thread ends after the worker, which holds its sender.
        for thread in [self.worker.take(), self.cleanup.take()].into_iter().flatten() {
            let _ = thread.join();
        }
    }
}
