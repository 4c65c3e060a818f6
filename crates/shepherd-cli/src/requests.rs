//! `shepherd request`, `requests` and `decide`: a child asks for time and a parent answers (S2.7).

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use shepherd_api::{
    Command, CommandReply, EntryView, Note, SessionView, TimeRequestDecision, TimeRequestState,
    TimeRequestView,
};
use shepherd_text::ClosedEntry;
use shepherd_util::DurationText;
use ward_terminal::{ConsoleTable, TableCell, TextTone, paint};

use crate::context::{CommandContext, DisplaySettings};
use crate::daemon::{self, DaemonConnection};
use crate::error::ShepherdCliError;
use crate::grants::{describe_obstacle, find_by_prefix};
use crate::humanize;
use crate::output::ConsoleOutput;
use crate::refusal::open_command;
use crate::time_argument::duration_argument;

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd request tuxmath 15m --note \"nearly done\"")]
pub(crate) struct RequestArgs {
    /// Entry, by id or label
    entry: String,
    /// Time to ask for in whole minutes, such as 15m
    #[arg(value_name = "DURATION", value_parser = whole_minutes)]
    minutes: u32,
    /// Note for the parents
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

#[derive(Args)]
#[command(
    after_help = "Examples:\n  shepherd decide request-1f2e3d4c yes\n  shepherd decide 1f2e yes --minutes 10\n  \
                  shepherd decide 1f2e no --why \"dinner\""
)]
pub(crate) struct DecideArgs {
    /// Id of the request, or the first characters of it
    #[arg(value_name = "ID")]
    id: String,
    /// Answer to the request
    #[arg(value_enum)]
    answer: DecisionArgument,
    /// Minutes to grant [default: the minutes of the request]
    #[arg(long, value_name = "N", conflicts_with = "why")]
    minutes: Option<u32>,
    /// Reason for a no
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DecisionArgument {
    Yes,
    No,
}

/// Parses a duration of whole minutes. The protocol carries minutes, so `90s` can't be expressed.
fn whole_minutes(text: &str) -> Result<u32, String> {
    let DurationText(duration) = duration_argument(text)?;
    let seconds = duration.as_secs();
    match u32::try_from(seconds / 60) {
        Ok(minutes) if minutes > 0 && seconds % 60 == 0 && duration.subsec_millis() == 0 => Ok(minutes),
        _ => Err("ask for whole minutes, such as 15m or 1h".to_owned()),
    }
}

pub(crate) fn submit(
    request: &RequestArgs,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let note = request.note.clone().map(Note::try_from).transpose()?;
    let mut daemon = DaemonConnection::connect(context)?;
    let profile = daemon.profile();
    let entry_id = daemon.resolve_entry(&request.entry, profile.as_ref())?;
    let command = Command::RequestTime { entry_id, minutes: request.minutes, note, profile };
    let reply = daemon.send_command(&command)?;
    let CommandReply::Request { request } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    output.print_result(&reply, |output| {
        let amount = humanize::duration(request.amount);
        let display = daemon.display_with_labels();
        let entry = humanize::entry_name(&request.entry_id, &display);
        output.print_line(&format!(
            "{} Asked for {amount} of {entry}. `shepherd requests` shows the answer.",
            paint(TextTone::Good, "✓")
        ));
        if let Some(closed) = find_closed_entry(&mut daemon, request, &display) {
            output.print_line(&format!(
                "  {} A yes gives time, but doesn't open it.",
                humanize::stays_closed(&closed)
            ));
        }
    });
    Ok(())
}

/// Returns the entry of a request if it stays closed: a child who asks expects that a yes opens it.
fn find_closed_entry(
    daemon: &mut DaemonConnection<'_>,
    request: &TimeRequestView,
    display: &DisplaySettings,
) -> Option<ClosedEntry> {
    let runs =
        |session: &SessionView| session.entry_id == request.entry_id && session.profile == request.profile;
    if daemon.fetch_sessions().iter().any(runs) {
        return None;
    }
    let entries = daemon.fetch_entries(Some(&request.profile)).ok()??;
    humanize::find_closed_entry(&entries, &request.entry_id, display)
}

pub(crate) fn list(context: &CommandContext, output: &mut ConsoleOutput) -> Result<(), ShepherdCliError> {
    let mut daemon = DaemonConnection::connect(context)?;
    let reply = daemon.send_command(&Command::ListRequests {})?;
    let CommandReply::Requests { requests } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    output.print_result(&reply, |output| {
        if requests.is_empty() {
            output.print_line("There are no requests.");
            return;
        }
        let display = daemon.display_with_labels();
        for line in
            list_lines(requests, &display).into_iter().chain(obstacle_lines(&mut daemon, requests, &display))
        {
            output.print_line(&line);
        }
    });
    Ok(())
}

/// Says which requests give time that can't be used because their entries stay closed, once for each entry of a child.
fn obstacle_lines(
    daemon: &mut DaemonConnection<'_>,
    requests: &[TimeRequestView],
    display: &DisplaySettings,
) -> Vec<String> {
    let sessions = daemon.fetch_sessions();
    let reader =
        if daemon::may_administer(daemon.client()) { ObstacleReader::Parent } else { ObstacleReader::Child };
    let mut entries_of = BTreeMap::new();
    let mut lines = Vec::new();
    for request in requests {
        let entries = entries_of.entry(&request.profile).or_insert_with(|| {
            daemon.fetch_entries(Some(&request.profile)).ok().flatten().unwrap_or_default()
        });
        let line = obstacle_line(request, entries, &sessions, reader, display);
        lines.extend(line.filter(|line| !lines.contains(line)));
    }
    lines
}

/// The person who reads what prevents the use of granted time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ObstacleReader {
    Child,
    /// A parent also learns the child and the command that helps.
    Parent,
}

/// Says what prevents the use of the time that was granted or asked for: the hours of the entry, or another entry that
/// has to be used first.
fn obstacle_line(
    request: &TimeRequestView,
    entries: &[EntryView],
    sessions: &[SessionView],
    reader: ObstacleReader,
    display: &DisplaySettings,
) -> Option<String> {
    let is_granted = matches!(request.state, TimeRequestState::Granted { .. });
    if !is_granted && !request.state.is_open() {
        return None;
    }
    let is_meant =
        |session: &&SessionView| session.entry_id == request.entry_id && session.profile == request.profile;
    if let Some(session) = sessions.iter().find(is_meant) {
        return match reader {
            _ if !is_granted => None,
            ObstacleReader::Child => humanize::hours_end(session, display),
            ObstacleReader::Parent => humanize::hours_end_with_cure(session, request.amount, display),
        };
    }
    let closed = humanize::find_closed_entry(entries, &request.entry_id, display)?;
    let label = humanize::entry_name(&request.entry_id, display);
    let child = match reader {
        ObstacleReader::Child => String::new(),
        ObstacleReader::Parent => format!("For {}, ", humanize::profile_name(&request.profile, display)),
    };
    let hint = match reader {
        _ if !is_granted => " A yes gives time, but doesn't open it.".to_owned(),
        ObstacleReader::Child => " The granted time doesn't open it.".to_owned(),
        ObstacleReader::Parent if closed.is_locked => String::new(),
        ObstacleReader::Parent => {
            let until = humanize::time_in_an_hour(display);
            let command = open_command(&until, &request.entry_id, Some(&request.profile));
            format!(" To open it for an hour: `{command}`")
        }
    };
    Some(format!("{child}{label} stays {}.{hint}", closed.until))
}

fn list_lines(requests: &[TimeRequestView], display: &DisplaySettings) -> Vec<String> {
    if requests.is_empty() {
        return Vec::new();
    }
    let mut table = ConsoleTable::new(&["Id", "For", "Entry", "Time", "Asked", "Answer", "Note"])
        .shrinkable(&["For", "Entry", "Answer"]);
    for request in requests {
        let (tone, state) = humanize::request_state(&request.state);
        table.push_row([
            TableCell::new(humanize::short_id(request.request_id.as_str())),
            TableCell::new(humanize::profile_name(&request.profile, display)),
            TableCell::new(humanize::entry_name(&request.entry_id, display)),
            TableCell::new(humanize::duration(request.amount)),
            TableCell::new(humanize::time(request.asked_at, display)),
            TableCell::with_tone(tone, state),
            TableCell::new(request.note.as_deref().unwrap_or_default()),
        ]);
    }
    table.render_lines(display.width)
}

pub(crate) fn decide(
    decide: &DecideArgs,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let mut daemon = DaemonConnection::connect(context)?;
    let CommandReply::Requests { requests } = daemon.send_command(&Command::ListRequests {})? else {
        return Err(ShepherdCliError::UnexpectedReply);
    };
    let ids = requests.into_iter().map(|request| request.request_id);
    let request_id = find_by_prefix("request", "requests", &decide.id, ids)?;
    let decision = match decide.answer {
        DecisionArgument::Yes => TimeRequestDecision::Grant { minutes: decide.minutes },
        DecisionArgument::No => {
            TimeRequestDecision::Deny { why: decide.why.clone().map(Note::try_from).transpose()? }
        }
    };
    let reply = daemon.send_command(&Command::DecideRequest { request_id, decision })?;
    let CommandReply::Decided { request, grant } = &reply else {
        return Err(ShepherdCliError::UnexpectedReply);
    };
    output.print_result(&reply, |output| {
        let display = daemon.display_with_labels();
        let entry = humanize::entry_name(&request.entry_id, &display);
        let name = humanize::profile_name(&request.profile, &display);
        let answer = match grant {
            Some(grant) => format!("{entry} for {name}: {}.", humanize::gift(&grant.gift, &display)),
            None => format!("Denied the request of {name} for {entry}."),
        };
        output.print_line(&format!("{} {answer}", paint(TextTone::Good, "✓")));
        let hint = grant.as_ref().and_then(|grant| describe_obstacle(&mut daemon, grant, &display));
        if let Some(hint) = hint {
            output.print_line(&hint);
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use shepherd_api::{Millis, ReasonCode, SessionPhase};
    use shepherd_util::{GrantId, RequestId, SessionId};

    use super::*;

    #[test]
    fn only_whole_minutes_can_be_asked_for() {
        assert_eq!(whole_minutes("15m"), Ok(15));
        assert_eq!(whole_minutes("1h30m"), Ok(90));
        for text in ["90s", "0m", "15", "10ms", "-5m", ""] {
            assert!(whole_minutes(text).is_err(), "{text}");
        }
    }

    fn request() -> TimeRequestView {
        TimeRequestView {
            request_id: RequestId::from_random(0x1a2b_3c4d << 96),
            profile: "anna".parse().unwrap(),
            entry_id: "tuxmath".parse().unwrap(),
            amount: Millis(900_000),
            note: Some("nearly \x1b[2Jdone, only the last level is missing, please please".to_owned()),
            asked_at: "2026-11-16T09:30:00Z".parse().unwrap(),
            lapses_at: "2026-11-16T12:00:00Z".parse().unwrap(),
            state: TimeRequestState::Asked,
        }
    }

    #[test]
    fn requests_are_listed_with_escaped_notes() {
        let display = DisplaySettings::new("2026-11-16T10:00:00Z".parse().unwrap(), TimeZone::UTC, 80);
        let request = request();
        let denied = TimeRequestView {
            note: None,
            state: TimeRequestState::Denied { why: Some("dinner".to_owned()) },
            ..request.clone()
        };
        let lines = list_lines(&[request, denied], &display).join("\n");
        insta::assert_snapshot!(anstream::adapter::strip_str(&lines).to_string(), @r"
        Id                For   Entry    Time        Asked  Answer         Note
        request-1a2b3c4d  anna  tuxmath  15 minutes  09:30  waiting        nearly
                                                                           \u{1b}[2Jdone
                                                                           , only the
                                                                           last level is
                                                                           missing,
                                                                           please please
        request-1a2b3c4d  anna  tuxmath  15 minutes  09:30  denied: dinn…
        ");
    }

    // S2.7
    #[test]
    fn a_child_learns_that_hours_prevent_the_use_of_granted_time() {
        let display = DisplaySettings::new("2026-11-16T10:00:00Z".parse().unwrap(), TimeZone::UTC, 80);
        let opens = "2026-11-16T15:00:00Z".parse().unwrap();
        let closed = EntryView {
            entry_id: "tuxmath".parse().unwrap(),
            label: "Maths".to_owned(),
            icon_ref: None,
            kind: "process".to_owned(),
            enabled: false,
            reasons: vec![ReasonCode::OutsideHours { next_opening: Some(opens) }],
            max_run_if_started_now: None,
            next_available: Some(opens),
            left_today: None,
            grants: Vec::new(),
        };
        let session = SessionView {
            session_id: SessionId::from_random(1),
            entry_id: "tuxmath".parse().unwrap(),
            label: "Maths".to_owned(),
            profile: "anna".parse().unwrap(),
            slot: Default::default(),
            counting: Default::default(),
            phase: SessionPhase::Running,
            started_at: display.now,
            remaining: Some(Millis(60_000)),
            hours_end: Some(opens),
            ran: None,
            warned: None,
        };
        let of_ben = SessionView { profile: "ben".parse().unwrap(), ..session.clone() };
        let granted = TimeRequestState::Granted { grant_id: GrantId::from_random(1) };
        let line = |state: TimeRequestState, session: Option<&SessionView>| {
            let request = TimeRequestView { state, ..request() };
            let sessions: Vec<SessionView> = session.into_iter().cloned().collect();
            obstacle_line(&request, std::slice::from_ref(&closed), &sessions, ObstacleReader::Child, &display)
        };
        let stays = "tuxmath stays closed until 15:00, because of its hours. ";
        let useless = Some(format!("{stays}The granted time doesn't open it."));
        assert_eq!(line(granted.clone(), None), useless);
        assert_eq!(line(granted.clone(), Some(&of_ben)), useless);
        assert_eq!(
            line(TimeRequestState::Asked, None),
            Some(format!("{stays}A yes gives time, but doesn't open it."))
        );
        let still_ends = "Maths still ends at 15:00, because its hours end then.".to_owned();
        assert_eq!(line(granted, Some(&session)), Some(still_ends));
        assert_eq!(line(TimeRequestState::Asked, Some(&session)), None);
        assert_eq!(line(TimeRequestState::Denied { why: None }, None), None);
        assert_eq!(line(TimeRequestState::Lapsed, None), None);
    }
}
