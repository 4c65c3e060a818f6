//! What is left to do after a session has ended, on a thread that may wait for a disk.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use shepherd_util::SessionId;
use ward_process::{ProcessTree, sandbox};

use crate::state_folder::StateFolder;

/// How long the last words of a program may take to be written.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);

/// What an ended session leaves.
pub(crate) struct SessionRemains {
    pub(crate) session_id: SessionId,
    pub(crate) tree: Option<Box<ProcessTree>>,
    pub(crate) sockets: Option<PathBuf>,
}

/// Starts the thread. It ends when nobody can give it work any more.
pub(crate) fn start_thread(folder: StateFolder) -> io::Result<(Sender<SessionRemains>, JoinHandle<()>)> {
    let (sender, remains) = channel();
    let thread =
        Builder::new().name("host-janitor".into()).spawn(move || clean_up_sessions(&folder, &remains))?;
    Ok((sender, thread))
}

fn clean_up_sessions(folder: &StateFolder, all: &Receiver<SessionRemains>) {
    folder.prune_logs();
    for SessionRemains { session_id, tree, sockets } in all {
        if let Some(mut tree) = tree {
            // It has ended; what fails here is only that its log may lack a line.
            let _ = tree.wait(Some(OUTPUT_TIMEOUT));
        }
        if let Some(sockets) = sockets {
            // The folder is the program's own: what can't be removed is its litter.
            let _ = sandbox::remove_folder(&sockets);
        }
        folder.remove_handle(&session_id);
        folder.prune_logs();
    }
}
