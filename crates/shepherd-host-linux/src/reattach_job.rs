//! Taking back a program that an earlier daemon started, on a thread of its own.

use std::sync::Arc;

use shepherd_host_api::{HostEvent, HostSessionHandle};
use shepherd_util::SessionId;
use ward_process::{ProcessTree, ReattachError, Supervisor, TreeRecord};

use crate::background_thread::spawn_thread;
use crate::handle::LinuxSessionHandle;
use crate::mailbox::MailboxSender;
use crate::start_job::uid_of;
use crate::state_folder::StateFolder;
use crate::worker::{ReattachFailure, RunningSession, StartedSession, WorkerMessage};

/// All that it takes.
#[derive(Clone)]
pub(crate) struct ReattachJob {
    pub(crate) session_id: SessionId,
    pub(crate) handle: Option<HostSessionHandle>,
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) folder: StateFolder,
}

impl ReattachJob {
    /// Does it on a thread of its own.
    pub(crate) fn run_on_thread(self, line: &MailboxSender<WorkerMessage>) {
        let (session_id, spare) = (self.session_id.clone(), self.clone());
        let work = || WorkerMessage::Reattached(session_id, self.run().map(Box::new));
        spawn_thread(line, work, move |why| {
            WorkerMessage::Reattached(spare.session_id.clone(), Err(spare.uncertain(why.to_owned())))
        });
    }

    fn run(self) -> Result<StartedSession, ReattachFailure> {
        let gone = |sockets| ReattachFailure::Gone { sockets };
        let given = self.handle.as_ref().and_then(LinuxSessionHandle::parse);
        let handle = match given {
            Some(handle) => handle,
            None => match self.folder.read_handle(&self.session_id) {
                Ok(written) => match written.as_ref().and_then(LinuxSessionHandle::parse) {
                    Some(handle) => handle,
                    None => {
                        self.remove_empty_cgroup();
                        return Err(gone(None));
                    }
                },
                Err(error) => {
                    return Err(
                        self.uncertain(format!("what was written down of it can't be read ({error})"))
                    );
                }
            },
        };
        match self.reattach(&handle.tree) {
            Ok(tree) => {
                let text = handle.encode().map_err(|error| self.uncertain(error.to_string()))?;
                let LinuxSessionHandle { tree: record, asks, sockets } = handle;
                let event = HostEvent::Reattached { session_id: self.session_id, handle: text };
                let user = uid_of(record.identity.as_ref());
                Ok(StartedSession { running: RunningSession::new(tree, asks, user, sockets), event })
            }
            Err(ReattachError::Gone(_)) => Err(gone(handle.sockets)),
            Err(error) => Err(self.uncertain(format!("it may still run, but can't be taken back ({error})"))),
        }
    }

    /// Nobody knows whether it still runs: to be tried again.
    fn uncertain(&self, detail: String) -> ReattachFailure {
        ReattachFailure::Uncertain { detail, retry: Box::new(self.clone()) }
    }

    /// By whatever holds it, which need not be what we would use today.
    fn reattach(&self, record: &TreeRecord) -> Result<ProcessTree, ReattachError> {
        match self.supervisor.reattach(record) {
            Err(ReattachError::ContainmentMismatch { recorded, ours }) => {
                match Supervisor::with_containment(recorded) {
                    Ok(supervisor) => supervisor.reattach(record),
                    Err(_) => Err(ReattachError::ContainmentMismatch { recorded, ours }),
                }
            }
            outcome => outcome,
        }
    }

    /// A start that was not even written down never came to its program, but may have left an empty group.
    fn remove_empty_cgroup(&self) {
        let record =
            self.session_id.as_str().parse().ok().and_then(|id| self.supervisor.find_record(&id).ok()?);
        if let Some(record) = record {
            let _ = self.supervisor.reattach(&record);
        }
    }
}
