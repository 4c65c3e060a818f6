//! The access of sessions to the displays of a Sway that runs as another user than their programs. It is opened before a
//! program starts, and closed when the session has ended.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shepherd_util::SessionId;

use super::connection::SwayProcess;
use super::sway_folders::SwayFolders;
use super::x11_access::X11Access;

/// The displays of a compositor.
#[derive(Clone, Debug)]
pub(super) struct CompositorDisplays {
    pub(super) sway: SwayProcess,
    /// The Wayland socket that clients connect to.
    pub(super) wayland: Option<PathBuf>,
    /// The number of the X11 display.
    pub(super) x11: Option<u32>,
    /// The folders of a Sway that runs as a user of its own.
    pub(super) folders: Option<SwayFolders>,
}

/// Shared by the threads that start sessions and the thread that watches the compositor.
#[derive(Clone, Default)]
pub(super) struct DisplayAccess(Arc<Mutex<BTreeMap<SessionId, SessionAccess>>>);

struct SessionAccess {
    user: u32,
    folders: SwayFolders,
    sockets: DisplaySockets,
    x11: Option<X11Access>,
}

#[derive(Clone)]
struct DisplaySockets {
    wayland: PathBuf,
    x11: Option<u32>,
}

impl DisplayAccess {
    /// Lets the programs of a session connect to the displays, if only this makes it possible. Returns sentences about
    /// programs that will be refused. Waits for Xwayland to start.
    pub(super) fn open(
        &self,
        session_id: &SessionId,
        user: u32,
        displays: &CompositorDisplays,
    ) -> Vec<String> {
        let (Some(folders), Some(wayland)) = (&displays.folders, &displays.wayland) else {
            return Vec::new();
        };
        if folders.owner == user {
            return Vec::new();
        }
        let mut shortcomings = Vec::new();
        let sockets = DisplaySockets { wayland: wayland.clone(), x11: displays.x11 };
        let access = SessionAccess { user, folders: folders.clone(), sockets: sockets.clone(), x11: None };
        // From now on, the end of another session of this user doesn't close Xwayland.
        self.lock_sessions().insert(session_id.clone(), access);
        let allow_x11 = |number| X11Access::allow(number, displays.sway, user);
        match displays.x11.map(allow_x11).transpose() {
            Ok(x11) => {
                if let Some(access) = self.lock_sessions().get_mut(session_id) {
                    access.x11 = x11;
                }
            }
            Err(error) => shortcomings
                .push(format!("X11 programs can't show windows: could not open Xwayland: {error}.")),
        }
        if let Err(error) = update_sockets(&self.lock_sessions(), folders, &sockets) {
            shortcomings.push(format!(
                "Its windows can't be shown: could not open the display of the compositor: {error}."
            ));
        }
        shortcomings
    }

    /// Takes the access of an ended session back, unless another session of its user runs. Never waits for a compositor.
    pub(super) fn close(&self, session_id: &SessionId) {
        let mut sessions = self.lock_sessions();
        let Some(ended) = sessions.remove(session_id) else { return };
        // This fails if Sway has ended with its socket, and then there is nothing to take back.
        let _ = update_sockets(&sessions, &ended.folders, &ended.sockets);
        let Some(x11) = ended.x11 else { return };
        let is_shared =
            |other: &&mut SessionAccess| other.user == ended.user && other.folders == ended.folders;
        match sessions.values_mut().find(is_shared) {
            None => x11.revoke(),
            // A session that could not open Xwayland itself uses the access now, and has to take it back.
            Some(other) if other.x11.is_none() => other.x11 = Some(x11),
            Some(_) => {}
        }
    }

    /// Locks the sessions. Each change is a single call, so a panic can't leave them inconsistent.
    fn lock_sessions(&self) -> MutexGuard<'_, BTreeMap<SessionId, SessionAccess>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the sockets to the users of all sessions, and to nobody else.
fn update_sockets(
    sessions: &BTreeMap<SessionId, SessionAccess>,
    folders: &SwayFolders,
    sockets: &DisplaySockets,
) -> std::io::Result<()> {
    let mut users: Vec<u32> =
        sessions.values().filter(|access| access.folders == *folders).map(|access| access.user).collect();
    users.sort_unstable();
    users.dedup();
    let x11 = sockets.x11.map_or(Ok(()), |display| folders.open_x11_to(display, &users));
    folders.open_wayland_to(&sockets.wayland, &users).and(x11)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// S19.1: a session may start while the only other one of its user ends, and may fail to open Xwayland itself.
    #[test]
    fn xwayland_is_closed_to_a_user_after_the_last_of_its_sessions() {
        let (ours, mut xwayland) = UnixStream::pair().unwrap();
        xwayland.set_nonblocking(true).unwrap();
        let mut is_closed = || xwayland.read(&mut [0; 64]).is_ok_and(|length| length > 0);
        let folders: SwayFolders =
            serde_json::from_str(r#"{"display":"/nonexistent","control":"/nonexistent","owner":7}"#).unwrap();
        let sockets = DisplaySockets { wayland: "/nonexistent/wayland-1".into(), x11: None };
        let access =
            |user, x11| SessionAccess { user, folders: folders.clone(), sockets: sockets.clone(), x11 };
        let ids = [1, 2, 3].map(SessionId::from_random);
        let sessions = DisplayAccess::default();
        let [first, second, other] = &ids;
        sessions.lock_sessions().extend([
            (first.clone(), access(1000, Some(X11Access { stream: ours, user: 1000 }))),
            (second.clone(), access(1000, None)),
            (other.clone(), access(1001, None)),
        ]);
        sessions.close(first);
        assert!(!is_closed());
        sessions.close(second);
        assert!(is_closed());
    }
}
