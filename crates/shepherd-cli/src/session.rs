//! Starting what may run, and ending or lengthening what does.

use clap::Args;
use shepherd_api::{Command, CommandReply, EndReason, EventKind, StopMode};
use shepherd_ipc::ServerPush;
use shepherd_util::{DurationText, EntryId, SessionId};

use crate::context::{CommandContext, DisplaySettings};
use crate::daemon::{self, DaemonConnection};
use crate::error::ShepherdCliError;
use crate::event_text::EventFormatter;
use crate::humanize;
use crate::output::{ConsoleOutput, TextTone, paint};
use crate::text::escape_unsafe;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  shepherd launch tuxmath\n  shepherd launch tuxmath --wait --profile anna\n\n\
                  With --wait the exit code is 0 when it ran, however it ended, and 1 when it could not be started."
)]
pub(crate) struct LaunchArgs {
    /// Which entry.
    entry: EntryId,
    /// Wait until it has ended, and tell what happens.
    #[arg(long)]
    wait: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd stop\n  shepherd stop --force")]
pub(crate) struct StopArgs {
    /// At once, without asking the program to end first.
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd extend 10m")]
pub(crate) struct ExtendArgs {
    /// How much more.
    #[arg(value_name = "DURATION")]
    by: DurationText,
}

pub(crate) fn launch(
    launch: &LaunchArgs,
    context: &CommandContext,
    screen: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let mut daemon = DaemonConnection::connect(context)?;
    if launch.wait {
        // Before the launch, so that nothing is missed.
        daemon.client().subscribe()?;
    }
    let order = Command::Launch { entry_id: launch.entry.clone(), profile: context.profile.clone() };
    let reply = daemon.send_command(order)?;
    let CommandReply::Launched { session } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    screen.print_stream_item(&reply, |screen| {
        let label = paint(TextTone::Strong, &escape_unsafe(&session.label));
        let most = match session.remaining {
            Some(most) => format!("for at most {}", humanize::duration(most)),
            None => "without end".to_owned(),
        };
        screen.print_line(&format!("{} {label} is starting, {most}", paint(TextTone::Good, "▶")));
    });
    if launch.wait {
        wait_for_end(&mut daemon, &session.session_id, &context.display, screen)
    } else {
        Ok(())
    }
}

fn wait_for_end(
    daemon: &mut DaemonConnection<'_>,
    session_id: &SessionId,
    look: &DisplaySettings,
    screen: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let mut teller = EventFormatter::default();
    loop {
        let event = match daemon.client().next_push(None)? {
            ServerPush::Event(event) => event,
            ServerPush::FellBehind { snapshot, .. } => {
                let runs = snapshot.session.is_some_and(|session| session.session_id == *session_id);
                if runs { continue } else { return Ok(()) }
            }
        };
        let about_ours = match &event.kind {
            EventKind::SessionStarted { session }
            | EventKind::WarningIssued { session, .. }
            | EventKind::DeadlineChanged { session }
            | EventKind::SessionExpired { session, .. } => session.session_id == *session_id,
            EventKind::SessionEnded { session_id: ended, .. } => ended == session_id,
            _ => false,
        };
        if !about_ours {
            continue;
        }
        screen.print_stream_item(&event, |screen| {
            if let Some(told) = teller.format_event(&event, look) {
                screen.print_line(&format!("{} {}", paint(told.tone, told.mark), told.text));
            }
        });
        match event.kind {
            EventKind::SessionEnded { end: EndReason::LaunchFailed { detail }, .. } => {
                return Err(ShepherdCliError::LaunchFailed(detail));
            }
            EventKind::SessionEnded { end: EndReason::LaunchTimedOut, .. } => {
                return Err(ShepherdCliError::LaunchFailed("it did not start in time".to_owned()));
            }
            EventKind::SessionEnded { .. } => return Ok(()),
            _ => {}
        }
    }
}

pub(crate) fn stop(
    stop: &StopArgs,
    context: &CommandContext,
    screen: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let mode = if stop.force { StopMode::Force } else { StopMode::Graceful };
    let reply = daemon::send_command(context, Command::StopCurrent { mode })?;
    let CommandReply::Stopping { .. } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    screen.print_result(&reply, |screen| {
        screen.print_line(&format!("{} It is being ended.", paint(TextTone::Warn, "■")));
    });
    Ok(())
}

pub(crate) fn extend(
    extend: &ExtendArgs,
    context: &CommandContext,
    screen: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let reply = daemon::send_command(context, Command::ExtendCurrent { by: extend.by.0.into() })?;
    let CommandReply::Extended { session } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    screen.print_result(&reply, |screen| {
        let left = session
            .remaining
            .map_or("no end".to_owned(), |left| format!("{} left", humanize::duration(left)));
        let label = paint(TextTone::Strong, &escape_unsafe(&session.label));
        screen.print_line(&format!("{} {label} has {left} now.", paint(TextTone::Good, "✓")));
    });
    Ok(())
}
