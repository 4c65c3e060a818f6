//! `shepherd launch`, `stop` and `extend`: commands for the running session.

use std::time::{Duration, Instant};

use clap::Args;
use shepherd_api::{Command, CommandReply, EndReason, EventKind, SessionView, StopMode};
use shepherd_ipc::{CallError, ServerPush};
use shepherd_util::DurationText;
use ward_cli::OutputFormat;
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
                  The exit code is 0 if the program ran, however it ended, and 1 if it could not start."
)]
pub(crate) struct LaunchArgs {
    /// Entry, by id or label
    entry: String,
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
    let profile = daemon.profile();
    let entry_id = daemon.resolve_entry(&launch.entry, profile.as_ref())?;
    let follow = match (launch.wait, output.format()) {
        (true, _) => LaunchFollowUp::End,
        (false, OutputFormat::Text) => LaunchFollowUp::Start,
        // A script gets its one object at once.
        (false, OutputFormat::Json) => LaunchFollowUp::Nothing,
    };
    if follow != LaunchFollowUp::Nothing {
        // Subscribed before the launch, so that no event is missed.
        daemon.client().subscribe()?;
    }
    let order = Command::Launch { entry_id, profile, display: context.desktop() };
    let reply = daemon.send_command(&order)?;
    let CommandReply::Launched { session } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    output.print_stream_item(&reply, |output| {
        let label = paint(TextTone::Strong, &escape_label(&session.label));
        let most = match session.remaining {
            Some(most) => format!("for up to {}", humanize::duration(most)),
            None => "with no time limit".to_owned(),
        };
        output.print_line(&format!("{} {label} is starting, {most}", paint(TextTone::Good, "▶")));
    });
    match follow {
        LaunchFollowUp::Nothing => Ok(()),
        LaunchFollowUp::Start | LaunchFollowUp::End => {
            follow_session(&mut daemon, session, follow, &context.display, output)
        }
    }
}

/// The part of a session that `launch` waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LaunchFollowUp {
    Nothing,
    /// The start, and a failure soon after it.
    Start,
    End,
}

/// A program that ends this soon after its start has probably failed, for example because it found no screen.
const EARLY_END: Duration = Duration::from_secs(2);

/// Follows a session until it has ended, or until it has started and goes on.
fn follow_session(
    daemon: &mut DaemonConnection<'_>,
    session: &SessionView,
    follow: LaunchFollowUp,
    display: &DisplaySettings,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let session_id = &session.session_id;
    let mut formatter = EventFormatter::for_session(session);
    let mut deadline = None;
    loop {
        let left = deadline.map(|deadline: Instant| deadline.saturating_duration_since(Instant::now()));
        let event = match daemon.client().next_push(left) {
            Ok(ServerPush::Event(event)) => event,
            Ok(ServerPush::FellBehind { snapshot, .. }) => {
                let is_running = snapshot.session.is_some_and(|running| running.session_id == *session_id);
                if is_running { continue } else { return Ok(()) }
            }
            Err(CallError::TimedOut) if deadline.is_some() => return Ok(()),
            // The program is launched, and a daemon that restarts takes it over.
            Err(_) if follow == LaunchFollowUp::Start => return Ok(()),
            Err(error) => return Err(error.into()),
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
        match &event.kind {
            EventKind::SessionStarted { .. } if follow == LaunchFollowUp::Start => {
                deadline = Some(Instant::now() + EARLY_END);
                continue;
            }
            EventKind::SessionEnded { end: EndReason::LaunchFailed { detail }, .. } => {
                output.print_stream_item(&event, |_| {});
                return Err(ShepherdCliError::LaunchFailed(detail.clone()));
            }
            EventKind::SessionEnded { end: EndReason::LaunchTimedOut, .. } => {
                output.print_stream_item(&event, |_| {});
                return Err(ShepherdCliError::LaunchFailed("it did not start in time".to_owned()));
            }
            _ => {}
        }
        output.print_stream_item(&event, |output| {
            if let Some(line) = formatter.format_event(&event, display) {
                output.print_line(&format!("{} {}", paint(line.tone, line.mark), line.text));
            }
        });
        if matches!(event.kind, EventKind::SessionEnded { .. }) {
            return Ok(());
        }
    }
}

pub(crate) fn stop(
    stop: &StopArgs,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let mode = if stop.force { StopMode::Force } else { StopMode::Graceful };
    let reply = daemon::send_command(context, &Command::StopCurrent { mode })?;
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
    let reply = daemon::send_command(context, &Command::ExtendCurrent { by: extend.by.0.into() })?;
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
