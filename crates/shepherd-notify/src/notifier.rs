//! The loop: waits for events of the daemon and for pressed buttons.

mod daemon_step;
mod requests;

use std::collections::BTreeSet;
use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use jiff::{Timestamp, Zoned};
use shepherd_api::{
    ApiError, Command, CommandReply, ErrorCode, Event, EventKind, GrantKind, GrantView, SessionView,
    TimeRequestView,
};
use shepherd_ipc::{
    AsyncClient, AsyncDaemonWatcher, CallError, ClientOptions, ConnectError, WatchError, WatchUpdate,
};
use shepherd_util::{PathError, ProfileId, RequestId};
use tokio::time::Instant;

use crate::announcement::{
    self, Announcement, AnnouncementSubject, AnnouncementUrgency, KnownSession, MessageTime,
};
use crate::desktop::{DesktopBus, DesktopNotifications, DesktopSignal, PressedButton, ShowError};
use crate::recipient::{DaemonCallError, Recipient};
use daemon_step::{DaemonInput, DaemonStep};
use requests::{ListedEntries, NextListing};

/// The name by which the daemon's log knows this client.
const CLIENT_NAME: &str = "shepherd-notify";

/// The number of failed connections after which the daemon isn't just being restarted.
const RESTART_ATTEMPTS: u32 = 6;

/// The delay between connections to a daemon that isn't running.
const ABSENT_DAEMON_DELAY: Duration = Duration::from_secs(60);

/// The delay between connections to a daemon that refuses this account. The daemon can't tell a refused client that new
/// rules name its account, so the client has to ask again. A family that has just written its rules waits five minutes
/// at most, and a login that the rules never name is refused 288 times a day.
const REFUSED_ACCOUNT_DELAY: Duration = Duration::from_secs(300);

/// The delays between questions to a daemon that can't answer, because it is busy.
const FIRST_QUESTION_DELAY: Duration = Duration::from_secs(1);
const LAST_QUESTION_DELAY: Duration = Duration::from_secs(32);

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
    let notifier = Notifier {
        options,
        desktop,
        watcher,
        daemon_step: DaemonStep::Watch,
        updated_at: Instant::now(),
        failed_connections: 0,
        recipient: Recipient::Other,
        session: None,
        own_open_requests: BTreeSet::new(),
        next_listing: None,
    };
    notifier.run().await
}

struct Notifier {
    options: NotifierOptions,
    desktop: DesktopNotifications,
    watcher: AsyncDaemonWatcher,
    daemon_step: DaemonStep,
    /// The time of the daemon's last message, with which the watcher's state began to hold.
    updated_at: Instant,
    /// The number of connections in a row that failed.
    failed_connections: u32,
    recipient: Recipient,
    /// The child's session, as the child knows it.
    session: Option<KnownSession>,
    /// The child's requests whose answer was not shown yet.
    own_open_requests: BTreeSet<RequestId>,
    /// The time to list the requests again, after the daemon didn't list them.
    next_listing: Option<NextListing>,
}

impl Notifier {
    async fn run(mut self) -> Result<(), NotifierError> {
        loop {
            let handled = tokio::select! {
                input = self.daemon_step.wait(&mut self.watcher) => self.handle_input(input).await,
                signal = self.desktop.next_signal() => match signal {
                    Some(DesktopSignal::Pressed(press)) => self.handle_press(&press).await,
                    Some(DesktopSignal::ServiceStarted) => self.refresh_requests(FIRST_QUESTION_DELAY).await,
                    None => return Ok(()),
                },
                next_delay = NextListing::wait(self.next_listing) => self.refresh_requests(next_delay).await,
            };
            // The next warning must still be tried: the notification service may come later, or be restarted.
            if let Err(error) = handled {
                (self.options.report)(&error);
            }
        }
    }

    async fn handle_input(&mut self, input: DaemonInput) -> Result<(), ShowError> {
        self.daemon_step = DaemonStep::Watch;
        match input {
            DaemonInput::Update(update) => self.handle_update(*update).await,
            DaemonInput::IdentificationDue { next_delay } => self.identify_and_refresh(next_delay).await,
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
                let not_before = Instant::now() + reconnection_delay(&error, self.failed_connections);
                self.daemon_step = DaemonStep::Reconnect { not_before };
                Ok(())
            }
        }
    }

    /// Learns who is at this login and what is going on. Events may have been missed, or the rules have changed.
    async fn start_over(&mut self) -> Result<(), ShowError> {
        self.identify_and_refresh(FIRST_QUESTION_DELAY).await
    }

    /// Asks the daemon who is at this login. A busy daemon is asked again after the delay, because without an answer
    /// nothing would be shown.
    async fn identify_and_refresh(&mut self, delay: Duration) -> Result<(), ShowError> {
        self.recipient = match self.identify().await {
            Ok(recipient) => recipient,
            Err(error) if delay > LAST_QUESTION_DELAY => {
                (self.options.report)(&error);
                Recipient::Other
            }
            Err(_) => {
                let (at, next_delay) = (Instant::now() + delay, delay * 2);
                self.daemon_step = DaemonStep::Identify { at, next_delay };
                return Ok(());
            }
        };
        if let Err(error) = self.refresh_session().await {
            (self.options.report)(&error);
        }
        self.refresh_requests(FIRST_QUESTION_DELAY).await
    }

    /// Takes over the session that the daemon reports, and removes announcements about others, which may have ended
    /// unnoticed.
    async fn refresh_session(&mut self) -> Result<(), ShowError> {
        let Some(state) = self.watcher.state().map(|state| state.snapshot_at(Timestamp::MIN)) else {
            return Ok(());
        };
        let time = MessageTime { at: state.at, awake: self.updated_at.into_std() };
        let own = state.sessions.iter().find(|session| self.is_own(session));
        self.session = own.map(|session| KnownSession::new(session, time));
        let holds = |subject: &AnnouncementSubject| match subject {
            AnnouncementSubject::Session(session_id) => {
                state.sessions.iter().any(|session| session.session_id == *session_id)
            }
            AnnouncementSubject::Request(_) | AnnouncementSubject::ClosedEntry(_) => true,
        };
        self.desktop.remove_stale(holds).await
    }

    async fn handle_event(&mut self, event: &Event) -> Result<(), ShowError> {
        let time = MessageTime { at: event.at, awake: self.updated_at.into_std() };
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
            EventKind::RequestChanged { request } => {
                self.announce_request(request, event.at, &mut ListedEntries::new()).await?;
            }
            // The account may have another profile or role now.
            EventKind::PolicyReloaded { .. } => self.start_over().await?,
            _ => {}
        }
        Ok(())
    }

    async fn handle_press(&mut self, press: &PressedButton) -> Result<(), ShowError> {
        let Some((button, announcement)) = self.desktop.take_button(press) else { return Ok(()) };
        let error = match self.call(button.command).await {
            Ok(CommandReply::Decided { request, grant: Some(grant) }) => {
                return self.announce_granted(&request, &grant).await;
            }
            // Success needs no message: the daemon reports the new state of the request.
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        let urgency = announcement.urgency.max(AnnouncementUrgency::Important);
        let reason = format!("Could not do this: {}. {}", button.label, failure_sentence(&error));
        self.desktop.show_failure(Announcement { urgency, ..announcement }, &reason).await
    }

    /// Tells a parent if the time that they have granted can't be used, because the hours end before or the entry stays
    /// closed.
    async fn announce_granted(
        &mut self,
        request: &TimeRequestView,
        grant: &GrantView,
    ) -> Result<(), ShowError> {
        let GrantKind::Extra { amount } = grant.gift else { return Ok(()) };
        let sessions = match self.call(Command::GetState {}).await {
            Ok(CommandReply::State { snapshot }) => snapshot.all_sessions().to_vec(),
            _ => Vec::new(),
        };
        let is_meant = |session: &&SessionView| {
            session.entry_id == request.entry_id && session.profile == request.profile
        };
        let announced = match sessions.iter().find(is_meant) {
            Some(session) => announcement::for_granted_request(request, amount, session),
            None => {
                let mut listed = ListedEntries::new();
                let entry = self.entry_of(request, &mut listed).await;
                entry.and_then(|entry| {
                    announcement::for_granted_closed_entry(request, amount, entry, &Zoned::now())
                })
            }
        };
        match announced {
            Some(announced) => self.desktop.show(announced).await,
            None => Ok(()),
        }
    }

    fn is_own(&self, session: &SessionView) -> bool {
        matches!(&self.recipient, Recipient::Child(profile) if *profile == session.profile)
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
}

#[cfg(test)]
mod tests {
    use super::*;

    // S19.3
    #[test]
    fn a_login_that_new_rules_name_gets_its_notifications_within_minutes() {
        let refused = ApiError::new(ErrorCode::NotPermitted, "no profile and no role");
        let error = WatchError::Connect(ConnectError::Refused(refused));
        assert!(reconnection_delay(&error, 100) <= Duration::from_secs(300));
    }
}
