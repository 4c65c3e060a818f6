//! What every command knows: where the daemon is, whose time it is about, and how to show it.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::geteuid;
use shepherd_util::{EnvironmentVariables, PathError, ProfileId, ShepherdPaths};

use crate::arguments::ShepherdArgs;
use crate::error::ShepherdCliError;
use crate::time_argument::TimeArgument;

pub(crate) struct CommandContext {
    socket: Option<PathBuf>,
    environment: EnvironmentVariables,
    pub(crate) profile: Option<ProfileId>,
    pub(crate) pin_file: Option<PathBuf>,
    pub(crate) display: DisplaySettings,
}

/// How things are shown: to whom the moment is, in which zone, and on how wide a screen.
#[derive(Clone)]
pub(crate) struct DisplaySettings {
    pub(crate) now: Timestamp,
    pub(crate) zone: TimeZone,
    pub(crate) width: usize,
}

impl CommandContext {
    pub(crate) fn new(arguments: &ShepherdArgs, width: usize) -> Self {
        let environment =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        Self {
            socket: arguments.socket.clone(),
            environment: environment.collect(),
            profile: arguments.profile.clone(),
            pin_file: arguments.pin_file.clone(),
            display: DisplaySettings { now: Timestamp::now(), zone: TimeZone::system(), width },
        }
    }

    /// The places of a daemon that this user would start.
    pub(crate) fn paths(&self) -> Result<ShepherdPaths, PathError> {
        if geteuid().is_root() {
            ShepherdPaths::system(&self.environment)
        } else {
            ShepherdPaths::user(&self.environment)
        }
    }

    /// When a moment is that was given, if one was.
    pub(crate) fn resolve_time(
        &self,
        moment: Option<TimeArgument>,
    ) -> Result<Option<Timestamp>, ShepherdCliError> {
        moment.map(|moment| moment.resolve(&self.display).ok_or(ShepherdCliError::InvalidTime)).transpose()
    }

    /// The socket as it was given, for whoever makes its own choice otherwise.
    pub(crate) fn socket_override(&self) -> Option<&PathBuf> {
        self.socket.as_ref()
    }

    pub(crate) fn environment(&self) -> &EnvironmentVariables {
        &self.environment
    }

    /// Where the daemon listens: where we were told, else the machine's daemon, else this user's.
    pub(crate) fn socket(&self) -> Result<PathBuf, ShepherdCliError> {
        if let Some(socket) = &self.socket {
            return Ok(socket.clone());
        }
        let own = self.paths().map(|paths| paths.socket);
        let system = ShepherdPaths::system(&self.environment).map(|paths| paths.socket);
        choose_socket(own, system.ok()).map_err(ShepherdCliError::Paths)
    }
}

/// The machine's if somebody is behind it: the other may be a trap of whoever shares the login. If nobody is behind
/// either, our own.
fn choose_socket(own: Result<PathBuf, PathError>, system: Option<PathBuf>) -> Result<PathBuf, PathError> {
    let candidates = system.iter().chain(own.as_ref().ok());
    match candidates.into_iter().find(|socket| has_listener(socket)) {
        Some(served) => Ok(served.clone()),
        None => own.or_else(|error| system.ok_or(error)),
    }
}

/// Whether somebody is behind a socket, be it one who does not let us in or has no time. A daemon that was killed
/// leaves the file.
fn has_listener(path: &Path) -> bool {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let connected = SocketAddrUnix::new(path).and_then(|address| {
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &address)
    });
    !matches!(connected, Err(Errno::CONNREFUSED | Errno::NOENT | Errno::NOTDIR))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_socket_that_nobody_is_behind_hides_no_daemon() {
        let folder = tempfile::tempdir().unwrap();
        let (own, system) = (folder.path().join("own"), folder.path().join("system"));
        let chosen = || choose_socket(Ok(own.clone()), Some(system.clone())).unwrap();
        assert_eq!(chosen(), own, "where one would be expected");
        let _trap = UnixListener::bind(&own).unwrap();
        assert_eq!(chosen(), own);
        let machine = UnixListener::bind(&system).unwrap();
        assert_eq!(chosen(), system);
        drop(machine);
        assert!(system.exists());
        assert_eq!(chosen(), own, "the file of one that was killed");
        assert_eq!(choose_socket(Err(PathError::NoHome), None), Err(PathError::NoHome));
    }
}
