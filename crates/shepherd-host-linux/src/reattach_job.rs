//! Reattaches a program that an earlier daemon started, on its own thread.

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

#[derive(Clone)]
pub(crate) struct ReattachJob {
    pub(crate) session_id: SessionId,
    pub(crate) handle: Option<HostSessionHandle>,
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) folder: StateFolder,
}

impl ReattachJob {
    pub(crate) fn run_on_thread(self, mailbox: &MailboxSender<WorkerMessage>) {
        let (session_id, spare) = (self.session_id.clone(), self.clone());
        let work = || WorkerMessage::Reattached(session_id, self.run().map(Box::new));
        spawn_thread(mailbox, work, move |reason| {
            WorkerMessage::Reattached(spare.session_id.clone(), Err(spare.uncertain(reason.to_owned())))
        });
    }

    fn run(self) -> Result<StartedSession, ReattachFailure> {
        let gone = |sockets| ReattachFailure::Gone { sockets };
        let given = self.handle.as_ref().and_then(LinuxSessionHandle::parse);
        let handle = match given {
            Some(handle) => handle,
            None => match self.folder.read_handle(&self.session_id) {
                Ok(recorded) => match recorded.as_ref().and_then(LinuxSessionHandle::parse) {
                    Some(handle) => handle,
                    None => {
                        self.remove_empty_cgroup();
                        return Err(gone(None));
                    }
                },
                Err(error) => {
                    return Err(self.uncertain(format!("could not read the handle of the program: {error}")));
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
            Err(error) => Err(self.uncertain(format!("could not reattach the program: {error}"))),
        }
    }

    /// Returns the failure for a program that may still run, so that the worker tries again.
    fn uncertain(&self, detail: String) -> ReattachFailure {
        ReattachFailure::Uncertain { detail, retry: Box::new(self.clone()) }
    }

    /// Reattaches with the recorded containment, which may differ from the one that this host uses.
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

    /// Removes the cgroup of a start that was interrupted before its handle was written. Its program never ran.
    fn remove_empty_cgroup(&self) {
        let record =
            self.session_id.as_str().parse().ok().and_then(|id| self.supervisor.find_record(&id).ok()?);
        if let Some(record) = record {
            let _ = self.supervisor.reattach(&record);
        }
    }
}
