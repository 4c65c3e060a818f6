//! The real thing in a minute: a daemon of its own with the starter policy, and the live view of it; without a
//! terminal, the same story as text. Nothing is installed, and nothing is left running.

mod household;
mod story;

use std::process::ExitCode;

use crate::context::Context;
use crate::failure::Failure;
use crate::screen::{Screen, Tone};
use crate::watch::{self, Left, Sight};
use household::Household;

pub(crate) fn run(context: &Context, screen: &mut Screen) -> Result<ExitCode, Failure> {
    let household = Household::begin()?;
    let left = if watch::is_possible() {
        let left = watch::live(sight(&household, context));
        screen.line("Ending what runs, and the daemon …");
        left
    } else {
        story::tell(&household, &context.look, screen).map(|()| Left::Quit)
    };
    // Whatever happened: first everything is ended.
    let ended = household.end();
    if let Left::Signal(signal) = left? {
        watch::die_of(signal)?;
    }
    let took = ended?.as_millis();
    screen.toned(
        Tone::Good,
        "✓",
        &format!("the daemon has ended in {took} ms, and nothing that it started is left"),
    );
    screen.line("\n  shepherd up        the same for good: a policy and a daemon of your own");
    screen.line("  shepherd doctor    what this machine can enforce, and how to get more");
    screen.line("  shepherd --help    everything else");
    Ok(ExitCode::SUCCESS)
}

fn sight(household: &Household, context: &Context) -> Sight {
    let greeting = [
        "Welcome. This is a daemon of your own; it goes when you leave.",
        "Press Enter on an entry: you are warned, and then it ends.",
        "Try one that does not want to. Press w on one with ✗ to see why.",
    ];
    Sight {
        options: household.client_options(),
        profile: None,
        look: context.look.clone(),
        greeting: greeting.map(str::to_owned).to_vec(),
    }
}
