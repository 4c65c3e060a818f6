//! The host: takes orders, hands each to the thread that carries it out, and returns.

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
use crate::state_folder::StateFolder;
use crate::sway::WindowControl;
use crate::unresolved::UnresolvedSessions;
use crate::worker::{SessionWorker, WorkerChannels, WorkerMessage};

/// Runs entries on this machine.
///
/// Dropping it leaves what runs, to be taken back by a later one with the same state folder.
pub struct LinuxHost {
    options: Arc<LinuxHostOptions>,
    supervisor: Arc<Supervisor>,
    folder: StateFolder,
    resources: Arc<LaunchResources>,
    /// Of the first subscriber: what happens before it subscribes is not lost.
    events: Option<HostEvents>,
    limitations: Vec<String>,
    window_control: WindowControl,
    unresolved: UnresolvedSessions,
    worker_mailbox: MailboxSender<WorkerMessage>,
    worker: Option<JoinHandle<()>>,
    cleanup: Option<JoinHandle<()>>,
}

impl LinuxHost {
    /// Finds out what this machine gives, and starts the threads.
    ///
    /// # Errors
    /// When the containment is not to be had, or the state folder can't be made.
    pub fn new(options: LinuxHostOptions) -> Result<Self, HostSetupError> {
        let probe = ward_process::probe();
        let supervisor =
            Arc::new(Supervisor::with_containment(options.containment.unwrap_or_else(|| probe.strongest()))?);
        let folder = StateFolder::open(&options.state_folder)?;
        let limitations = capability::limitations(supervisor.containment(), &probe, &options);
        let (sender, events) = unbounded_channel();
        let (remains, janitor) = cleanup::start_thread(folder.clone()).map_err(HostSetupError::Threads)?;
        let (line, inbox) = mailbox().map_err(HostSetupError::Threads)?;
        let options = Arc::new(options);
        let windows = WindowControl::start(&options, supervisor.containment(), folder.clone(), line.clone())
            .map_err(HostSetupError::Threads)?;
        let ends = WorkerChannels {
            inbox,
            own_mailbox: line.clone(),
            window_notifier: windows.notifier(),
            events: sender,
            cleanup: remains,
        };
        let doubts = UnresolvedSessions::default();
        let worker = SessionWorker::start(Arc::clone(&supervisor), doubts.clone(), ends)
            .map_err(HostSetupError::Threads)?;
        Ok(Self {
            options,
            supervisor,
            folder,
            resources: Arc::default(),
            events: Some(events),
            limitations,
            window_control: windows,
            unresolved: doubts,
            worker_mailbox: line,
            worker: Some(worker),
            cleanup: Some(janitor),
        })
    }

    /// What holds programs together.
    #[must_use]
    pub fn containment(&self) -> Containment {
        self.supervisor.containment()
    }
}

fn start_failed(session_id: &SessionId, why: &str) -> WorkerMessage {
    let detail = format!("this machine: {why}; end other programs and try again");
    WorkerMessage::Started(session_id.clone(), Err(SpawnFailure { detail }))
}

impl HostAdapter for LinuxHost {
    fn capabilities(&self) -> HostCapabilities {
        capability::capabilities(self.containment(), &self.window_control, &self.options)
    }

    fn limitations(&self) -> Vec<String> {
        self.limitations.iter().cloned().chain(self.window_control.limitation()).collect()
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

    fn spawn(&mut self, order: HostSpawnRequest) {
        let session_id = order.session_id.clone();
        self.worker_mailbox.send(WorkerMessage::SessionStarting(session_id.clone()));
        let start = StartJob {
            order,
            options: Arc::clone(&self.options),
            supervisor: Arc::clone(&self.supervisor),
            folder: self.folder.clone(),
            resources: Arc::clone(&self.resources),
            compositor: self.window_control.compositor_access(),
            unresolved: self.unresolved.clone(),
        };
        let id = session_id.clone();
        let work = || WorkerMessage::Started(id, start.run().map(Box::new));
        spawn_thread(&self.worker_mailbox, work, move |why| start_failed(&session_id, why));
    }

    fn stop(&mut self, order: HostStopRequest) {
        self.worker_mailbox.send(WorkerMessage::Stop(order, Instant::now()));
    }

    fn reattach(&mut self, session_id: &SessionId, handle: Option<&HostSessionHandle>) {
        self.worker_mailbox.send(WorkerMessage::SessionStarting(session_id.clone()));
        let take_back = ReattachJob {
            session_id: session_id.clone(),
            handle: handle.cloned(),
            supervisor: Arc::clone(&self.supervisor),
            folder: self.folder.clone(),
        };
        take_back.run_on_thread(&self.worker_mailbox);
    }

    fn recorded_sessions(&self) -> Vec<SessionId> {
        self.folder.recorded_sessions()
    }

    fn show_window(&mut self, session_id: &SessionId, display: WindowDisplay) {
        self.window_control.show_window(session_id, display);
    }
}

impl Drop for LinuxHost {
    fn drop(&mut self) {
        self.worker_mailbox.send(WorkerMessage::Shutdown);
        // The janitor leaves when the worker, who gives it work, has.
        for thread in [self.worker.take(), self.cleanup.take()].into_iter().flatten() {
            let _ = thread.join();
        }
    }
}
