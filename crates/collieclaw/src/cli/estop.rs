//! `estop`: stops every tool, everywhere, now.

use clap::Args;
use collieclaw::estop;
use collieclaw::events::Event;
use serde_json::json;

use super::environment::Environment;
use super::failure::Failure;
use super::open;
use super::screen::Screen;

#[derive(Args)]
#[command(after_help = "Examples:\n  collieclaw estop\n  collieclaw estop --clear")]
pub(crate) struct Estop {
    /// Lets tools run again.
    #[arg(long)]
    clear: bool,
}

pub(crate) fn run(command: &Estop, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let home = &environment.home;
    let active = !command.clear;
    let was_active = home.folder().is_dir() && estop::is_set(home);
    if active {
        // Whoever wants to stop everything must not be held up by a home that is not there yet.
        home.make().map_err(Failure::io(format!("make {}", home.folder().display())))?;
        estop::set(home).map_err(Failure::io(format!("make {}", home.estop().display())))?;
    } else {
        estop::clear(home).map_err(Failure::io(format!("remove {}", home.estop().display())))?;
    }
    let event = match (active, was_active) {
        (true, _) => Some(Event::EstopSet { channel: "cli" }),
        (false, true) => Some(Event::EstopCleared { channel: "cli" }),
        (false, false) => None,
    };
    // What was done is done, also where it can't be told.
    if let Some(event) = event
        && let Ok(events) = open::config(environment).and_then(|config| open::events(&config, environment))
    {
        events.tell(event);
    }
    screen.answer(&json!({ "active": active, "was_active": was_active }), || {
        match (active, was_active) {
            (true, _) => "All tools are stopped. `collieclaw estop --clear` lets them run again.",
            (false, true) => "Tools may run again.",
            (false, false) => "The emergency stop was not active.",
        }
        .to_owned()
    });
    Ok(())
}
