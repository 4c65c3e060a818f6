//! A relay between a notifier and the daemon, which can hold the connections of the notifier only.

use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use tempfile::TempDir;

/// Forwards connections to a daemon.
pub(super) struct DaemonRelay {
    folder: TempDir,
    shared: Arc<RelayState>,
}

struct RelayState {
    connections: Mutex<RelayedConnections>,
    resumed: Condvar,
}

#[derive(Default)]
struct RelayedConnections {
    are_held: bool,
    /// The command whose next connection is cut.
    lost_command: Option<&'static str>,
    streams: Vec<UnixStream>,
}

impl DaemonRelay {
    pub(super) fn to(daemon: PathBuf) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(socket_in(folder.path())).unwrap();
        let state = RelayState { connections: Mutex::default(), resumed: Condvar::new() };
        let shared = Arc::new(state);
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (relay, daemon) = (Arc::clone(&accepting), daemon.clone());
                std::thread::spawn(move || relay.forward(&client, &daemon));
            }
        });
        Self { folder, shared }
    }

    pub(super) fn socket(&self) -> PathBuf {
        socket_in(self.folder.path())
    }

    /// Cuts all connections, and lets new ones wait.
    pub(super) fn hold(&self) {
        let mut connections = self.shared.connections.lock().unwrap();
        connections.are_held = true;
        for stream in connections.streams.drain(..) {
            // The other side may have closed it.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Cuts the next connection that sends this command, as if the daemon were too busy to answer.
    pub(super) fn lose(&self, command: &'static str) {
        self.shared.connections.lock().unwrap().lost_command = Some(command);
    }

    /// Forwards the waiting connections.
    pub(super) fn resume(&self) {
        self.shared.connections.lock().unwrap().are_held = false;
        self.shared.resumed.notify_all();
    }
}

impl RelayState {
    fn forward(&self, client: &UnixStream, daemon: &Path) {
        let connections = self.connections.lock().unwrap();
        let mut connections = self.resumed.wait_while(connections, |state| state.are_held).unwrap();
        let Ok(daemon) = UnixStream::connect(daemon) else { return };
        connections.streams.extend([client.try_clone().unwrap(), daemon.try_clone().unwrap()]);
        drop(connections);
        let (from_daemon, to_client) = (daemon.try_clone().unwrap(), client.try_clone().unwrap());
        std::thread::spawn(move || copy_until_closed(from_daemon, to_client));
        let _ = self.forward_commands(client, &daemon);
        let _ = (client.shutdown(Shutdown::Both), daemon.shutdown(Shutdown::Both));
    }

    fn forward_commands(&self, client: &UnixStream, mut daemon: &UnixStream) -> io::Result<()> {
        for line in BufReader::new(client).lines() {
            let line = line?;
            let lost = &mut self.connections.lock().unwrap().lost_command;
            if lost.take_if(|command| line.contains(*command)).is_some() {
                break;
            }
            writeln!(daemon, "{line}")?;
        }
        Ok(())
    }
}

fn copy_until_closed(mut from: UnixStream, mut to: UnixStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

fn socket_in(folder: &Path) -> PathBuf {
    folder.join("socket")
}
