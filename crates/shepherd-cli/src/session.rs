//! `shepherd launch`, `stop` and `extend`: commands for running sessions.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use clap::Args;
use shepherd_api::{Command, CommandReply, DaemonStateSnapshot, EndReason, EventKind, SessionView, StopMode};
use shepherd_ipc::{CallError, ServerPush};
use shepherd_util::{DurationText, SessionId};
use ward_cli::OutputFormat;
use ward_terminal::{TextTone, escape_label, paint};

use crate::context::{CommandContext, DisplaySettings};
use crate::daemon::DaemonConnection;
use crate::error::ShepherdCliError;
use crate::event_text::EventFormatter;
use crate::grants::find_by_prefix;
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
#[command(
    after_help = "Examples:\n  shepherd stop\n  shepherd stop tuxmath --profile anna\n  shepherd stop --force"
)]
pub(crate) struct StopArgs {
    /// Entry that runs, by id or label, or a session's id [default: your own, or the only one]
    #[arg(value_name = "ENTRY|SESSION")]
    which: Option<String>,
    /// Kill the program at once instead of asking it to exit first
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd extend 10m\n  shepherd extend 10m tuxmath --profile anna")]
pub(crate) struct ExtendArgs {
    /// Extra time, such as 10m
    #[arg(value_name = "DURATION", value_parser = duration_argument)]
    by: DurationText,
    /// Entry that runs, by id or label, or a session's id [default: your own, or the only one]
    #[arg(value_name = "ENTRY|SESSION")]
    which: Option<String>,
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
                let is_running =
                    snapshot.all_sessions().iter().any(|running| running.session_id == *session_id);
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
    let mut daemon = DaemonConnection::connect(context)?;
    let session_id = find_session(&mut daemon, stop.which.as_deref())?;
    let sessions = daemon.fetch_sessions();
    let reply = daemon.send_command(&Command::StopCurrent { mode, session_id })?;
    let CommandReply::Stopping { session_id } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    let stopped = sessions.iter().find(|session| session.session_id == *session_id);
    let name = stopped
        .map_or("The program".to_owned(), |session| paint(TextTone::Strong, &escape_label(&session.label)));
    output.print_result(&reply, |output| {
        output.print_line(&format!("{} {name} is stopping.", paint(TextTone::Warn, "■")));
    });
    Ok(())
}

/// Finds the session that the user means: of an entry, by the first characters of its id, or the only one of the profile
/// that was named. `None` lets the daemon choose.
fn find_session(
    daemon: &mut DaemonConnection<'_>,
    which: Option<&str>,
) -> Result<Option<SessionId>, ShepherdCliError> {
    let profile = daemon.profile();
    if which.is_none() && profile.is_none() {
        return Ok(None);
    }
    let mut sessions = daemon.fetch_sessions();
    if let Some(profile) = profile {
        sessions.retain(|session| session.profile == profile);
    }
    let Some(which) = which else {
        // The foreground comes before what runs beside it.
        let chosen = DaemonStateSnapshot::primary_session(&sessions);
        return chosen.map(|session| Some(session.session_id.clone())).ok_or(ShepherdCliError::NothingRuns);
    };
    let is_named = |session: &&SessionView| {
        session.entry_id.as_str() == which || session.label.eq_ignore_ascii_case(which)
    };
    let named: Vec<&SessionView> = sessions.iter().filter(is_named).collect();
    match named.as_slice() {
        [session] => Ok(Some(session.session_id.clone())),
        [] => {
            let ids = sessions.into_iter().map(|session| session.session_id);
            find_by_prefix("running program", "status", which, ids).map(Some)
        }
        [first, ..] => Err(if named.iter().all(|session| session.profile == first.profile) {
            let id = |session: &&SessionView| humanize::short_id(session.session_id.as_str()).to_owned();
            let ids = named.iter().map(id).collect();
            ShepherdCliError::AmbiguousName { what: "running programs", given: which.to_owned(), ids }
        } else {
            let profiles: BTreeSet<String> =
                named.iter().map(|session| session.profile.to_string()).collect();
            ShepherdCliError::AmbiguousChild {
                given: which.to_owned(),
                profiles: profiles.into_iter().collect(),
            }
        }),
    }
}

pub(crate) fn extend(
    extend: &ExtendArgs,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let mut daemon = DaemonConnection::connect(context)?;
    let session_id = find_session(&mut daemon, extend.which.as_deref())?;
    let reply = daemon.send_command(&Command::ExtendCurrent { by: extend.by.0.into(), session_id })?;
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
