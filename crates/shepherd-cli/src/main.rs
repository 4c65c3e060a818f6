//! `shepherd`: the command line for parents, administrators and scripts.
//!
//! It decides and enforces nothing; it asks and shows. Exit codes: 0 done, 1 the answer is no (denied, not permitted,
//! not found, a log that was tampered with, a policy that is not valid, a demonstration that did not go as told),
//! 2 the command line is wrong, 3 something outside failed (no daemon, a file, the kernel).
//!
//! Start at `arguments.rs`, what can be said; each command has a module of its own. `screen.rs` is the only one that
//! writes to the terminal, `daemon.rs` the only one that talks to the daemon, except for the live view in `watch.rs`.

mod arguments;
mod context;
mod daemon;
mod error;
mod event_text;
mod humanize;
mod output;
mod pin;
mod pin_recipient;
mod policy_warnings;
mod table;
mod text;
mod time_argument;

mod audit;
mod demo;
mod doctor;
mod entries;
mod generate;
mod grants;
mod health;
mod household;
mod policy;
mod requests;
mod session;
mod status;
mod tour;
mod up;
mod usage;
mod watch;
mod week;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use arguments::{OutputFormat, ShepherdArgs, ShepherdCommand};
use context::CommandContext;
use error::ShepherdCliError;
use output::ConsoleOutput;

fn main() -> ExitCode {
    let arguments = ShepherdArgs::parse();
    if arguments.output == OutputFormat::Json && arguments.is_interactive() {
        let fault = "this is for people; scripts ask `shepherd status --output json` and the like";
        ShepherdArgs::command().error(ErrorKind::ArgumentConflict, fault).exit();
    }
    let mut screen = ConsoleOutput::new(arguments.output);
    let context = CommandContext::new(&arguments, screen.width());
    match run(arguments, &context, &mut screen) {
        Ok(code) => code,
        Err(failure) => {
            screen.print_error(&failure, &context.display);
            failure.exit_code()
        }
    }
}

fn run(
    arguments: ShepherdArgs,
    context: &CommandContext,
    screen: &mut ConsoleOutput,
) -> Result<ExitCode, ShepherdCliError> {
    match arguments.command.unwrap_or(ShepherdCommand::Demo) {
        ShepherdCommand::Up(up) => return up::run(&up, context, screen),
        ShepherdCommand::Demo => return demo::run(context, screen),
        ShepherdCommand::Tour => tour::run(screen),
        ShepherdCommand::Watch => watch::run(context),
        ShepherdCommand::Status => status::run(context, screen),
        ShepherdCommand::List(list) => entries::list(&list, context, screen),
        ShepherdCommand::Why(why) => entries::why(&why, context, screen),
        ShepherdCommand::Week(week) => week::run(&week, context, screen),
        ShepherdCommand::Launch(launch) => session::launch(&launch, context, screen),
        ShepherdCommand::Stop(stop) => session::stop(&stop, context, screen),
        ShepherdCommand::Extend(extend) => session::extend(&extend, context, screen),
        ShepherdCommand::Grant(grant) => grants::create(&grant, context, screen),
        ShepherdCommand::Grants => grants::list(context, screen),
        ShepherdCommand::Revoke(revoke) => grants::revoke(&revoke, context, screen),
        ShepherdCommand::Request(request) => requests::submit(&request, context, screen),
        ShepherdCommand::Requests => requests::list(context, screen),
        ShepherdCommand::Decide(decide) => requests::decide(&decide, context, screen),
        ShepherdCommand::Mode(mode) => household::mode(&mode, context, screen),
        ShepherdCommand::Clock(clock) => household::clock(&clock, context, screen),
        ShepherdCommand::Reload => household::reload(context, screen),
        ShepherdCommand::Usage(usage) => usage::run(&usage, context, screen),
        ShepherdCommand::Policy(command) => policy::run(&command, context, screen),
        ShepherdCommand::Audit(command) => audit::run(&command, context, screen),
        ShepherdCommand::Pin(command) => pin::run(&command, context, screen),
        ShepherdCommand::Health => health::health(context, screen),
        ShepherdCommand::Metrics => health::metrics(context, screen),
        ShepherdCommand::Doctor => doctor::run(context, screen),
        ShepherdCommand::Completions(completions) => generate::completions(&completions, screen),
        ShepherdCommand::Man(man) => generate::man(&man, screen),
    }?;
    Ok(ExitCode::SUCCESS)
}
