//! `estop`: stops every tool in every process at once, or lets tools run again.

use clap::Args;
use collieclaw_agent::estop;
use collieclaw_agent::events::AgentEvent;
use serde_json::json;

use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::output::OutputPrinter;
use super::wiring;

#[derive(Args)]
#[command(after_help = "Examples:\n  collieclaw estop\n  collieclaw estop --clear")]
pub(crate) struct EstopArgs {
    /// Let tools run again
    #[arg(long)]
    clear: bool,
}

pub(crate) fn run(
    command: &EstopArgs,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let home = &environment.home;
    let active = !command.clear;
    let was_active = home.folder().is_dir() && estop::is_set(home);
    if active {
        // The emergency stop works before `init` as well: a missing home must not delay it.
        home.create().map_err(CommandFailure::io(format!("make {}", home.folder().display())))?;
        estop::set(home).map_err(CommandFailure::io(format!("make {}", home.estop().display())))?;
    } else {
        estop::clear(home).map_err(CommandFailure::io(format!("remove {}", home.estop().display())))?;
    }
    let event = match (active, was_active) {
        (true, _) => Some(AgentEvent::EstopSet { channel: "cli" }),
        (false, true) => Some(AgentEvent::EstopCleared { channel: "cli" }),
        (false, false) => None,
    };
    // The stop is already set or cleared, even if reporting it fails.
    if let Some(event) = event
        && let Ok(events) =
            wiring::load_config(environment).and_then(|config| wiring::open_event_log(&config, environment))
    {
        events.emit(event);
    }
    screen.print_answer(&json!({ "active": active, "was_active": was_active }), || {
        match (active, was_active) {
            (true, _) => "All tools are stopped. `collieclaw estop --clear` lets them run again.",
            (false, true) => "Tools may run again.",
            (false, false) => "The emergency stop was not active.",
        }
        .to_owned()
    });
    Ok(())
}
