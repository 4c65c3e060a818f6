//! The loop: waits for events of the daemon and for pressed buttons.

mod daemon_step;
mod options;
mod presses;
mod requests;
mod tray_update;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{Command, CommandReply, ErrorCode, Event, EventKind, SessionView};
use shepherd_ipc::{AsyncClient, AsyncDaemonWatcher, ConnectError, WatchError, WatchUpdate};
use shepherd_text::SentenceCatalogue;
use shepherd_util::{RequestId, SessionId};
use tokio::time::Instant;

use crate::announcement::{self, Announcement, AnnouncementSubject, KnownSession, MessageTime};
use crate::desktop::{DesktopNotifications, ShowError};
use crate::minute_timer::MinuteTimer;
use crate::recipient::{DaemonCallError, Recipient};
use crate::screen::{AnnouncementScreen, ScreenEvent};
use crate::voice::AnnouncementVoice;
use daemon_step::{DaemonInput, DaemonStep};
use options::NotifierPlace;
pub use options::{NotifierError, NotifierOptions};
use requests::{ListedEntries, NextListing};

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

/// Shows notifications until the desktop's bus or the terminal is gone, which is the end of the login.
///
/// # Errors
/// There is no desktop or terminal, or another instance runs in this login.
pub async fn run(options: NotifierOptions) -> Result<(), NotifierError> {
    let screen = match &options.place {
        NotifierPlace::Console => {
            // Every text login starts this program, and most of them aren't a child's.
            if options.profile.is_none()
                && matches!(
                    Recipient::identify(&options.client).await,
                    Ok(Recipient::Parent | Recipient::Other)
                )
            {
                return Ok(());
            }
            AnnouncementScreen::console().map_err(NotifierError::Terminal)?
        }
        NotifierPlace::Desktop(bus) => {
            let notifications = DesktopNotifications::connect(bus).await?;
            AnnouncementScreen::desktop(notifications.ok_or(NotifierError::AlreadyRunning)?).await?
        }
    };
    let watcher = AsyncDaemonWatcher::new(options.client.clone());
    let notifier = Notifier {
        voice: AnnouncementVoice::new(options.voice),
        options,
        screen,
        minute_timer: MinuteTimer::new()?,
        watcher,
        daemon_step: DaemonStep::Watch,
        updated_at: Instant::now(),
        failed_connections: 0,
        recipient: Recipient::Other,
        sessions: BTreeMap::new(),
        own_open_requests: BTreeSet::new(),
        next_listing: None,
    };
    notifier.run().await
}

struct Notifier {
    options: NotifierOptions,
    screen: AnnouncementScreen,
    voice: AnnouncementVoice,
    /// Fires when the tray has to show another minute.
    minute_timer: MinuteTimer,
    watcher: AsyncDaemonWatcher,
    daemon_step: DaemonStep,
    /// The time of the daemon's last message, with which the watcher's state began to hold.
    updated_at: Instant,
    /// The number of connections in a row that failed.
    failed_connections: u32,
    recipient: Recipient,
    /// The child's sessions, as the child knows them.
    sessions: BTreeMap<SessionId, KnownSession>,
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
                event = self.screen.next_event() => match event {
                    Some(ScreenEvent::Pressed(press)) => self.handle_press(&press).await,
                    Some(ScreenEvent::Clicked(action)) => self.handle_click(*action).await,
                    Some(ScreenEvent::ServiceStarted) => self.refresh_requests(FIRST_QUESTION_DELAY).await,
                    // The icon is shown below.
                    Some(ScreenEvent::TrayCame) => Ok(()),
                    None => return Ok(()),
                },
                fired = self.minute_timer.wait() => Ok(fired?),
                next_delay = NextListing::wait(self.next_listing) => self.refresh_requests(next_delay).await,
            };
            // The next warning must still be tried: the notification service may come later, or be restarted.
            if let Err(error) = handled {
                (self.options.report)(&error);
            }
            if let Err(error) = self.update_tray().await {
                (self.options.report)(&error);
            }
            self.voice.release_ended();
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
        let known = |session: &SessionView| (session.session_id.clone(), KnownSession::new(session, time));
        self.sessions = state.sessions.iter().filter(|session| self.is_own(session)).map(known).collect();
        let current: BTreeSet<_> = state.sessions.into_iter().map(|session| session.session_id).collect();
        let holds = |subject: &AnnouncementSubject| match subject {
            AnnouncementSubject::Session(session_id) => current.contains(session_id),
            AnnouncementSubject::Request(_) | AnnouncementSubject::ClosedEntry(_) => true,
        };
        self.screen.remove_stale(holds).await
    }

    async fn handle_event(&mut self, event: &Event) -> Result<(), ShowError> {
        let time = MessageTime { at: event.at, awake: self.updated_at.into_std() };
        match &event.kind {
            EventKind::SessionStarted { session } if self.is_own(session) => {
                self.sessions.insert(session.session_id.clone(), KnownSession::new(session, time));
            }
            EventKind::WarningIssued { session, .. }
            | EventKind::DeadlineChanged { session }
            | EventKind::SessionExpired { session, .. }
                if self.is_own(session) =>
            {
                let announced = announcement::for_session(
                    self.catalogue(),
                    &event.kind,
                    time,
                    self.sessions.get(&session.session_id),
                );
                self.sessions.insert(session.session_id.clone(), KnownSession::new(session, time));
                if let Some(announced) = announced {
                    self.show(announced).await?;
                }
            }
            EventKind::SessionEnded { session_id, end } => {
                let ended = self.sessions.remove(session_id);
                match ended.and_then(|session| announcement::for_end(self.catalogue(), &session, end)) {
                    Some(announced) => self.show(announced).await?,
                    None => self.screen.remove(&AnnouncementSubject::Session(session_id.clone())).await?,
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

    /// Shows an announcement, and plays it if the options say so.
    async fn show(&mut self, announcement: Announcement) -> Result<(), ShowError> {
        // Somebody who can't see the screen hears it, even if it can't be shown.
        self.voice.play(&announcement, self.catalogue().language());
        self.screen.show(announcement).await
    }

    /// Returns the sentences in the language of the policy. Before the first connection, nothing is shown.
    fn catalogue(&self) -> &'static SentenceCatalogue {
        let language = self.watcher.state().and_then(|state| state.snapshot_at(Timestamp::MIN).language);
        SentenceCatalogue::of(language.unwrap_or_default())
    }

    fn is_own(&self, session: &SessionView) -> bool {
        matches!(&self.recipient, Recipient::Child(profile) if *profile == session.profile)
    }

    async fn identify(&self) -> Result<Recipient, DaemonCallError> {
        if let Some(profile) = &self.options.profile {
            return Ok(Recipient::Child(profile.clone()));
        }
        Ok(match (&self.options.place, Recipient::identify(&self.options.client).await?) {
            // A parent who works at a console isn't interrupted.
            (NotifierPlace::Console, Recipient::Parent) => Recipient::Other,
            (_, recipient) => recipient,
        })
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
    use shepherd_api::ApiError;

    // S19.3
    #[test]
    fn a_login_that_new_rules_name_gets_its_notifications_within_minutes() {
        let refused = ApiError::new(ErrorCode::NotPermitted, "no profile and no role");
        let error = WatchError::Connect(ConnectError::Refused(refused));
        assert!(reconnection_delay(&error, 100) <= Duration::from_secs(300));
    }
}
