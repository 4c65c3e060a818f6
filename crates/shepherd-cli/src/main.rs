//! `shepherd`: the command line for parents, administrators and scripts.
//!
//! The program asks the daemon and shows its answers; it decides and enforces nothing. Exit codes: 0 success, 1 the
//! answer is no (denied, not permitted, not found, a changed log, an invalid policy, a failed demonstration), 2 a
//! mistake in the command line, 3 a failure elsewhere (no daemon, a file, the kernel).
//!
//! Start reading at `arguments.rs`, which defines the command line; each command has its own module. Only `output.rs`
//! writes to the terminal, and only `daemon.rs` talks to the daemon. The live view in `watch.rs` does both itself.

mod arguments;
mod client_display;
mod context;
mod daemon;
mod error;
mod event_text;
mod humanize;
mod names;
mod output;
mod pin;
mod pin_recipient;
mod policy_warnings;
mod refusal;
mod time_argument;

mod audit;
mod demo;
mod doctor;
mod entries;
mod generate;
mod grants;
mod health;
mod household;
mod pam_check;
mod policy;
mod policy_questions;
mod policy_restore;
mod requests;
mod session;
mod session_log;
mod status;
mod tour;
mod up;
mod usage;
mod watch;
mod week;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use ward_cli::OutputFormat;

use arguments::{ShepherdArgs, ShepherdCommand};
use context::CommandContext;
use error::ShepherdCliError;
use output::ConsoleOutput;

fn main() -> ExitCode {
    let arguments = ShepherdArgs::try_parse().unwrap_or_else(|error| arguments::exit_with_advice(&error));
    if arguments.output.format == OutputFormat::Json && arguments.is_interactive() {
        let problem = "this command has no JSON output; scripts can use `shepherd status --output json`";
        ShepherdArgs::command().error(ErrorKind::ArgumentConflict, problem).exit();
    }
    let mut output = ConsoleOutput::new(arguments.output.format);
    let context = CommandContext::new(&arguments, output.width());
    let result = run(arguments, &context, &mut output);
    match result.and_then(|code| output.check_written().map(|()| code)) {
        Ok(code) => code,
        Err(failure) => {
            output.print_error(&failure, &daemon::display_for_error(&failure, &context));
            failure.exit_code()
        }
    }
}

fn run(
    arguments: ShepherdArgs,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<ExitCode, ShepherdCliError> {
    let command = arguments.command.unwrap_or_else(|| default_command(context));
    match command {
        ShepherdCommand::PamCheck(check) => return pam_check::run(&check, context, output),
        ShepherdCommand::Up(up) => return up::run(&up, context, output),
        ShepherdCommand::Demo => return demo::run(context, output),
        ShepherdCommand::Tour => tour::run(output),
        ShepherdCommand::Watch => watch::run(context),
        ShepherdCommand::Status => status::run(context, output),
        ShepherdCommand::List(list) => entries::list(&list, context, output),
        ShepherdCommand::Why(why) => entries::why(&why, context, output),
        ShepherdCommand::Week(week) => week::run(&week, context, output),
        ShepherdCommand::Launch(launch) => session::launch(&launch, context, output),
        ShepherdCommand::Stop(stop) => session::stop(&stop, context, output),
        ShepherdCommand::Log(log) => session_log::run(&log, context, output),
        ShepherdCommand::Extend(extend) => session::extend(&extend, context, output),
        ShepherdCommand::Grant(grant) => grants::create(&grant, context, output),
        ShepherdCommand::Grants => grants::list(context, output),
        ShepherdCommand::Revoke(revoke) => grants::revoke(&revoke, context, output),
        ShepherdCommand::Request(request) => requests::submit(&request, context, output),
        ShepherdCommand::Requests => requests::list(context, output),
        ShepherdCommand::Decide(decide) => requests::decide(&decide, context, output),
        ShepherdCommand::Mode(mode) => household::mode(&mode, context, output),
        ShepherdCommand::Clock(clock) => household::clock(&clock, context, output),
        ShepherdCommand::Reload => household::reload(context, output),
        ShepherdCommand::Usage(usage) => usage::run(&usage, context, output),
        ShepherdCommand::Policy(command) => policy::run(&command, context, output),
        ShepherdCommand::Audit(command) => audit::run(&command, context, output),
        ShepherdCommand::Pin(command) => pin::run(&command, context, output),
        ShepherdCommand::Health => health::health(context, output),
        ShepherdCommand::Metrics => health::metrics(context, output),
        ShepherdCommand::Doctor => doctor::run(context, output),
        ShepherdCommand::Completions(completions) => generate::completions(&completions, output),
        ShepherdCommand::Man(man) => generate::man(&man, output),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the command for `shepherd` alone: the live view of the daemon, or the demonstration if there is no daemon. A
/// socket that was chosen with `--socket` never leads to the demonstration, so that a typing mistake is noticed.
fn default_command(context: &CommandContext) -> ShepherdCommand {
    if context.socket_override().is_some() || context.has_daemon() {
        ShepherdCommand::Watch
    } else {
        ShepherdCommand::Demo
    }
}
