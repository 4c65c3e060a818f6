//! The threads that bring what the live view reacts to, and the one that asks on its behalf.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use ratatui::crossterm::event::{self, Event as Input, KeyEvent};
use shepherd_api::{
    ClientState, Command, EntryView, ErrorCode, Event, Note, Pin, Refresh, Reply, StopMode, WhyView,
};
use shepherd_ipc::{CallError, Client, ClientOptions, Update, Watch};
use shepherd_util::{Chain, EntryId, ProfileId};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::confidant;
use crate::failure::Failure;
use crate::screen::Tone;
use crate::watch::Sight;

pub(super) type Asker = Sender<Wish>;

/// What the live view reacts to.
pub(super) enum Feed {
    Key(KeyEvent),
    Resized,
    /// There will be no more keys.
    InputGone,
    Signal(i32),
    /// Everything anew.
    Resynced {
        state: Box<ClientState>,
        missed: u64,
    },
    Happened {
        state: Box<ClientState>,
        event: Box<Event>,
        refresh: Refresh,
    },
    Disconnected {
        why: String,
    },
    Answered(Answer),
}

/// What the live view wants of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
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
        pin: Pin,
        wish: Box<Wish>,
    },
    /// The connection is of no use any more.
    HangUp,
}

pub(super) enum Answer {
    Entries(Vec<EntryView>),
    /// They could not be had.
    NoEntries(String),
    Why(Box<WhyView>),
    /// Only an administrator may do that.
    PinWanted {
        wish: Wish,
        told: String,
    },
    Notice(Tone, String),
}

pub(super) fn start(sight: &Sight) -> io::Result<(Receiver<Feed>, Asker)> {
    let (feed, feeds) = channel();
    let (asker, wishes) = channel();
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let for_signals = feed.clone();
    thread::spawn(move || signals.forever().try_for_each(|signal| for_signals.send(Feed::Signal(signal))));
    let for_keys = feed.clone();
    thread::spawn(move || read_keys(&for_keys));
    let (for_events, options) = (feed.clone(), sight.options.clone());
    thread::spawn(move || watch(Watch::new(options), &for_events));
    let (options, profile) = (sight.options.clone(), sight.profile.clone());
    thread::spawn(move || Answering { options, profile, client: None }.run(&wishes, &feed));
    Ok((feeds, asker))
}

fn read_keys(feed: &Sender<Feed>) {
    loop {
        let brought = match event::read() {
            Ok(Input::Key(key)) => Feed::Key(key),
            Ok(Input::Resize(..)) => Feed::Resized,
            Ok(_) => continue,
            Err(_) => Feed::InputGone,
        };
        let last = matches!(brought, Feed::InputGone);
        if feed.send(brought).is_err() || last {
            return;
        }
    }
}

fn watch(mut watch: Watch, feed: &Sender<Feed>) {
    while let Some(update) = watch.next() {
        let state = watch.state().cloned().map(Box::new);
        let brought = match (update, state) {
            (Update::Resynced { missed }, Some(state)) => Feed::Resynced { state, missed },
            (Update::Event { event, refresh }, Some(state)) => {
                Feed::Happened { state, event: Box::new(event), refresh }
            }
            (Update::Disconnected { error }, _) => Feed::Disconnected { why: Chain(&error).to_string() },
            (Update::Resynced { .. } | Update::Event { .. }, None) => continue,
        };
        if feed.send(brought).is_err() {
            return;
        }
    }
}

/// Asks one thing after the other, so that the view never waits.
struct Answering {
    options: ClientOptions,
    profile: Option<ProfileId>,
    client: Option<Client>,
}

impl Answering {
    fn run(mut self, wishes: &Receiver<Wish>, feed: &Sender<Feed>) {
        while let Ok(wish) = wishes.recv() {
            if wish == Wish::HangUp {
                self.client = None;
                continue;
            }
            if feed.send(Feed::Answered(self.answer(&wish))).is_err() {
                return;
            }
        }
    }

    fn answer(&mut self, wish: &Wish) -> Answer {
        let profile = self.profile.clone();
        let command = match wish.clone() {
            Wish::WithPin { pin, wish } => return self.answer_with_pin(pin, *wish),
            Wish::Entries | Wish::HangUp => Command::ListEntries { at_time: None, profile },
            Wish::Launch(entry_id) => Command::Launch { entry_id, profile },
            Wish::Stop(mode) => Command::StopCurrent { mode },
            Wish::RequestTime { entry_id, minutes } => {
                Command::RequestTime { entry_id, minutes, note: None::<Note>, profile }
            }
            Wish::Why(entry_id) => Command::Why { entry_id, at: None, profile },
        };
        match self.call(command) {
            Ok(Reply::Entries { entries, .. }) => Answer::Entries(entries),
            Ok(Reply::Why { why }) => Answer::Why(Box::new(why)),
            Ok(Reply::Request { .. }) => Answer::Notice(Tone::Good, "Your parents were asked.".to_owned()),
            // What comes of the others is told by events.
            Ok(_) => Answer::Notice(Tone::Faint, String::new()),
            Err(refused) if *wish == Wish::Entries => Answer::NoEntries(refused.told),
            Err(Refused { told, for_administrators: true }) => Answer::PinWanted { wish: wish.clone(), told },
            Err(refused) => Answer::Notice(Tone::Bad, refused.told),
        }
    }

    fn answer_with_pin(&mut self, pin: Pin, wish: Wish) -> Answer {
        let answer = match self.connected().and_then(|client| confidant::check(client)) {
            Err(failure) => Answer::Notice(Tone::Bad, Chain(&failure).to_string()),
            Ok(()) => match self.call(Command::Authenticate { pin }) {
                Ok(_) => self.answer(&wish),
                Err(refused) => Answer::PinWanted { wish, told: refused.told },
            },
        };
        // Whoever comes to this screen next is no administrator.
        self.client = None;
        answer
    }

    fn connected(&mut self) -> Result<&mut Client, Failure> {
        let client = match self.client.take() {
            Some(client) => client,
            None => Client::connect(&self.options)?,
        };
        Ok(self.client.insert(client))
    }

    fn call(&mut self, command: Command) -> Result<Reply, Refused> {
        let failed = |told: String| Refused { told, for_administrators: false };
        let client = self.connected().map_err(|error| failed(Chain(&error).to_string()))?;
        match client.call(command) {
            Ok(reply) => Ok(reply),
            Err(CallError::Refused(error)) => {
                let for_administrators = error.code == ErrorCode::PinRequired;
                Err(Refused { told: error.sentence, for_administrators })
            }
            Err(error) => {
                self.client = None;
                Err(failed(Chain(&error).to_string()))
            }
        }
    }
}

/// Why something was not done.
struct Refused {
    told: String,
    for_administrators: bool,
}

#[cfg(test)]
mod tests;
