//! Taking back a program that an earlier daemon started, on a thread of its own.

use std::sync::Arc;

use shepherd_host_api::{HostEvent, HostSessionHandle};
use shepherd_util::SessionId;
use ward_process::{ReattachError, Supervisor, Tree, TreeRecord};

use crate::apart::apart;
use crate::folder::StateFolder;
use crate::handle::Handle;
use crate::line::Line;
use crate::start::user_of;
use crate::worker::{Lost, Message, Running, Started};

/// All that it takes.
#[derive(Clone)]
pub(crate) struct TakeBack {
    pub(crate) session_id: SessionId,
    pub(crate) handle: Option<HostSessionHandle>,
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) folder: StateFolder,
}

impl TakeBack {
    /// Does it on a thread of its own.
    pub(crate) fn apart(self, line: &Line<Message>) {
        let (session_id, spare) = (self.session_id.clone(), self.clone());
        let work = || Message::TakenBack(session_id, self.carry_out().map(Box::new));
        apart(line, work, move |why| {
            Message::TakenBack(spare.session_id.clone(), Err(spare.in_doubt(why.to_owned())))
        });
    }

    fn carry_out(self) -> Result<Started, Lost> {
        let gone = |sockets| Lost::Gone { sockets };
        let given = self.handle.as_ref().and_then(Handle::parse);
        let handle = match given {
            Some(handle) => handle,
            None => match self.folder.read(&self.session_id) {
                Ok(written) => match written.as_ref().and_then(Handle::parse) {
                    Some(handle) => handle,
                    None => {
                        self.clear_away();
                        return Err(gone(None));
                    }
                },
                Err(error) => {
                    return Err(self.in_doubt(format!("what was written down of it can't be read ({error})")));
                }
            },
        };
        match self.reattach(&handle.tree) {
            Ok(tree) => {
                let text = handle.to_text().map_err(|error| self.in_doubt(error.to_string()))?;
                let Handle { tree: record, asks, sockets } = handle;
                let event = HostEvent::Reattached { session_id: self.session_id, handle: text };
                let user = user_of(record.identity.as_ref());
                Ok(Started { running: Running::new(tree, asks, user, sockets), event })
            }
            Err(ReattachError::Gone(_)) => Err(gone(handle.sockets)),
            Err(error) => Err(self.in_doubt(format!("it may still run, but can't be taken back ({error})"))),
        }
    }

    /// Nobody knows whether it still runs: to be tried again.
    fn in_doubt(&self, detail: String) -> Lost {
        Lost::InDoubt { detail, again: Box::new(self.clone()) }
    }

    /// By whatever holds it, which need not be what we would use today.
    fn reattach(&self, record: &TreeRecord) -> Result<Tree, ReattachError> {
        match self.supervisor.reattach(record) {
            Err(ReattachError::OtherContainment { recorded, ours }) => match Supervisor::with(recorded) {
                Ok(supervisor) => supervisor.reattach(record),
                Err(_) => Err(ReattachError::OtherContainment { recorded, ours }),
            },
            outcome => outcome,
        }
    }

    /// A start that was not even written down never came to its program, but may have left an empty group.
    fn clear_away(&self) {
        let record = self.session_id.as_str().parse().ok().and_then(|id| self.supervisor.find(&id).ok()?);
        if let Some(record) = record {
            let _ = self.supervisor.reattach(&record);
        }
    }
}
