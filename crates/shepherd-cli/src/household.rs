//! What concerns the whole household: its mode, its clock, its policy.

use clap::{Args, Subcommand};
use shepherd_api::{Command, Reply};

use crate::context::Context;
use crate::daemon;
use crate::failure::Failure;
use crate::screen::{Screen, Tone, paint};
use crate::text::clean;

/// What is said to let the calendar decide.
const AUTO: &str = "auto";

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd mode\n  shepherd mode holiday\n  shepherd mode auto")]
pub(crate) struct Mode {
    /// To which mode of the policy; `auto` lets the calendar decide again. Without it, says which applies.
    #[arg(value_name = "NAME|auto")]
    mode: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum Clock {
    /// Says that the clock is right, though it showed a later time before.
    #[command(after_help = "Examples:\n  shepherd clock confirm")]
    Confirm,
}

pub(crate) fn mode(mode: &Mode, context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    let Some(name) = &mode.mode else {
        let reply = daemon::ask(context, Command::GetState {})?;
        let Reply::State { snapshot } = reply else { return Err(Failure::StrangeReply) };
        let reply = Reply::Mode { mode: snapshot.mode };
        return shown(&reply, screen);
    };
    let mode = (name != AUTO).then(|| name.clone());
    shown(&daemon::ask(context, Command::SwitchMode { mode })?, screen)
}

fn shown(reply: &Reply, screen: &mut Screen) -> Result<(), Failure> {
    let Reply::Mode { mode } = reply else { return Err(Failure::StrangeReply) };
    screen.answer(reply, |screen| {
        if mode.is_empty() {
            screen.line("No mode applies: the policy as it is.");
        } else {
            screen.line(&format!("The mode is {}.", paint(Tone::Strong, &clean(mode))));
        }
    });
    Ok(())
}

pub(crate) fn clock(clock: &Clock, context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    let Clock::Confirm = clock;
    let reply = daemon::ask(context, Command::ConfirmClock {})?;
    let Reply::ClockConfirmed { at } = &reply else { return Err(Failure::StrangeReply) };
    screen.answer(&reply, |screen| {
        let now = at.to_zoned(context.look.zone.clone()).strftime("%a %Y-%m-%d %H:%M");
        screen.line(&format!("{} From now on it is {now}.", paint(Tone::Good, "✓")));
    });
    Ok(())
}

pub(crate) fn reload(context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    applied(&daemon::ask(context, Command::ReloadConfig {})?, screen)
}

/// Tells of a policy that applies from now on.
pub(crate) fn applied(reply: &Reply, screen: &mut Screen) -> Result<(), Failure> {
    let Reply::PolicyApplied { entry_count } = reply else { return Err(Failure::StrangeReply) };
    screen.answer(reply, |screen| {
        screen.line(&format!("{} The policy applies: {entry_count} entries.", paint(Tone::Good, "✓")));
    });
    Ok(())
}
