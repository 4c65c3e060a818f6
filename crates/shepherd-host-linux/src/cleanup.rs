//! The thread that cleans up after sessions. It may wait for a disk.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use shepherd_util::SessionId;
use ward_process::{ProcessTree, sandbox};

use crate::state_folder::StateFolder;

/// The longest wait for the last output of an ended program to be written.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);

/// The things that an ended session leaves behind.
pub(crate) struct SessionRemains {
    pub(crate) session_id: SessionId,
    pub(crate) tree: Option<Box<ProcessTree>>,
    pub(crate) sockets: Option<PathBuf>,
}

/// Starts the thread. It ends when the sender is dropped.
pub(crate) fn start_thread(folder: StateFolder) -> io::Result<(Sender<SessionRemains>, JoinHandle<()>)> {
    let (sender, remains) = channel();
    let thread =
        Builder::new().name("host-cleanup".into()).spawn(move || clean_up_sessions(&folder, &remains))?;
    Ok((sender, thread))
}

fn clean_up_sessions(folder: &StateFolder, all: &Receiver<SessionRemains>) {
    folder.prune_logs();
    for SessionRemains { session_id, tree, sockets } in all {
        if let Some(mut tree) = tree {
            // The tree has ended. If the wait fails, at most the end of the log is missing.
            let _ = tree.wait(Some(OUTPUT_TIMEOUT));
        }
        if let Some(sockets) = sockets {
            // The program can write to this folder, and so can leave files that can't be removed.
            let _ = sandbox::remove_folder(&sockets);
        }
        folder.remove_handle(&session_id);
        folder.prune_logs();
    }
}
