//! The loop: waits for events of the daemon and for pressed buttons.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use shepherd_api::{
    ApiError, Command, CommandReply, ErrorCode, Event, EventKind, SessionView, TimeRequestView,
};
use shepherd_ipc::{
    AsyncClient, AsyncDaemonWatcher, CallError, ClientOptions, ConnectError, WatchError, WatchUpdate,
};
use shepherd_util::{EntryId, PathError, ProfileId};

use crate::announcement::{
    self, Announcement, AnnouncementSubject, AnnouncementUrgency, KnownSession, MessageTime,
};
use crate::desktop::{DesktopBus, DesktopNotifications, DesktopSignal, PressedButton, ShowError};
use crate::recipient::{DaemonCallError, Recipient};

/// The name by which the daemon's log knows this client.
const CLIENT_NAME: &str = "shepherd-notify";

/// The number of failed connections after which the daemon isn't just being restarted.
const RESTART_ATTEMPTS: u32 = 6;

/// The delay between connections to a daemon that isn't running.
const ABSENT_DAEMON_DELAY: Duration = Duration::from_secs(60);

/// The delay between connections to a daemon that refuses this account. Each refusal is recorded.
const REFUSED_ACCOUNT_DELAY: Duration = Duration::from_secs(3600);

/// The delays between questions to a daemon that can't say who is at this login.
const FIRST_IDENTIFICATION_DELAY: Duration = Duration::from_secs(1);
const LAST_IDENTIFICATION_DELAY: Duration = Duration::from_secs(32);

/// Returns the time to wait after a failed connection, in addition to that of the watcher. A daemon that is being
/// restarted is back at once; a daemon that refuses this account will mostly do so until the policy changes.
fn reconnection_delay(error: &WatchError, failed_connections: u32) -> Duration {
    match error {
        WatchError::Connect(ConnectError::Refused(error)) if error.code == ErrorCode::NotPermitted => {
            REFUSED_ACCOUNT_DELAY
        }
        _ if failed_connections > RESTART_ATTEMPTS => ABSENT_DAEMON_DELAY,
        WatchError::Connect(_) | WatchError::Call(_) => Duration::ZERO,
    }
}

/// The settings of a notifier.
#[derive(Clone, Debug)]
pub struct NotifierOptions {
    client: ClientOptions,
    profile: Option<ProfileId>,
    bus: DesktopBus,
    report: fn(&dyn Error),
}

impl NotifierOptions {
    /// Creates the settings for the daemon at this socket. `report` gets the failures that the notifier survives, such
    /// as a notification that could not be shown.
    #[must_use]
    pub fn new(socket: PathBuf, report: fn(&dyn Error)) -> Self {
        let client = ClientOptions::new(socket, CLIENT_NAME);
        Self { client, profile: None, bus: DesktopBus::OfLogin, report }
    }

    /// Shows the notifications of this profile, whoever is at this login.
    #[must_use]
    pub fn for_profile(self, profile: Option<ProfileId>) -> Self {
        Self { profile, ..self }
    }

    /// Uses the message bus at this address instead of the login's own.
    #[must_use]
    pub fn on_bus(self, address: String) -> Self {
        Self { bus: DesktopBus::At(address), ..self }
    }
}

/// The reason for which a notifier can't run.
#[derive(Debug, thiserror::Error)]
pub enum NotifierError {
    #[error("another instance already runs in this login")]
    AlreadyRunning,
    #[error("could not reach the desktop's notifications")]
    Desktop(#[from] zbus::Error),
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
            Self::Desktop(_) => {
                Some("run it in a graphical login; without one, `shepherd watch` shows warnings")
            }
            Self::AlreadyRunning | Self::Start(_) | Self::Paths(_) => None,
        }
    }
}

/// Returns a sentence for the person who pressed a button.
fn failure_sentence(error: &DaemonCallError) -> &str {
    match error {
        DaemonCallError::Call(CallError::Refused(ApiError { sentence, .. })) => sentence,
        DaemonCallError::Connect(_) | DaemonCallError::Call(_) => {
            "Shepherd can't be reached. Try again later."
        }
    }
}

/// Shows notifications until the desktop's bus is gone, which is the end of the login.
///
/// # Errors
/// There is no desktop, or another instance runs in this login.
pub async fn run(options: NotifierOptions) -> Result<(), NotifierError> {
    let desktop = DesktopNotifications::connect(&options.bus).await?.ok_or(NotifierError::AlreadyRunning)?;
    let watcher = AsyncDaemonWatcher::new(options.client.clone());
    let recipient = Recipient::Other;
    let updated_at = Instant::now();
    let notifier =
        Notifier { options, desktop, watcher, failed_connections: 0, updated_at, recipient, session: None };
    notifier.run().await
}

struct Notifier {
    options: NotifierOptions,
    desktop: DesktopNotifications,
    watcher: AsyncDaemonWatcher,
    /// The number of connections in a row that failed.
    failed_connections: u32,
    /// The time of the daemon's last message, with which the watcher's state began to hold.
    updated_at: Instant,
    recipient: Recipient,
    /// The child's session, as the child knows it.
    session: Option<KnownSession>,
}

impl Notifier {
    async fn run(mut self) -> Result<(), NotifierError> {
        loop {
            let handled = tokio::select! {
                update = self.watcher.next() => self.handle_update(update).await,
                signal = self.desktop.next_signal() => match signal {
                    Some(DesktopSignal::Pressed(press)) => self.handle_press(&press).await,
                    Some(DesktopSignal::ServiceStarted) => self.start_over().await,
                    None => return Ok(()),
                },
            };
            // The next warning must still be tried: the notification service may come later, or be restarted.
            if let Err(error) = handled {
                (self.options.report)(&error);
            }
        }
    }

    async fn handle_update(&mut self, update: WatchUpdate) -> Result<(), ShowError> {
        match update {
            WatchUpdate::Resynced { .. } => {
                self.updated_at = Instant::now();
                self.failed_connections = 0;
                self.start_over().await
            }
            WatchUpdate::Event { event, .. } => {
                self.updated_at = Instant::now();
                self.handle_event(&event).await
            }
            // The watcher connects again. The rules hold meanwhile, so nobody has to be told.
            WatchUpdate::Disconnected { error } => {
                self.failed_connections = self.failed_connections.saturating_add(1);
                tokio::time::sleep(reconnection_delay(&error, self.failed_connections)).await;
                Ok(())
            }
        }
    }

    /// Learns who is at this login and what is going on. A parent sees the requests that wait.
    async fn start_over(&mut self) -> Result<(), ShowError> {
        self.recipient = self.identify_patiently().await;
        let state = self.watcher.state().map(|state| state.snapshot_at(Timestamp::MIN));
        self.session = state.and_then(|state| {
            let session = state.session.filter(|session| self.is_own(session))?;
            Some(KnownSession::new(&session, MessageTime { at: state.at, awake: self.updated_at }))
        });
        if self.recipient == Recipient::Parent
            && let Ok(CommandReply::Requests { requests }) = self.call(Command::ListRequests {}).await
        {
            for request in requests {
                if let Err(error) = self.announce_request(&request).await {
                    (self.options.report)(&error);
                }
            }
        }
        Ok(())
    }

    async fn handle_event(&mut self, event: &Event) -> Result<(), ShowError> {
        let time = MessageTime { at: event.at, awake: self.updated_at };
        match &event.kind {
            EventKind::SessionStarted { session } if self.is_own(session) => {
                self.session = Some(KnownSession::new(session, time));
            }
            EventKind::WarningIssued { session, .. }
            | EventKind::DeadlineChanged { session }
            | EventKind::SessionExpired { session, .. }
                if self.is_own(session) =>
            {
                let announced = announcement::for_session(&event.kind, time, self.session.as_ref());
                self.session = Some(KnownSession::new(session, time));
                if let Some(announced) = announced {
                    self.desktop.show(announced).await?;
                }
            }
            EventKind::SessionEnded { session_id, end } => {
                let ended = self.session.take_if(|session| session.session_id == *session_id);
                match ended.and_then(|session| announcement::for_end(&session, end)) {
                    Some(announced) => self.desktop.show(announced).await?,
                    None => self.desktop.remove(&AnnouncementSubject::Session(session_id.clone())).await?,
                }
            }
            EventKind::RequestChanged { request } => self.announce_request(request).await?,
            // Another account may have another profile now.
            EventKind::PolicyReloaded { .. } => self.recipient = self.identify_patiently().await,
            _ => {}
        }
        Ok(())
    }

    async fn announce_request(&mut self, request: &TimeRequestView) -> Result<(), ShowError> {
        let subject = AnnouncementSubject::Request(request.request_id.clone());
        let announced = match &self.recipient {
            Recipient::Child(profile) if *profile == request.profile => {
                let label = self.label_of(&request.entry_id, &request.profile).await;
                announcement::for_own_request(request, &label)
            }
            // What is asked never changes. If a button was pressed meanwhile, the answer is on its way.
            Recipient::Parent if request.state.is_open() && self.desktop.is_shown(&subject) => return Ok(()),
            Recipient::Parent => {
                let label = self.label_of(&request.entry_id, &request.profile).await;
                announcement::for_request_of_child(request, &self.name_of(&request.profile), &label)
            }
            Recipient::Child(_) | Recipient::Other => return Ok(()),
        };
        match announced {
            Some(announced) => self.desktop.show(announced).await,
            // Another parent has answered.
            None => self.desktop.remove(&subject).await,
        }
    }

    async fn handle_press(&mut self, press: &PressedButton) -> Result<(), ShowError> {
        let Some((button, announcement)) = self.desktop.take_button(press) else { return Ok(()) };
        // Success needs no message: the daemon reports the new state of the request.
        let Err(error) = self.call(button.command).await else { return Ok(()) };
        let urgency = announcement.urgency.max(AnnouncementUrgency::Important);
        let reason = format!("Could not do this: {}. {}", button.label, failure_sentence(&error));
        self.desktop.show_failure(Announcement { urgency, ..announcement }, &reason).await
    }

    fn is_own(&self, session: &SessionView) -> bool {
        matches!(&self.recipient, Recipient::Child(profile) if *profile == session.profile)
    }

    /// Learns who is at this login. A busy daemon is asked again, because without an answer nothing would be shown.
    async fn identify_patiently(&self) -> Recipient {
        let mut delay = FIRST_IDENTIFICATION_DELAY;
        loop {
            let error = match self.identify().await {
                Ok(recipient) => return recipient,
                Err(error) => error,
            };
            if delay > LAST_IDENTIFICATION_DELAY {
                (self.options.report)(&error);
                return Recipient::Other;
            }
            tokio::time::sleep(delay).await;
            delay *= 2;
        }
    }

    async fn identify(&self) -> Result<Recipient, DaemonCallError> {
        if let Some(profile) = &self.options.profile {
            return Ok(Recipient::Child(profile.clone()));
        }
        Recipient::identify(&self.options.client).await
    }

    /// Sends a command over a connection of its own. Commands are rare, and an idle connection would cost the daemon
    /// memory.
    async fn call(&self, command: Command) -> Result<CommandReply, DaemonCallError> {
        let mut client = AsyncClient::connect(&self.options.client).await?;
        Ok(client.call(command).await?)
    }

    /// Returns the label of an entry, or its id if the daemon doesn't tell.
    async fn label_of(&self, entry_id: &EntryId, profile: &ProfileId) -> String {
        let list = Command::ListEntries { at_time: None, profile: Some(profile.clone()) };
        let label = match self.call(list).await {
            Ok(CommandReply::Entries { entries, .. }) => {
                entries.into_iter().find(|entry| entry.entry_id == *entry_id).map(|entry| entry.label)
            }
            _ => None,
        };
        label.unwrap_or_else(|| entry_id.to_string())
    }

    fn name_of(&self, profile: &ProfileId) -> String {
        let state = self.watcher.state().map(|state| state.snapshot_at(Timestamp::MIN));
        state.map_or_else(|| profile.to_string(), |state| state.profile_label(profile).to_owned())
    }
}
