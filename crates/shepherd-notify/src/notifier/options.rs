//! The settings of a notifier, and the reasons for which it can't run.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use shepherd_ipc::ClientOptions;
use shepherd_util::{PathError, ProfileId};

use crate::desktop::DesktopBus;
use crate::voice::VoiceOptions;

/// The name by which the daemon's log knows this client.
const CLIENT_NAME: &str = "shepherd-notify";

/// The settings of a notifier.
#[derive(Clone, Debug)]
pub struct NotifierOptions {
    pub(super) client: ClientOptions,
    pub(super) profile: Option<ProfileId>,
    pub(super) place: NotifierPlace,
    pub(super) voice: VoiceOptions,
    pub(super) report: fn(&dyn Error),
}

/// The place where a notifier shows its messages.
#[derive(Clone, Debug)]
pub(super) enum NotifierPlace {
    Desktop(DesktopBus),
    /// The terminal that the process was started from.
    Console,
}

impl NotifierOptions {
    /// Creates the settings for the daemon at this socket. `report` gets the failures that the notifier survives, such
    /// as a notification that could not be shown.
    #[must_use]
    pub fn new(socket: PathBuf, report: fn(&dyn Error)) -> Self {
        let client = ClientOptions::new(socket, CLIENT_NAME);
        let place = NotifierPlace::Desktop(DesktopBus::OfLogin);
        Self { client, profile: None, place, voice: VoiceOptions::default(), report }
    }

    /// Shows the notifications of this profile, whoever is at this login.
    #[must_use]
    pub fn for_profile(self, profile: Option<ProfileId>) -> Self {
        Self { profile, ..self }
    }

    /// Uses the message bus at this address instead of the login's own.
    #[must_use]
    pub fn on_bus(self, address: String) -> Self {
        Self { place: NotifierPlace::Desktop(DesktopBus::At(address)), ..self }
    }

    /// Writes messages to the terminal that the process was started from.
    #[must_use]
    pub fn on_console(self) -> Self {
        Self { place: NotifierPlace::Console, ..self }
    }

    /// Also plays the messages.
    #[must_use]
    pub fn with_voice(self, voice: VoiceOptions) -> Self {
        Self { voice, ..self }
    }
}

/// The reason for which a notifier can't run.
#[derive(Debug, thiserror::Error)]
pub enum NotifierError {
    #[error("another instance already runs in this login")]
    AlreadyRunning,
    #[error("could not reach the desktop's notifications")]
    Desktop(#[from] zbus::Error),
    #[error("could not use the terminal")]
    Terminal(#[source] io::Error),
    #[error("could not start")]
    Start(#[from] io::Error),
    #[error(transparent)]
    Paths(#[from] PathError),
}

impl NotifierError {
    /// Returns the cure, if the person at the desktop can do something.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Desktop(_) => Some("run it in a graphical login, or with `--terminal` in a text login"),
            Self::Terminal(_) => Some("run it in a terminal"),
            Self::AlreadyRunning | Self::Start(_) | Self::Paths(_) => None,
        }
    }
}
