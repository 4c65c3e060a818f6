//! `shepherd watch`, the live view: the running session with its countdown, the entries, and recent events.
//!
//! One loop owns the model. Threads send it inputs: keys, events, replies and signals. The loop draws after every input,
//! and once a second while a countdown is shown. While a session runs, it fetches the entries again every 15 seconds.

mod draw;
mod inputs;
mod model;

use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use jiff::Timestamp;
use ratatui::DefaultTerminal;
use shepherd_api::ClientDisplay;
use shepherd_ipc::ClientOptions;
use shepherd_util::ProfileId;

use crate::context::{CommandContext, DisplaySettings};
use crate::daemon::{DaemonConnection, client_options};
use crate::error::ShepherdCliError;
use inputs::{LiveViewInput, LiveViewRequestSender};
use model::{LiveViewAction, LiveViewModel};

/// The way in which the user left the live view.
pub(crate) enum LiveViewExit {
    Quit,
    Signal(i32),
}

/// The effect of closing the live view on the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DaemonLifetime {
    /// The daemon goes on.
    Independent,
    /// The daemon ends with the view, and its programs with it.
    EndsWithView,
}

/// The connection and settings of a live view.
pub(crate) struct LiveViewOptions {
    pub(crate) options: ClientOptions,
    pub(crate) profile: Option<ProfileId>,
    /// The display of the desktop that the view runs on.
    pub(crate) desktop: Option<ClientDisplay>,
    pub(crate) display: DisplaySettings,
    pub(crate) lifetime: DaemonLifetime,
    /// Lines shown among the events at the start.
    pub(crate) greeting: Vec<String>,
}

pub(crate) fn run(context: &CommandContext) -> Result<(), ShepherdCliError> {
    let profile = match DaemonConnection::connect(context) {
        Ok(daemon) => daemon.profile(),
        // A daemon that can't be reached may come later, but it won't change its mind about this user.
        Err(error) if context.profile.is_some() || error.is_refused_connection() => return Err(error),
        Err(_) => None,
    };
    let options = LiveViewOptions {
        options: client_options(context)?,
        profile,
        desktop: context.desktop(),
        display: context.display.clone(),
        lifetime: DaemonLifetime::Independent,
        greeting: Vec::new(),
    };
    match run_live_view(options)? {
        LiveViewExit::Quit => Ok(()),
        LiveViewExit::Signal(signal) => exit_by_signal(signal),
    }
}

/// Ends the process as the signal would have done. Called after the terminal was restored.
pub(crate) fn exit_by_signal(signal: i32) -> Result<(), ShepherdCliError> {
    signal_hook::low_level::emulate_default_handler(signal).map_err(ShepherdCliError::io("exit on a signal"))
}

pub(crate) fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

pub(crate) fn run_live_view(options: LiveViewOptions) -> Result<LiveViewExit, ShepherdCliError> {
    if !is_terminal() {
        return Err(ShepherdCliError::NotATerminal);
    }
    let (inputs, requests) = inputs::start(&options).map_err(ShepherdCliError::io("watch for signals"))?;
    let mut model = LiveViewModel::new(options.display, options.profile, options.lifetime, options.greeting);
    let mut terminal = FullscreenTerminal::enter()?;
    loop {
        terminal.draw(&mut model)?;
        let Some(mut input) = next_input(&inputs, model.next_tick(Timestamp::now())) else {
            if let LiveViewAction::Send(wanted) = model.refresh_if_due(Timestamp::now()) {
                wanted.into_iter().for_each(|request| send_request(&requests, request));
            }
            continue;
        };
        // All inputs that are waiting are handled before the next drawing.
        loop {
            match model.handle_input(input) {
                LiveViewAction::Nothing => {}
                LiveViewAction::Send(wanted) => {
                    wanted.into_iter().for_each(|request| send_request(&requests, request));
                }
                LiveViewAction::Redraw => terminal.erase()?,
                LiveViewAction::Exit(exit) => return Ok(exit),
            }
            let Ok(next) = inputs.try_recv() else { break };
            input = next;
        }
    }
}

/// Waits for the next input. Returns `None` when the countdown has to be drawn or the entries fetched again.
fn next_input(inputs: &Receiver<LiveViewInput>, tick: Option<Duration>) -> Option<LiveViewInput> {
    let Some(tick) = tick else { return Some(inputs.recv().unwrap_or(LiveViewInput::InputClosed)) };
    match inputs.recv_timeout(tick) {
        Ok(input) => Some(input),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(LiveViewInput::InputClosed),
    }
}

fn send_request(sender: &LiveViewRequestSender, request: inputs::LiveViewRequest) {
    // Sending can't fail: the receiving thread lives as long as the process.
    let _ = sender.send(request);
}

/// Owns the terminal in full-screen mode, and restores it when dropped, on a panic and on a signal.
struct FullscreenTerminal(DefaultTerminal);

impl FullscreenTerminal {
    fn enter() -> Result<Self, ShepherdCliError> {
        // `try_init` also installs a panic hook that restores the terminal before the message is printed.
        ratatui::try_init().map(Self).map_err(ShepherdCliError::io("set up the terminal"))
    }

    /// Erases the screen, so that the next drawing draws every cell. A drawing alone erases the screen only if it finds
    /// another size than the drawing before: a terminal that was made smaller and larger again in between has lost or
    /// moved its lines, and they would stay like that.
    fn erase(&mut self) -> Result<(), ShepherdCliError> {
        // `clear` would ask the terminal for the cursor's position, and the thread that reads keys would get the answer.
        let size = self.0.size().map_err(ShepherdCliError::io("find the size of the terminal"))?;
        self.0.resize(size.into()).map_err(ShepherdCliError::io("erase the terminal"))
    }

    fn draw(&mut self, model: &mut LiveViewModel) -> Result<(), ShepherdCliError> {
        let now = Timestamp::now();
        self.0
            .draw(|frame| draw::draw(frame, model, now))
            .map(|_| ())
            .map_err(ShepherdCliError::io("draw the live view"))
    }
}

impl Drop for FullscreenTerminal {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
