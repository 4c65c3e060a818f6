//! The threads that bring what the live view reacts to, and the one that asks on its behalf.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use ratatui::crossterm::event::{self, Event as Input, KeyEvent};
use shepherd_api::{
    AdminPin, ClientState, Command, CommandReply, EntryView, ErrorCode, Event, ExplanationView, Note,
    RequiredRefresh, StopMode,
};
use shepherd_ipc::{BlockingClient, CallError, ClientOptions, DaemonWatcher, WatchUpdate};
use shepherd_util::{EntryId, ErrorChain, ProfileId};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::ShepherdCliError;
use crate::output::TextTone;
use crate::pin_recipient;
use crate::watch::LiveViewOptions;

pub(super) type LiveViewRequestSender = Sender<LiveViewRequest>;

/// What the live view reacts to.
pub(super) enum LiveViewInput {
    Key(KeyEvent),
    Resized,
    /// There will be no more keys.
    InputClosed,
    Signal(i32),
    /// Everything anew.
    Resynced {
        state: Box<ClientState>,
        missed: u64,
    },
    EventReceived {
        state: Box<ClientState>,
        event: Box<Event>,
        refresh: RequiredRefresh,
    },
    Disconnected {
        why: String,
    },
    ReplyReceived(LiveViewReply),
}

/// What the live view wants of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LiveViewRequest {
    Entries,
    Launch(EntryId),
    Stop(StopMode),
    RequestTime {
        entry_id: EntryId,
        minutes: u32,
    },
    Why(EntryId),
    /// As an administrator, this once.
    WithPin {
        pin: AdminPin,
        request: Box<LiveViewRequest>,
    },
    /// The connection is of no use any more.
    Disconnect,
}

pub(super) enum LiveViewReply {
    Entries(Vec<EntryView>),
    /// They could not be had.
    EntriesFailed(String),
    Why(Box<ExplanationView>),
    /// Only an administrator may do that.
    PinRequired {
        request: LiveViewRequest,
        message: String,
    },
    Notice(TextTone, String),
}

pub(super) fn start(sight: &LiveViewOptions) -> io::Result<(Receiver<LiveViewInput>, LiveViewRequestSender)> {
    let (feed, feeds) = channel();
    let (asker, wishes) = channel();
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let for_signals = feed.clone();
    thread::spawn(move || {
        signals.forever().try_for_each(|signal| for_signals.send(LiveViewInput::Signal(signal)))
    });
    let for_keys = feed.clone();
    thread::spawn(move || read_keys(&for_keys));
    let (for_events, options) = (feed.clone(), sight.options.clone());
    thread::spawn(move || forward_events(DaemonWatcher::new(options), &for_events));
    let (options, profile) = (sight.options.clone(), sight.profile.clone());
    thread::spawn(move || LiveViewRequestWorker { options, profile, client: None }.run(&wishes, &feed));
    Ok((feeds, asker))
}

fn read_keys(feed: &Sender<LiveViewInput>) {
    loop {
        let brought = match event::read() {
            Ok(Input::Key(key)) => LiveViewInput::Key(key),
            Ok(Input::Resize(..)) => LiveViewInput::Resized,
            Ok(_) => continue,
            Err(_) => LiveViewInput::InputClosed,
        };
        let last = matches!(brought, LiveViewInput::InputClosed);
        if feed.send(brought).is_err() || last {
            return;
        }
    }
}

fn forward_events(mut watch: DaemonWatcher, feed: &Sender<LiveViewInput>) {
    while let Some(update) = watch.next() {
        let state = watch.state().cloned().map(Box::new);
        let brought = match (update, state) {
            (WatchUpdate::Resynced { missed }, Some(state)) => LiveViewInput::Resynced { state, missed },
            (WatchUpdate::Event { event, refresh }, Some(state)) => {
                LiveViewInput::EventReceived { state, event: Box::new(event), refresh }
            }
            (WatchUpdate::Disconnected { error }, _) => {
                LiveViewInput::Disconnected { why: ErrorChain(&error).to_string() }
            }
            (WatchUpdate::Resynced { .. } | WatchUpdate::Event { .. }, None) => continue,
        };
        if feed.send(brought).is_err() {
            return;
        }
    }
}

/// Asks one thing after the other, so that the view never waits.
struct LiveViewRequestWorker {
    options: ClientOptions,
    profile: Option<ProfileId>,
    client: Option<BlockingClient>,
}

impl LiveViewRequestWorker {
    fn run(mut self, wishes: &Receiver<LiveViewRequest>, feed: &Sender<LiveViewInput>) {
        while let Ok(wish) = wishes.recv() {
            if wish == LiveViewRequest::Disconnect {
                self.client = None;
                continue;
            }
            if feed.send(LiveViewInput::ReplyReceived(self.execute(&wish))).is_err() {
                return;
            }
        }
    }

    fn execute(&mut self, wish: &LiveViewRequest) -> LiveViewReply {
        let profile = self.profile.clone();
        let command = match wish.clone() {
            LiveViewRequest::WithPin { pin, request: wish } => return self.execute_with_pin(pin, *wish),
            LiveViewRequest::Entries | LiveViewRequest::Disconnect => {
                Command::ListEntries { at_time: None, profile }
            }
            LiveViewRequest::Launch(entry_id) => Command::Launch { entry_id, profile },
            LiveViewRequest::Stop(mode) => Command::StopCurrent { mode },
            LiveViewRequest::RequestTime { entry_id, minutes } => {
                Command::RequestTime { entry_id, minutes, note: None::<Note>, profile }
            }
            LiveViewRequest::Why(entry_id) => Command::Why { entry_id, at: None, profile },
        };
        match self.call(command) {
            Ok(CommandReply::Entries { entries, .. }) => LiveViewReply::Entries(entries),
            Ok(CommandReply::Why { why }) => LiveViewReply::Why(Box::new(why)),
            Ok(CommandReply::Request { .. }) => {
                LiveViewReply::Notice(TextTone::Good, "Your parents were asked.".to_owned())
            }
            // What comes of the others is told by events.
            Ok(_) => LiveViewReply::Notice(TextTone::Faint, String::new()),
            Err(refused) if *wish == LiveViewRequest::Entries => {
                LiveViewReply::EntriesFailed(refused.message)
            }
            Err(LiveViewRequestFailure { message: told, needs_pin: true }) => {
                LiveViewReply::PinRequired { request: wish.clone(), message: told }
            }
            Err(refused) => LiveViewReply::Notice(TextTone::Bad, refused.message),
        }
    }

    fn execute_with_pin(&mut self, pin: AdminPin, wish: LiveViewRequest) -> LiveViewReply {
        let answer =
            match self.connect_if_needed().and_then(|client| pin_recipient::check_pin_recipient(client)) {
                Err(failure) => LiveViewReply::Notice(TextTone::Bad, ErrorChain(&failure).to_string()),
                Ok(()) => match self.call(Command::Authenticate { pin }) {
                    Ok(_) => self.execute(&wish),
                    Err(refused) => LiveViewReply::PinRequired { request: wish, message: refused.message },
                },
            };
        // Whoever comes to this screen next is no administrator.
        self.client = None;
        answer
    }

    fn connect_if_needed(&mut self) -> Result<&mut BlockingClient, ShepherdCliError> {
        let client = match self.client.take() {
            Some(client) => client,
            None => BlockingClient::connect(&self.options)?,
        };
        Ok(self.client.insert(client))
    }

    fn call(&mut self, command: Command) -> Result<CommandReply, LiveViewRequestFailure> {
        let failed = |told: String| LiveViewRequestFailure { message: told, needs_pin: false };
        let client = self.connect_if_needed().map_err(|error| failed(ErrorChain(&error).to_string()))?;
        match client.call(command) {
            Ok(reply) => Ok(reply),
            Err(CallError::Refused(error)) => {
                let for_administrators = error.code == ErrorCode::PinRequired;
                Err(LiveViewRequestFailure { message: error.sentence, needs_pin: for_administrators })
            }
            Err(error) => {
                self.client = None;
                Err(failed(ErrorChain(&error).to_string()))
            }
        }
    }
}

/// Why something was not done.
struct LiveViewRequestFailure {
    message: String,
    needs_pin: bool,
}

#[cfg(test)]
mod tests;
