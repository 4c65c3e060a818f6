//! Settings shared by all commands: the daemon's socket, the profile, and how to display results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::geteuid;
use shepherd_api::{ClientDisplay, EntryView, Language, ProfileView};
use shepherd_text::SentenceCatalogue;
use shepherd_util::{EntryId, EnvironmentVariables, PathError, ProfileId, ShepherdPaths};

use crate::arguments::ShepherdArgs;
use crate::client_display;
use crate::error::ShepherdCliError;
use crate::time_argument::TimeArgument;

pub(crate) struct CommandContext {
    socket: Option<PathBuf>,
    environment: EnvironmentVariables,
    /// The profile as it was typed; `DaemonConnection` finds its id.
    pub(crate) profile: Option<String>,
    pub(crate) pin_file: Option<PathBuf>,
    pub(crate) display: DisplaySettings,
}

/// The reader's time, time zone and terminal width, and the labels that name entries and children as the family does.
#[derive(Clone)]
pub(crate) struct DisplaySettings {
    pub(crate) now: Timestamp,
    pub(crate) zone: TimeZone,
    pub(crate) width: usize,
    pub(crate) labels: PolicyLabels,
}

impl DisplaySettings {
    pub(crate) fn new(now: Timestamp, zone: TimeZone, width: usize) -> Self {
        Self { now, zone, width, labels: PolicyLabels::default() }
    }

    pub(crate) fn with_labels(&self, labels: PolicyLabels) -> Self {
        Self { labels, ..self.clone() }
    }

    /// Returns the sentences in the language of the policy. The rest of the command line is in English.
    pub(crate) fn catalogue(&self) -> &'static SentenceCatalogue {
        SentenceCatalogue::of(self.labels.language)
    }

    /// Returns the name of the reader's time zone, or its offset from UTC at this time.
    pub(crate) fn zone_name(&self, at: Timestamp) -> String {
        match self.zone.iana_name() {
            Some(name) => name.to_owned(),
            None => at.to_zoned(self.zone.clone()).strftime("UTC%:z").to_string(),
        }
    }
}

/// Labels of entries and profiles by id, and the language of the policy, as far as they are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicyLabels {
    language: Language,
    entries: BTreeMap<EntryId, String>,
    profiles: BTreeMap<ProfileId, String>,
}

impl PolicyLabels {
    pub(crate) fn from_entries(entries: &[EntryView]) -> Self {
        let labels = entries.iter().map(|entry| (entry.entry_id.clone(), entry.label.clone()));
        Self { entries: labels.collect(), ..Self::default() }
    }

    /// Takes the language of a snapshot. An older daemon sends none.
    pub(crate) fn set_language(&mut self, language: Option<Language>) {
        self.language = language.unwrap_or_default();
    }

    pub(crate) fn insert(&mut self, entry_id: EntryId, label: String) {
        self.entries.insert(entry_id, label);
    }

    pub(crate) fn insert_profile(&mut self, profile: ProfileView) {
        self.profiles.insert(profile.profile, profile.label);
    }

    pub(crate) fn get(&self, entry_id: &EntryId) -> Option<&str> {
        self.entries.get(entry_id).map(String::as_str)
    }

    pub(crate) fn has_several_profiles(&self) -> bool {
        self.profiles.len() > 1
    }

    pub(crate) fn profile(&self, profile: &ProfileId) -> Option<&str> {
        self.profiles.get(profile).map(String::as_str)
    }
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
            display: DisplaySettings::new(Timestamp::now(), TimeZone::system(), width),
        }
    }

    /// Returns the paths of a daemon that this user would start.
    pub(crate) fn paths(&self) -> Result<ShepherdPaths, PathError> {
        if geteuid().is_root() {
            ShepherdPaths::system(&self.environment)
        } else {
            ShepherdPaths::user(&self.environment)
        }
    }

    /// Resolves a time given on the command line.
    pub(crate) fn resolve_time(
        &self,
        time: Option<TimeArgument>,
    ) -> Result<Option<Timestamp>, ShepherdCliError> {
        time.map(|time| time.resolve(&self.display).ok_or(ShepherdCliError::InvalidTime)).transpose()
    }

    /// Returns the socket given with `--socket`.
    pub(crate) fn socket_override(&self) -> Option<&PathBuf> {
        self.socket.as_ref()
    }

    pub(crate) fn environment(&self) -> &EnvironmentVariables {
        &self.environment
    }

    /// Returns the display of the desktop that this program runs on.
    pub(crate) fn desktop(&self) -> Option<ClientDisplay> {
        client_display::from_environment(&self.environment)
    }

    /// Returns the daemon's socket: `--socket` if given, else the machine's daemon, else this user's daemon.
    pub(crate) fn socket(&self) -> Result<PathBuf, ShepherdCliError> {
        if let Some(socket) = &self.socket {
            return Ok(socket.clone());
        }
        let own = self.paths().map(|paths| paths.socket);
        let system = ShepherdPaths::system(&self.environment).map(|paths| paths.socket);
        choose_socket(own, system.ok()).map_err(ShepherdCliError::Paths)
    }

    /// Returns the policy file of the machine's daemon if it exists, else that of a daemon that this user would start.
    pub(crate) fn policy_file(&self) -> Result<PathBuf, PathError> {
        let system = ShepherdPaths::system(&self.environment).map(|paths| paths.policy);
        match system {
            Ok(policy) if policy.exists() => Ok(policy),
            _ => self.paths().map(|paths| paths.policy),
        }
    }

    /// Returns the policy file of the machine's daemon if that daemon is listening.
    pub(crate) fn service_policy(&self) -> Option<PathBuf> {
        let system = ShepherdPaths::system(&self.environment).ok()?;
        has_listener(&system.socket).then_some(system.policy)
    }

    /// Returns true if a daemon listens on the socket that commands use.
    pub(crate) fn has_daemon(&self) -> bool {
        self.socket().is_ok_and(|socket| has_listener(&socket))
    }
}

/// Prefers the machine's daemon if it is listening, because another user of the same login could have put a fake daemon
/// at this user's socket. If neither daemon is listening, returns this user's socket.
fn choose_socket(own: Result<PathBuf, PathError>, system: Option<PathBuf>) -> Result<PathBuf, PathError> {
    let candidates = system.iter().chain(own.as_ref().ok());
    match candidates.into_iter().find(|socket| has_listener(socket)) {
        Some(socket) => Ok(socket.clone()),
        None => own.or_else(|error| system.ok_or(error)),
    }
}

/// Returns true if a process listens on a socket, even if it is busy or refuses this user. The file alone proves
/// nothing: a killed daemon leaves it behind.
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
    fn a_socket_file_without_a_listener_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let (own, system) = (folder.path().join("own"), folder.path().join("system"));
        let chosen = || choose_socket(Ok(own.clone()), Some(system.clone())).unwrap();
        assert_eq!(chosen(), own, "no daemon runs");
        let _fake = UnixListener::bind(&own).unwrap();
        assert_eq!(chosen(), own);
        let machine = UnixListener::bind(&system).unwrap();
        assert_eq!(chosen(), system);
        drop(machine);
        assert!(system.exists());
        assert_eq!(chosen(), own, "a killed daemon leaves its socket file");
        assert_eq!(choose_socket(Err(PathError::NoHome), None), Err(PathError::NoHome));
    }
}
