//! `shepherd mode`, `clock` and `reload`: commands for the whole household.

use clap::{Args, Subcommand};
use shepherd_api::{Command, CommandReply};
use ward_terminal::{TextTone, escape_label, format_count, paint};

use crate::context::CommandContext;
use crate::daemon::{self, DaemonConnection};
use crate::entries::full_time;
use crate::error::ShepherdCliError;
use crate::output::ConsoleOutput;
use crate::policy_warnings;

/// The mode argument that lets the calendar decide again.
const AUTO: &str = "auto";

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd mode\n  shepherd mode holiday\n  shepherd mode auto")]
pub(crate) struct ModeArgs {
    /// Mode to switch to; `auto` follows the calendar again. Without it, the current mode is shown
    #[arg(value_name = "NAME|auto")]
    mode: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum ClockCommand {
    /// Confirm that the clock is right although it has shown a later time before
    #[command(after_help = "Examples:\n  shepherd clock confirm")]
    Confirm,
}

pub(crate) fn mode(
    mode: &ModeArgs,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let Some(name) = &mode.mode else {
        let reply = daemon::send_command(context, &Command::GetState {})?;
        let CommandReply::State { snapshot } = reply else { return Err(ShepherdCliError::UnexpectedReply) };
        let reply = CommandReply::Mode { mode: snapshot.mode };
        return print_mode(&reply, output);
    };
    let mode = (name != AUTO).then(|| name.clone());
    print_mode(&daemon::send_command(context, &Command::SwitchMode { mode })?, output)
}

fn print_mode(reply: &CommandReply, output: &mut ConsoleOutput) -> Result<(), ShepherdCliError> {
    let CommandReply::Mode { mode } = reply else { return Err(ShepherdCliError::UnexpectedReply) };
    output.print_result(reply, |output| {
        if mode.is_empty() {
            output.print_line("No mode is set.");
        } else {
            output.print_line(&format!("The mode is {}.", paint(TextTone::Strong, &escape_label(mode))));
        }
    });
    Ok(())
}

pub(crate) fn clock(
    clock: &ClockCommand,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let ClockCommand::Confirm = clock;
    let reply = daemon::send_command(context, &Command::ConfirmClock {})?;
    let CommandReply::ClockConfirmed { at } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    output.print_result(&reply, |output| {
        let time = full_time(*at, &context.display);
        output.print_line(&format!("{} The clock is confirmed: it is {time}.", paint(TextTone::Good, "✓")));
        output.print_line(
            "  Entries can be launched again. Time that was used while the clock was wrong stays used.",
        );
    });
    Ok(())
}

pub(crate) fn reload(context: &CommandContext, output: &mut ConsoleOutput) -> Result<(), ShepherdCliError> {
    let mut daemon = DaemonConnection::connect(context)?;
    let reply = daemon.send_command(&Command::ReloadConfig {}).map_err(ShepherdCliError::after_new_rules)?;
    print_policy_applied(&reply, &mut daemon, output)
}

/// Prints that the daemon has applied a policy, with the warnings that a check of the policy gives.
pub(crate) fn print_policy_applied(
    reply: &CommandReply,
    daemon: &mut DaemonConnection<'_>,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let CommandReply::PolicyApplied { entry_count } = reply else {
        return Err(ShepherdCliError::UnexpectedReply);
    };
    output.print_result(reply, |output| {
        output.print_line(&format!(
            "{} The policy is in force: {}.",
            paint(TextTone::Good, "✓"),
            format_count(*entry_count, "entry", "entries")
        ));
        policy_warnings::print_warnings(&policy_warnings::warnings_in_force(daemon), output);
    });
    Ok(())
}
