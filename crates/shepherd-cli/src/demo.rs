//! `shepherd demo`: starts a temporary daemon with the starter policy and shows it in the live view, or as text without a
//! terminal. The demonstration installs nothing and leaves nothing running.

mod demo_daemon;
mod text_demo;

use std::process::ExitCode;

use ward_terminal::TextTone;

use crate::context::CommandContext;
use crate::error::ShepherdCliError;
use crate::output::ConsoleOutput;
use crate::watch::{self, DaemonLifetime, LiveViewExit, LiveViewOptions};
use demo_daemon::DemoDaemon;

pub(crate) fn run(
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<ExitCode, ShepherdCliError> {
    let daemon = DemoDaemon::start()?;
    let exit = if watch::is_terminal() {
        let exit = watch::run_live_view(live_view_options(&daemon, context));
        output.print_line("Stopping the daemon and its programs …");
        exit
    } else {
        text_demo::run_text_demo(&daemon, &context.display, output).map(|()| LiveViewExit::Quit)
    };
    // The daemon is stopped first, also after an error.
    let ended = daemon.stop_and_check();
    if let LiveViewExit::Signal(signal) = exit? {
        watch::exit_by_signal(signal)?;
    }
    let took = ended?.as_millis();
    output.print_marked(
        TextTone::Good,
        "✓",
        &format!("the daemon stopped within {took} ms, and no program it started is left"),
    );
    output.print_line("\n  shepherd up        run a daemon with your own policy");
    output.print_line("  shepherd doctor    see what this machine can enforce");
    output.print_line("  shepherd --help    see all commands");
    Ok(ExitCode::SUCCESS)
}

fn live_view_options(daemon: &DemoDaemon, context: &CommandContext) -> LiveViewOptions {
    let greeting = [
        "Welcome. This Shepherd is temporary: it stops when you quit.",
        "Press Enter to launch an entry: it warns you, then it is stopped.",
        "Try the entry that refuses to stop. Press w on an entry with ✗ to see why.",
    ];
    LiveViewOptions {
        options: daemon.client_options(),
        profile: None,
        desktop: context.desktop(),
        display: context.display.clone(),
        lifetime: DaemonLifetime::EndsWithView,
        greeting: greeting.map(str::to_owned).to_vec(),
    }
}
