//! What concerns the whole household: its mode, its clock, its policy.

use clap::{Args, Subcommand};
use shepherd_api::{Command, CommandReply};

use crate::context::CommandContext;
use crate::daemon;
use crate::error::ShepherdCliError;
use crate::output::{ConsoleOutput, TextTone, paint};
use crate::text::escape_unsafe;

/// What is said to let the calendar decide.
const AUTO: &str = "auto";

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd mode\n  shepherd mode holiday\n  shepherd mode auto")]
pub(crate) struct ModeArgs {
    /// To which mode of the policy; `auto` lets the calendar decide again. Without it, says which applies.
    #[arg(value_name = "NAME|auto")]
    mode: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum ClockCommand {
    /// Says that the clock is right, though it showed a later time before.
    #[command(after_help = "Examples:\n  shepherd clock confirm")]
    Confirm,
}

pub(crate) fn mode(
    mode: &ModeArgs,
    context: &CommandContext,
    screen: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let Some(name) = &mode.mode else {
        let reply = daemon::send_command(context, Command::GetState {})?;
        let CommandReply::State { snapshot } = reply else { return Err(ShepherdCliError::UnexpectedReply) };
        let reply = CommandReply::Mode { mode: snapshot.mode };
        return print_mode(&reply, screen);
    };
    let mode = (name != AUTO).then(|| name.clone());
    print_mode(&daemon::send_command(context, Command::SwitchMode { mode })?, screen)
}

fn print_mode(reply: &CommandReply, screen: &mut ConsoleOutput) -> Result<(), ShepherdCliError> {
    let CommandReply::Mode { mode } = reply else { return Err(ShepherdCliError::UnexpectedReply) };
    screen.print_result(reply, |screen| {
        if mode.is_empty() {
            screen.print_line("No mode applies: the policy as it is.");
        } else {
            screen.print_line(&format!("The mode is {}.", paint(TextTone::Strong, &escape_unsafe(mode))));
        }
    });
    Ok(())
}

pub(crate) fn clock(
    clock: &ClockCommand,
    context: &CommandContext,
    screen: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let ClockCommand::Confirm = clock;
    let reply = daemon::send_command(context, Command::ConfirmClock {})?;
    let CommandReply::ClockConfirmed { at } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    screen.print_result(&reply, |screen| {
        let now = at.to_zoned(context.display.zone.clone()).strftime("%a %Y-%m-%d %H:%M");
        screen.print_line(&format!("{} From now on it is {now}.", paint(TextTone::Good, "✓")));
    });
    Ok(())
}

pub(crate) fn reload(context: &CommandContext, screen: &mut ConsoleOutput) -> Result<(), ShepherdCliError> {
    print_policy_applied(&daemon::send_command(context, Command::ReloadConfig {})?, screen)
}

/// Tells of a policy that applies from now on.
pub(crate) fn print_policy_applied(
    reply: &CommandReply,
    screen: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let CommandReply::PolicyApplied { entry_count } = reply else {
        return Err(ShepherdCliError::UnexpectedReply);
    };
    screen.print_result(reply, |screen| {
        screen.print_line(&format!(
            "{} The policy applies: {entry_count} entries.",
            paint(TextTone::Good, "✓")
        ));
    });
    Ok(())
}
