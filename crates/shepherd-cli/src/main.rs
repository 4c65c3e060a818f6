//! `shepherd`: the command line for parents, administrators and scripts.
//!
//! It decides and enforces nothing; it asks and shows. Exit codes: 0 done, 1 the answer is no (denied, not permitted,
//! not found, a log that was tampered with, a policy that is not valid, a demonstration that did not go as told),
//! 2 the command line is wrong, 3 something outside failed (no daemon, a file, the kernel).
//!
//! Start at `arguments.rs`, what can be said; each command has a module of its own. `screen.rs` is the only one that
//! writes to the terminal, `daemon.rs` the only one that talks to the daemon, except for the live view in `watch.rs`.

mod arguments;
mod confidant;
mod context;
mod daemon;
mod failure;
mod fit;
mod moment;
mod pin;
mod screen;
mod table;
mod tell;
mod text;
mod words;

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

use arguments::{Arguments, Command, OutputFormat};
use context::Context;
use failure::Failure;
use screen::Screen;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.output == OutputFormat::Json && arguments.is_for_people() {
        let fault = "this is for people; scripts ask `shepherd status --output json` and the like";
        Arguments::command().error(ErrorKind::ArgumentConflict, fault).exit();
    }
    let mut screen = Screen::new(arguments.output);
    let context = Context::new(&arguments, screen.width());
    match run(arguments, &context, &mut screen) {
        Ok(code) => code,
        Err(failure) => {
            screen.failure(&failure, &context.look);
            failure.exit_code()
        }
    }
}

fn run(arguments: Arguments, context: &Context, screen: &mut Screen) -> Result<ExitCode, Failure> {
    match arguments.command.unwrap_or(Command::Demo) {
        Command::Up(up) => return up::run(&up, context, screen),
        Command::Demo => return demo::run(context, screen),
        Command::Tour => tour::run(screen),
        Command::Watch => watch::run(context),
        Command::Status => status::run(context, screen),
        Command::List(list) => entries::list(&list, context, screen),
        Command::Why(why) => entries::why(&why, context, screen),
        Command::Week(week) => week::run(&week, context, screen),
        Command::Launch(launch) => session::launch(&launch, context, screen),
        Command::Stop(stop) => session::stop(&stop, context, screen),
        Command::Extend(extend) => session::extend(&extend, context, screen),
        Command::Grant(grant) => grants::give(&grant, context, screen),
        Command::Grants => grants::list(context, screen),
        Command::Revoke(revoke) => grants::revoke(&revoke, context, screen),
        Command::Request(request) => requests::ask(&request, context, screen),
        Command::Requests => requests::list(context, screen),
        Command::Decide(decide) => requests::decide(&decide, context, screen),
        Command::Mode(mode) => household::mode(&mode, context, screen),
        Command::Clock(clock) => household::clock(&clock, context, screen),
        Command::Reload => household::reload(context, screen),
        Command::Usage(usage) => usage::run(&usage, context, screen),
        Command::Policy(command) => policy::run(&command, context, screen),
        Command::Audit(command) => audit::run(&command, context, screen),
        Command::Pin(command) => pin::run(&command, context, screen),
        Command::Health => health::health(context, screen),
        Command::Metrics => health::metrics(context, screen),
        Command::Doctor => doctor::run(context, screen),
        Command::Completions(completions) => generate::completions(&completions, screen),
        Command::Man(man) => generate::man(&man, screen),
    }?;
    Ok(ExitCode::SUCCESS)
}
