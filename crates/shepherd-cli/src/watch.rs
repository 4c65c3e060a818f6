//! The live view: what runs with its countdown, what could, and what happens.
//!
//! One loop owns the picture. Threads bring what it reacts to: keys, events, answers and signals. It draws when
//! something came, and once a second while a countdown is shown.

mod draw;
mod inputs;
mod model;

use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use jiff::Timestamp;
use ratatui::DefaultTerminal;
use shepherd_ipc::ClientOptions;
use shepherd_util::ProfileId;

use crate::context::{CommandContext, DisplaySettings};
use crate::daemon::client_options;
use crate::error::ShepherdCliError;
use inputs::{LiveViewInput, LiveViewRequestSender};
use model::{LiveViewAction, LiveViewModel};

/// How a live view was left.
pub(crate) enum LiveViewExit {
    Quit,
    /// By this signal.
    Signal(i32),
}

/// What a live view shows.
pub(crate) struct LiveViewOptions {
    pub(crate) options: ClientOptions,
    pub(crate) profile: Option<ProfileId>,
    pub(crate) display: DisplaySettings,
    /// Said at the beginning, a line each.
    pub(crate) greeting: Vec<String>,
}

pub(crate) fn run(context: &CommandContext) -> Result<(), ShepherdCliError> {
    let sight = LiveViewOptions {
        options: client_options(context)?,
        profile: context.profile.clone(),
        display: context.display.clone(),
        greeting: Vec::new(),
    };
    match run_live_view(sight)? {
        LiveViewExit::Quit => Ok(()),
        LiveViewExit::Signal(signal) => exit_by_signal(signal),
    }
}

/// Ends as the signal would have ended us, now that the terminal is whole again.
pub(crate) fn exit_by_signal(signal: i32) -> Result<(), ShepherdCliError> {
    signal_hook::low_level::emulate_default_handler(signal).map_err(ShepherdCliError::io("end as asked"))
}

pub(crate) fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

pub(crate) fn run_live_view(sight: LiveViewOptions) -> Result<LiveViewExit, ShepherdCliError> {
    if !is_terminal() {
        return Err(ShepherdCliError::NotATerminal);
    }
    let (feeds, asker) = inputs::start(&sight).map_err(ShepherdCliError::io("watch for signals"))?;
    let mut model = LiveViewModel::new(sight.display, sight.profile, sight.greeting);
    let mut terminal = FullscreenTerminal::enter()?;
    loop {
        terminal.draw(&mut model)?;
        let Some(mut feed) = next_input(&feeds, model.next_tick(Timestamp::now())) else { continue };
        // Whatever else is there is taken in before the next drawing.
        loop {
            match model.handle_input(feed) {
                LiveViewAction::Nothing => {}
                LiveViewAction::Send(wishes) => {
                    wishes.into_iter().for_each(|wish| send_request(&asker, wish));
                }
                LiveViewAction::Exit(left) => return Ok(left),
            }
            let Ok(another) = feeds.try_recv() else { break };
            feed = another;
        }
    }
}

/// The next thing, or `None` when the countdown shows another second.
fn next_input(feeds: &Receiver<LiveViewInput>, tick: Option<Duration>) -> Option<LiveViewInput> {
    let Some(tick) = tick else { return Some(feeds.recv().unwrap_or(LiveViewInput::InputClosed)) };
    match feeds.recv_timeout(tick) {
        Ok(feed) => Some(feed),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(LiveViewInput::InputClosed),
    }
}

fn send_request(asker: &LiveViewRequestSender, wish: inputs::LiveViewRequest) {
    // The thread ends only with the process.
    let _ = asker.send(wish);
}

/// While this lives, the terminal is ours. It is given back whatever happens: at the end, by a panic, by a signal.
struct FullscreenTerminal(DefaultTerminal);

impl FullscreenTerminal {
    fn enter() -> Result<Self, ShepherdCliError> {
        // This also makes a panic restore the terminal before it speaks.
        ratatui::try_init().map(Self).map_err(ShepherdCliError::io("take the terminal over"))
    }

    fn draw(&mut self, model: &mut LiveViewModel) -> Result<(), ShepherdCliError> {
        let now = Timestamp::now();
        self.0.draw(|frame| draw::draw(frame, model, now)).map(|_| ()).map_err(ShepherdCliError::io("draw"))
    }
}

impl Drop for FullscreenTerminal {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
