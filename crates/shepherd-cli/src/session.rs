//! `shepherd launch`, `stop` and `extend`: commands for the running session.

use clap::Args;
use shepherd_api::{Command, CommandReply, EndReason, EventKind, StopMode};
use shepherd_ipc::ServerPush;
use shepherd_util::{DurationText, EntryId, SessionId};
use ward_terminal::{TextTone, escape_label, paint};

use crate::context::{CommandContext, DisplaySettings};
use crate::daemon::{self, DaemonConnection};
use crate::error::ShepherdCliError;
use crate::event_text::EventFormatter;
use crate::humanize;
use crate::output::ConsoleOutput;
use crate::time_argument::duration_argument;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  shepherd launch tuxmath\n  shepherd launch tuxmath --wait --profile anna\n\n\
                  With --wait the exit code is 0 if the program ran, however it ended, and 1 if it could not start."
)]
pub(crate) struct LaunchArgs {
    /// Id of the entry, as shown by `shepherd list`
    entry: EntryId,
    /// Wait until the session ends, and show what happens
    #[arg(long)]
    wait: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd stop\n  shepherd stop --force")]
pub(crate) struct StopArgs {
    /// Kill the program at once instead of asking it to exit first
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd extend 10m")]
pub(crate) struct ExtendArgs {
    /// Extra time, such as 10m
    #[arg(value_name = "DURATION", value_parser = duration_argument)]
    by: DurationText,
}

pub(crate) fn launch(
    launch: &LaunchArgs,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let mut daemon = DaemonConnection::connect(context)?;
    if launch.wait {
        // Subscribed before the launch, so that no event is missed.
        daemon.client().subscribe()?;
    }
    let (entry_id, profile) = (launch.entry.clone(), context.profile.clone());
    let order = Command::Launch { entry_id, profile, display: context.desktop() };
    let reply = daemon.send_command(order)?;
    let CommandReply::Launched { session } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    output.print_stream_item(&reply, |output| {
        let label = paint(TextTone::Strong, &escape_label(&session.label));
        let most = match session.remaining {
            Some(most) => format!("for up to {}", humanize::duration(most)),
            None => "with no time limit".to_owned(),
        };
        output.print_line(&format!("{} {label} is starting, {most}", paint(TextTone::Good, "▶")));
    });
    if launch.wait {
        wait_for_end(&mut daemon, &session.session_id, &context.display, output)
    } else {
        Ok(())
    }
}

fn wait_for_end(
    daemon: &mut DaemonConnection<'_>,
    session_id: &SessionId,
    display: &DisplaySettings,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let mut formatter = EventFormatter::default();
    loop {
        let event = match daemon.client().next_push(None)? {
            ServerPush::Event(event) => event,
            ServerPush::FellBehind { snapshot, .. } => {
                let is_running = snapshot.session.is_some_and(|session| session.session_id == *session_id);
                if is_running { continue } else { return Ok(()) }
            }
        };
        let is_our_session = match &event.kind {
            EventKind::SessionStarted { session }
            | EventKind::WarningIssued { session, .. }
            | EventKind::DeadlineChanged { session }
            | EventKind::SessionExpired { session, .. } => session.session_id == *session_id,
            EventKind::SessionEnded { session_id: ended, .. } => ended == session_id,
            _ => false,
        };
        if !is_our_session {
            continue;
        }
        output.print_stream_item(&event, |output| {
            if let Some(line) = formatter.format_event(&event, display) {
                output.print_line(&format!("{} {}", paint(line.tone, line.mark), line.text));
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
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let mode = if stop.force { StopMode::Force } else { StopMode::Graceful };
    let reply = daemon::send_command(context, Command::StopCurrent { mode })?;
    let CommandReply::Stopping { .. } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    output.print_result(&reply, |output| {
        output.print_line(&format!("{} The session is stopping.", paint(TextTone::Warn, "■")));
    });
    Ok(())
}

pub(crate) fn extend(
    extend: &ExtendArgs,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let reply = daemon::send_command(context, Command::ExtendCurrent { by: extend.by.0.into() })?;
    let CommandReply::Extended { session } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    output.print_result(&reply, |output| {
        let left = session
            .remaining
            .map_or("no time limit".to_owned(), |left| format!("{} left", humanize::duration(left)));
        let label = paint(TextTone::Strong, &escape_label(&session.label));
        output.print_line(&format!("{} {label} now has {left}.", paint(TextTone::Good, "✓")));
    });
    Ok(())
}
