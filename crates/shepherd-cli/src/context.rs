//! What every command knows: where the daemon is, whose time it is about, and how to show it.

use std::path::PathBuf;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustix::process::geteuid;
use shepherd_util::{Environment, PathError, Paths, ProfileId};

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::moment::Moment;

pub(crate) struct Context {
    socket: Option<PathBuf>,
    environment: Environment,
    pub(crate) profile: Option<ProfileId>,
    pub(crate) pin_file: Option<PathBuf>,
    pub(crate) look: Look,
}

/// How things are shown: to whom the moment is, in which zone, and on how wide a screen.
#[derive(Clone)]
pub(crate) struct Look {
    pub(crate) now: Timestamp,
    pub(crate) zone: TimeZone,
    pub(crate) width: usize,
}

impl Context {
    pub(crate) fn new(arguments: &Arguments, width: usize) -> Self {
        let environment =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        Self {
            socket: arguments.socket.clone(),
            environment: environment.collect(),
            profile: arguments.profile.clone(),
            pin_file: arguments.pin_file.clone(),
            look: Look { now: Timestamp::now(), zone: TimeZone::system(), width },
        }
    }

    /// The places of a daemon that this user would start.
    pub(crate) fn paths(&self) -> Result<Paths, PathError> {
        if geteuid().is_root() { Paths::system(&self.environment) } else { Paths::user(&self.environment) }
    }

    /// When a moment is that was given, if one was.
    pub(crate) fn at(&self, moment: Option<Moment>) -> Result<Option<Timestamp>, Failure> {
        moment.map(|moment| moment.resolve(&self.look).ok_or(Failure::NoSuchMoment)).transpose()
    }

    /// The socket as it was given, for whoever makes its own choice otherwise.
    pub(crate) fn given_socket(&self) -> Option<&PathBuf> {
        self.socket.as_ref()
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Where the daemon listens: where we were told, else this user's daemon, else the machine's.
    pub(crate) fn socket(&self) -> Result<PathBuf, Failure> {
        if let Some(socket) = &self.socket {
            return Ok(socket.clone());
        }
        let system = Paths::system(&self.environment).map(|paths| paths.socket);
        match self.paths() {
            Ok(own) if own.socket.exists() => Ok(own.socket),
            own => match (own, system) {
                (_, Ok(system)) if system.exists() => Ok(system),
                (Ok(own), _) => Ok(own.socket),
                (Err(_), Ok(system)) => Ok(system),
                (Err(error), Err(_)) => Err(Failure::Paths(error)),
            },
        }
    }
}
