//! `shepherd grant 20m --bedtime`: bedtime, but twenty minutes later (S19.4).

use std::time::Duration;

use jiff::{Timestamp, ToSpan};
use shepherd_api::{Command, CommandReply, EntryScope, GrantKind, Note, TimeInterval};
use shepherd_util::{DurationText, ProfileId};

use super::{GrantArgs, describe_new_grant};
use crate::daemon::DaemonConnection;
use crate::error::ShepherdCliError;
use crate::output::ConsoleOutput;

/// A bedtime that is put off: the hours that are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PutOffBedtime {
    /// `None` is now.
    from: Option<Timestamp>,
    until: Timestamp,
}

/// Puts off the bedtime of one child, or of each child that has one.
pub(super) fn create(
    grant: &GrantArgs,
    amount: Duration,
    daemon: &mut DaemonConnection<'_>,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let now = Timestamp::now();
    let to = now.checked_add(24.hours()).map_err(|_| ShepherdCliError::InvalidTime)?;
    let child = match &grant.child {
        Some(given) => Some(daemon.resolve_profile(given)?),
        None => daemon.profile(),
    };
    let timeline = |profile| Command::Timeline { from: now, to, profile };
    let replies = match &child {
        Some(profile) => vec![(None, daemon.send_command(&timeline(Some(profile.clone())))?)],
        None => daemon.ask_about_children(timeline)?,
    };
    let sessions = daemon.fetch_sessions();
    let mut given = Vec::new();
    for (_, reply) in replies {
        let CommandReply::Timeline { timeline } = reply else {
            return Err(ShepherdCliError::UnexpectedReply);
        };
        let is_running = sessions.iter().any(|session| session.profile == timeline.profile);
        let Some(later) = put_off(&timeline.bedtimes, amount, now, is_running) else { continue };
        let command = grant_command(grant, timeline.profile, later, daemon)?;
        given.push(daemon.send_command(&command)?);
    }
    if given.is_empty() {
        return Err(ShepherdCliError::NoBedtime);
    }
    for reply in &given {
        let CommandReply::Grant { grant } = reply else { return Err(ShepherdCliError::UnexpectedReply) };
        output.print_result(reply, |output| {
            output.print_line(&describe_new_grant(grant, &daemon.display_with_labels()));
        });
    }
    Ok(())
}

/// Returns the hours that are opened: from now on in bedtime, else after the beginning of the next bedtime. They begin at
/// once if a program is running, so that its warnings are right.
fn put_off(
    bedtimes: &[TimeInterval],
    amount: Duration,
    now: Timestamp,
    is_running: bool,
) -> Option<PutOffBedtime> {
    let begins = bedtimes.first()?.from;
    let from = Some(begins).filter(|begins| *begins > now && !is_running);
    Some(PutOffBedtime { from, until: later_by(begins, amount) })
}

fn later_by(at: Timestamp, amount: Duration) -> Timestamp {
    at.checked_add(amount).unwrap_or(Timestamp::MAX)
}

fn grant_command(
    grant: &GrantArgs,
    profile: ProfileId,
    later: PutOffBedtime,
    daemon: &mut DaemonConnection<'_>,
) -> Result<Command, ShepherdCliError> {
    let scope = match &grant.entry {
        Some(given) => EntryScope::Entry { entry_id: daemon.resolve_entry(given, Some(&profile))? },
        None => EntryScope::Everything {},
    };
    Ok(Command::Grant {
        profile: Some(profile),
        scope,
        gift: GrantKind::OpenUntil { until: later.until },
        valid_from: later.from,
        lapses_at: None,
        why: grant.why.clone().map(Note::try_from).transpose()?,
    })
}

/// Returns the command that puts bedtime off.
pub(crate) fn bedtime_command(amount: Duration, entry: Option<&str>, profile: Option<&ProfileId>) -> String {
    let entry = entry.map(|entry| format!(" --entry {entry}")).unwrap_or_default();
    let child = profile.map(|profile| format!(" --for {profile}")).unwrap_or_default();
    format!("shepherd grant {} --bedtime{entry}{child}", DurationText(amount))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bedtime_is_put_off_from_its_beginning_or_from_now() {
        // S19.4.
        let at = |time: &str| -> Timestamp { format!("2026-11-16T{time}:00Z").parse().unwrap() };
        let (night, twenty) =
            ([TimeInterval { from: at("20:00"), to: at("23:00") }], Duration::from_secs(1200));
        let later = |now: &str, is_running| put_off(&night, twenty, at(now), is_running).unwrap();
        assert_eq!(later("18:00", false), PutOffBedtime { from: Some(at("20:00")), until: at("20:20") });
        assert_eq!(later("19:50", true), PutOffBedtime { from: None, until: at("20:20") });
        // The daemon's answer begins now.
        assert_eq!(later("20:00", false), PutOffBedtime { from: None, until: at("20:20") });
        assert_eq!(put_off(&[], twenty, at("18:00"), false), None);
    }
}
