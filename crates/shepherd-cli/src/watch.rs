//! The live view: what runs with its countdown, what could, and what happens.
//!
//! One loop owns the picture. Threads bring what it reacts to: keys, events, answers and signals. It draws when
//! something came, and once a second while a countdown is shown.

mod draw;
mod feed;
mod model;

use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use jiff::Timestamp;
use ratatui::DefaultTerminal;
use shepherd_ipc::ClientOptions;
use shepherd_util::ProfileId;

use crate::context::{Context, Look};
use crate::daemon::client_options;
use crate::failure::Failure;
use feed::{Asker, Feed};
use model::{Model, Step};

/// How a live view was left.
pub(crate) enum Left {
    Quit,
    /// By this signal.
    Signal(i32),
}

/// What a live view shows.
pub(crate) struct Sight {
    pub(crate) options: ClientOptions,
    pub(crate) profile: Option<ProfileId>,
    pub(crate) look: Look,
    /// Said at the beginning, a line each.
    pub(crate) greeting: Vec<String>,
}

pub(crate) fn run(context: &Context) -> Result<(), Failure> {
    let sight = Sight {
        options: client_options(context)?,
        profile: context.profile.clone(),
        look: context.look.clone(),
        greeting: Vec::new(),
    };
    match live(sight)? {
        Left::Quit => Ok(()),
        Left::Signal(signal) => die_of(signal),
    }
}

/// Ends as the signal would have ended us, now that the terminal is whole again.
pub(crate) fn die_of(signal: i32) -> Result<(), Failure> {
    signal_hook::low_level::emulate_default_handler(signal).map_err(Failure::io("end as asked"))
}

pub(crate) fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

pub(crate) fn live(sight: Sight) -> Result<Left, Failure> {
    if !is_possible() {
        return Err(Failure::NotATerminal);
    }
    let (feeds, asker) = feed::start(&sight).map_err(Failure::io("watch for signals"))?;
    let mut model = Model::new(sight.look, sight.profile, sight.greeting);
    let mut terminal = Fullscreen::begin()?;
    loop {
        terminal.draw(&mut model)?;
        let Some(mut feed) = next(&feeds, model.next_tick(Timestamp::now())) else { continue };
        // Whatever else is there is taken in before the next drawing.
        loop {
            match model.take_in(feed) {
                Step::Nothing => {}
                Step::Ask(wishes) => wishes.into_iter().for_each(|wish| ask(&asker, wish)),
                Step::Leave(left) => return Ok(left),
            }
            let Ok(another) = feeds.try_recv() else { break };
            feed = another;
        }
    }
}

/// The next thing, or `None` when the countdown shows another second.
fn next(feeds: &Receiver<Feed>, tick: Option<Duration>) -> Option<Feed> {
    let Some(tick) = tick else { return Some(feeds.recv().unwrap_or(Feed::InputGone)) };
    match feeds.recv_timeout(tick) {
        Ok(feed) => Some(feed),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(Feed::InputGone),
    }
}

fn ask(asker: &Asker, wish: feed::Wish) {
    // The thread ends only with the process.
    let _ = asker.send(wish);
}

/// While this lives, the terminal is ours. It is given back whatever happens: at the end, by a panic, by a signal.
struct Fullscreen(DefaultTerminal);

impl Fullscreen {
    fn begin() -> Result<Self, Failure> {
        // This also makes a panic restore the terminal before it speaks.
        ratatui::try_init().map(Self).map_err(Failure::io("take the terminal over"))
    }

    fn draw(&mut self, model: &mut Model) -> Result<(), Failure> {
        let now = Timestamp::now();
        self.0.draw(|frame| draw::draw(frame, model, now)).map(|_| ()).map_err(Failure::io("draw"))
    }
}

impl Drop for Fullscreen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
