//! The host: takes orders, hands each to the thread that carries it out, and returns.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use shepherd_core::policy::{Display, Policy};
use shepherd_host_api::{
    Host, HostCapabilities, HostEvents, HostSessionHandle, SpawnFailure, SpawnOrder, StopOrder,
};
use shepherd_util::SessionId;
use tokio::sync::mpsc::unbounded_channel;
use ward_process::{Containment, Supervisor};

use crate::apart::apart;
use crate::capability;
use crate::doubts::Doubts;
use crate::folder::StateFolder;
use crate::janitor;
use crate::line::{Line, line};
use crate::options::{HostError, LinuxHostOptions};
use crate::recipe::Catalogue;
use crate::start::Start;
use crate::sway::Windows;
use crate::take_back::TakeBack;
use crate::worker::{Ends, Message, Worker};

/// Runs entries on this machine.
///
/// Dropping it leaves what runs, to be taken back by a later one with the same state folder.
pub struct LinuxHost {
    options: Arc<LinuxHostOptions>,
    supervisor: Arc<Supervisor>,
    folder: StateFolder,
    catalogue: Arc<Catalogue>,
    /// Of the first subscriber: what happens before it subscribes is not lost.
    events: Option<HostEvents>,
    limitations: Vec<String>,
    windows: Windows,
    doubts: Doubts,
    line: Line<Message>,
    worker: Option<JoinHandle<()>>,
    janitor: Option<JoinHandle<()>>,
}

impl LinuxHost {
    /// Finds out what this machine gives, and starts the threads.
    ///
    /// # Errors
    /// When the containment is not to be had, or the state folder can't be made.
    pub fn new(options: LinuxHostOptions) -> Result<Self, HostError> {
        let probe = ward_process::probe();
        let supervisor = Arc::new(Supervisor::with(options.containment.unwrap_or_else(|| probe.best()))?);
        let folder = StateFolder::open(&options.state_folder)?;
        let limitations = capability::limitations(supervisor.containment(), &probe, &options);
        let (sender, events) = unbounded_channel();
        let (remains, janitor) = janitor::start(folder.clone()).map_err(HostError::Threads)?;
        let (line, inbox) = line().map_err(HostError::Threads)?;
        let options = Arc::new(options);
        let windows = Windows::start(&options, supervisor.containment(), folder.clone(), line.clone())
            .map_err(HostError::Threads)?;
        let ends =
            Ends { inbox, line: line.clone(), windows: windows.line(), events: sender, janitor: remains };
        let doubts = Doubts::default();
        let worker =
            Worker::start(Arc::clone(&supervisor), doubts.clone(), ends).map_err(HostError::Threads)?;
        Ok(Self {
            options,
            supervisor,
            folder,
            catalogue: Arc::default(),
            events: Some(events),
            limitations,
            windows,
            doubts,
            line,
            worker: Some(worker),
            janitor: Some(janitor),
        })
    }

    /// What holds programs together.
    #[must_use]
    pub fn containment(&self) -> Containment {
        self.supervisor.containment()
    }
}

fn not_started(session_id: &SessionId, why: &str) -> Message {
    let detail = format!("this machine: {why}; end other programs and try again");
    Message::Started(session_id.clone(), Err(SpawnFailure { detail }))
}

impl Host for LinuxHost {
    fn capabilities(&self) -> HostCapabilities {
        capability::capabilities(self.containment(), &self.windows, &self.options)
    }

    fn limitations(&self) -> Vec<String> {
        self.limitations.iter().cloned().chain(self.windows.limitation()).collect()
    }

    fn subscribe(&mut self) -> HostEvents {
        self.events.take().unwrap_or_else(|| {
            let (sender, events) = unbounded_channel();
            self.line.send(Message::Subscribe(sender));
            events
        })
    }

    fn policy_changed(&mut self, policy: &Policy) {
        let rules = policy.rules();
        let (libraries, drivers) = (rules.libraries.clone(), rules.drivers.clone());
        self.catalogue = Arc::new(Catalogue { libraries, drivers });
        self.windows.follow(rules.compositor.as_ref());
    }

    fn spawn(&mut self, order: SpawnOrder) {
        let session_id = order.session_id.clone();
        self.line.send(Message::Expect(session_id.clone()));
        let start = Start {
            order,
            options: Arc::clone(&self.options),
            supervisor: Arc::clone(&self.supervisor),
            folder: self.folder.clone(),
            catalogue: Arc::clone(&self.catalogue),
            entrance: self.windows.entrance(),
            doubts: self.doubts.clone(),
        };
        let id = session_id.clone();
        let work = || Message::Started(id, start.carry_out().map(Box::new));
        apart(&self.line, work, move |why| not_started(&session_id, why));
    }

    fn stop(&mut self, order: StopOrder) {
        self.line.send(Message::Stop(order, Instant::now()));
    }

    fn reattach(&mut self, session_id: &SessionId, handle: Option<&HostSessionHandle>) {
        self.line.send(Message::Expect(session_id.clone()));
        let take_back = TakeBack {
            session_id: session_id.clone(),
            handle: handle.cloned(),
            supervisor: Arc::clone(&self.supervisor),
            folder: self.folder.clone(),
        };
        take_back.apart(&self.line);
    }

    fn earlier_sessions(&self) -> Vec<SessionId> {
        self.folder.written_down()
    }

    fn show(&mut self, session_id: &SessionId, display: Display) {
        self.windows.show(session_id, display);
    }
}

impl Drop for LinuxHost {
    fn drop(&mut self) {
        self.line.send(Message::Leave);
        // The janitor leaves when the worker, who gives it work, has.
        for thread in [self.worker.take(), self.janitor.take()].into_iter().flatten() {
            let _ = thread.join();
        }
    }
}
