//! Finds and connects to a Sway that is already running.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::connection::SwayConnection;
use crate::environment;

/// The number of sockets of a user that are tried, including stale ones.
const MAX_SOCKETS: usize = 16;

/// Connects to the given socket, or else to a socket that the daemon's environment leads to.
///
/// # Errors
/// Returns the problem and its cure as a sentence.
pub(super) fn connect(
    socket: Option<&Path>,
    environment: &[(OsString, OsString)],
) -> Result<SwayConnection, String> {
    if let Some(socket) = socket {
        return SwayConnection::open(socket, None).map_err(|error| {
            let shown = socket.display();
            format!(
                "could not connect to Sway at `{shown}`: {error}; start Sway there, or name another socket"
            )
        });
    }
    let variable = |name| environment::get(environment, name).map(PathBuf::from);
    let (named, folder) = (variable("SWAYSOCK"), variable("XDG_RUNTIME_DIR"));
    if named.is_none() && folder.is_none() {
        let problem = "the daemon's environment has neither `SWAYSOCK` nor `XDG_RUNTIME_DIR`";
        return Err(format!("{problem}; name the socket under `[compositor]`"));
    }
    // The name of a socket contains the process id of its Sway, so `SWAYSOCK` can be out of date.
    let sockets = named.into_iter().chain(folder.iter().flat_map(|folder| sockets_in(folder)));
    sockets.filter_map(|socket| SwayConnection::open(&socket, None).ok()).next().ok_or_else(|| {
        "no Sway of the daemon's own user is running; start one, or name its socket under `[compositor]`"
            .to_owned()
    })
}

/// Returns the Sway sockets in a folder, the newest first.
fn sockets_in(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let mut sockets: Vec<(SystemTime, PathBuf)> = entries
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("sway-ipc.") && name.ends_with(".sock")
        })
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    sockets.sort_unstable();
    sockets.into_iter().rev().take(MAX_SOCKETS).map(|(_, path)| path).collect()
}
