//! Starting what may run, and ending or lengthening what does.

use clap::Args;
use shepherd_api::{Command, EndReason, EventKind, Reply, StopMode};
use shepherd_ipc::Pushed;
use shepherd_util::{DurationText, EntryId, SessionId};

use crate::context::{Context, Look};
use crate::daemon::{self, Daemon};
use crate::failure::Failure;
use crate::screen::{Screen, Tone, paint};
use crate::tell::Teller;
use crate::text::clean;
use crate::words;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  shepherd launch tuxmath\n  shepherd launch tuxmath --wait --profile anna\n\n\
                  With --wait the exit code is 0 when it ran, however it ended, and 1 when it could not be started."
)]
pub(crate) struct Launch {
    /// Which entry.
    entry: EntryId,
    /// Wait until it has ended, and tell what happens.
    #[arg(long)]
    wait: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd stop\n  shepherd stop --force")]
pub(crate) struct Stop {
    /// At once, without asking the program to end first.
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd extend 10m")]
pub(crate) struct Extend {
    /// How much more.
    #[arg(value_name = "DURATION")]
    by: DurationText,
}

pub(crate) fn launch(launch: &Launch, context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    let mut daemon = Daemon::connect(context)?;
    if launch.wait {
        // Before the launch, so that nothing is missed.
        daemon.client().subscribe()?;
    }
    let order = Command::Launch { entry_id: launch.entry.clone(), profile: context.profile.clone() };
    let reply = daemon.ask(order)?;
    let Reply::Launched { session } = &reply else { return Err(Failure::StrangeReply) };
    screen.next_answer(&reply, |screen| {
        let label = paint(Tone::Strong, &clean(&session.label));
        let most = match session.remaining {
            Some(most) => format!("for at most {}", words::length(most)),
            None => "without end".to_owned(),
        };
        screen.line(&format!("{} {label} is starting, {most}", paint(Tone::Good, "▶")));
    });
    if launch.wait { wait(&mut daemon, &session.session_id, &context.look, screen) } else { Ok(()) }
}

fn wait(
    daemon: &mut Daemon<'_>,
    session_id: &SessionId,
    look: &Look,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let mut teller = Teller::default();
    loop {
        let event = match daemon.client().pushed(None)? {
            Pushed::Event(event) => event,
            Pushed::FellBehind { snapshot, .. } => {
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
        screen.next_answer(&event, |screen| {
            if let Some(told) = teller.tell(&event, look) {
                screen.line(&format!("{} {}", paint(told.tone, told.mark), told.text));
            }
        });
        match event.kind {
            EventKind::SessionEnded { end: EndReason::LaunchFailed { detail }, .. } => {
                return Err(Failure::LaunchFailed(detail));
            }
            EventKind::SessionEnded { end: EndReason::LaunchTimedOut, .. } => {
                return Err(Failure::LaunchFailed("it did not start in time".to_owned()));
            }
            EventKind::SessionEnded { .. } => return Ok(()),
            _ => {}
        }
    }
}

pub(crate) fn stop(stop: &Stop, context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    let mode = if stop.force { StopMode::Force } else { StopMode::Graceful };
    let reply = daemon::ask(context, Command::StopCurrent { mode })?;
    let Reply::Stopping { .. } = &reply else { return Err(Failure::StrangeReply) };
    screen.answer(&reply, |screen| screen.line(&format!("{} It is being ended.", paint(Tone::Warn, "■"))));
    Ok(())
}

pub(crate) fn extend(extend: &Extend, context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    let reply = daemon::ask(context, Command::ExtendCurrent { by: extend.by.0.into() })?;
    let Reply::Extended { session } = &reply else { return Err(Failure::StrangeReply) };
    screen.answer(&reply, |screen| {
        let left =
            session.remaining.map_or("no end".to_owned(), |left| format!("{} left", words::length(left)));
        let label = paint(Tone::Strong, &clean(&session.label));
        screen.line(&format!("{} {label} has {left} now.", paint(Tone::Good, "✓")));
    });
    Ok(())
}
