//! The real thing in a minute: a daemon of its own with the starter policy, and the live view of it; without a
//! terminal, the same story as text. Nothing is installed, and nothing is left running.

mod demo_daemon;
mod text_demo;

use std::process::ExitCode;

use crate::context::CommandContext;
use crate::error::ShepherdCliError;
use crate::output::{ConsoleOutput, TextTone};
use crate::watch::{self, LiveViewExit, LiveViewOptions};
use demo_daemon::DemoDaemon;

pub(crate) fn run(
    context: &CommandContext,
    screen: &mut ConsoleOutput,
) -> Result<ExitCode, ShepherdCliError> {
    let household = DemoDaemon::start()?;
    let left = if watch::is_terminal() {
        let left = watch::run_live_view(live_view_options(&household, context));
        screen.print_line("Ending what runs, and the daemon …");
        left
    } else {
        text_demo::run_text_demo(&household, &context.display, screen).map(|()| LiveViewExit::Quit)
    };
    // Whatever happened: first everything is ended.
    let ended = household.stop_and_check();
    if let LiveViewExit::Signal(signal) = left? {
        watch::exit_by_signal(signal)?;
    }
    let took = ended?.as_millis();
    screen.print_marked(
        TextTone::Good,
        "✓",
        &format!("the daemon has ended in {took} ms, and nothing that it started is left"),
    );
    screen.print_line("\n  shepherd up        the same for good: a policy and a daemon of your own");
    screen.print_line("  shepherd doctor    what this machine can enforce, and how to get more");
    screen.print_line("  shepherd --help    everything else");
    Ok(ExitCode::SUCCESS)
}

fn live_view_options(household: &DemoDaemon, context: &CommandContext) -> LiveViewOptions {
    let greeting = [
        "Welcome. This is a daemon of your own; it goes when you leave.",
        "Press Enter on an entry: you are warned, and then it ends.",
        "Try one that does not want to. Press w on one with ✗ to see why.",
    ];
    LiveViewOptions {
        options: household.client_options(),
        profile: None,
        display: context.display.clone(),
        greeting: greeting.map(str::to_owned).to_vec(),
    }
}
