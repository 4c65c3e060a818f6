//! Asking for time, and answering (S2.7).

use clap::{Args, ValueEnum};
use shepherd_api::{Command, CommandReply, Note, TimeRequestDecision, TimeRequestView};
use shepherd_util::{DurationText, EntryId};

use crate::context::{CommandContext, DisplaySettings};
use crate::daemon::{self, DaemonConnection};
use crate::error::ShepherdCliError;
use crate::grants::find_by_prefix;
use crate::humanize;
use crate::output::{ConsoleOutput, TextTone, paint};
use crate::table::{ConsoleTable, TableCell};

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd request tuxmath 15m --note \"nearly done\"")]
pub(crate) struct RequestArgs {
    /// For which entry.
    entry: EntryId,
    /// How much, in whole minutes.
    #[arg(value_name = "DURATION", value_parser = whole_minutes)]
    minutes: u32,
    /// Why.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

#[derive(Args)]
#[command(
    after_help = "Examples:\n  shepherd decide request-1f2e3d4c yes\n  shepherd decide 1f2e yes --minutes 10\n  \
                  shepherd decide 1f2e no --why \"dinner\""
)]
pub(crate) struct DecideArgs {
    /// Which request: its name, or as much of the beginning as tells it from others.
    #[arg(value_name = "ID")]
    id: String,
    /// The answer.
    #[arg(value_enum)]
    answer: DecisionArgument,
    /// So many minutes instead of what was asked for.
    #[arg(long, value_name = "N", conflicts_with = "why")]
    minutes: Option<u32>,
    /// Why not.
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DecisionArgument {
    Yes,
    No,
}

/// A request is in minutes; `90s` would be neither one nor two.
fn whole_minutes(text: &str) -> Result<u32, String> {
    let DurationText(duration) = text
        .parse()
        .map_err(|error: shepherd_util::DurationError| format!("{error}; {}", error.problem.help()))?;
    let seconds = duration.as_secs();
    match u32::try_from(seconds / 60) {
        Ok(minutes) if minutes > 0 && seconds % 60 == 0 && duration.subsec_millis() == 0 => Ok(minutes),
        _ => Err("ask for whole minutes, such as 15m or 1h".to_owned()),
    }
}

pub(crate) fn submit(
    request: &RequestArgs,
    context: &CommandContext,
    screen: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let command = Command::RequestTime {
        entry_id: request.entry.clone(),
        minutes: request.minutes,
        note: request.note.clone().map(Note::try_from).transpose()?,
        profile: context.profile.clone(),
    };
    let reply = daemon::send_command(context, command)?;
    let CommandReply::Request { request } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    screen.print_result(&reply, |screen| {
        let amount = humanize::duration(request.amount);
        let told = format!("Asked for {amount} of {}.", request.entry_id);
        screen.print_line(&format!(
            "{} {told} `shepherd requests` shows the answer.",
            paint(TextTone::Good, "✓")
        ));
    });
    Ok(())
}

pub(crate) fn list(context: &CommandContext, screen: &mut ConsoleOutput) -> Result<(), ShepherdCliError> {
    let reply = daemon::send_command(context, Command::ListRequests {})?;
    let CommandReply::Requests { requests } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    screen.print_result(&reply, |screen| {
        if requests.is_empty() {
            screen.print_line("Nobody has asked for time.");
        }
        for line in list_lines(requests, &context.display) {
            screen.print_line(&line);
        }
    });
    Ok(())
}

fn list_lines(requests: &[TimeRequestView], look: &DisplaySettings) -> Vec<String> {
    if requests.is_empty() {
        return Vec::new();
    }
    let mut table = ConsoleTable::new(&["Id", "Who~", "Entry", "Time", "Asked", "State~", "Note"]);
    for request in requests {
        let (tone, state) = humanize::request_state(&request.state);
        table.push_row([
            TableCell::new(humanize::short_id(request.request_id.as_str())),
            TableCell::new(request.profile.as_str()),
            TableCell::new(request.entry_id.as_str()),
            TableCell::new(humanize::duration(request.amount)),
            TableCell::new(humanize::time(request.asked_at, look)),
            TableCell::with_tone(tone, state),
            TableCell::new(request.note.as_deref().unwrap_or_default()),
        ]);
    }
    table.render_lines(look.width)
}

pub(crate) fn decide(
    decide: &DecideArgs,
    context: &CommandContext,
    screen: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let mut daemon = DaemonConnection::connect(context)?;
    let CommandReply::Requests { requests } = daemon.send_command(Command::ListRequests {})? else {
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
    let reply = daemon.send_command(Command::DecideRequest { request_id, decision })?;
    let CommandReply::Decided { request, grant } = &reply else {
        return Err(ShepherdCliError::UnexpectedReply);
    };
    screen.print_result(&reply, |screen| {
        let told = match grant {
            Some(grant) => {
                let gift = humanize::gift(&grant.gift, &context.display);
                format!(
                    "{} {} for {}: {gift}.",
                    paint(TextTone::Good, "✓"),
                    request.entry_id,
                    request.profile
                )
            }
            None => format!("{} {} was told no.", paint(TextTone::Good, "✓"), request.profile),
        };
        screen.print_line(&told);
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use shepherd_api::{Millis, TimeRequestState};
    use shepherd_util::RequestId;

    use super::*;

    #[test]
    fn only_whole_minutes_can_be_asked_for() {
        assert_eq!(whole_minutes("15m"), Ok(15));
        assert_eq!(whole_minutes("1h30m"), Ok(90));
        for text in ["90s", "0m", "15", "10ms", "-5m", ""] {
            assert!(whole_minutes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn requests_are_listed_and_notes_can_do_nothing_to_the_terminal() {
        let look =
            DisplaySettings { now: "2026-11-16T10:00:00Z".parse().unwrap(), zone: TimeZone::UTC, width: 80 };
        let request = TimeRequestView {
            request_id: RequestId::from_random(0x1a2b_3c4d << 96),
            profile: "anna".parse().unwrap(),
            entry_id: "tuxmath".parse().unwrap(),
            amount: Millis(900_000),
            note: Some("nearly \x1b[2Jdone, only the last level is missing, please please".to_owned()),
            asked_at: "2026-11-16T09:30:00Z".parse().unwrap(),
            lapses_at: "2026-11-16T12:00:00Z".parse().unwrap(),
            state: TimeRequestState::Asked,
        };
        let denied = TimeRequestView {
            note: None,
            state: TimeRequestState::Denied { why: Some("dinner".to_owned()) },
            ..request.clone()
        };
        let lines = list_lines(&[request, denied], &look).join("\n");
        insta::assert_snapshot!(anstream::adapter::strip_str(&lines).to_string(), @r"
        Id                Who   Entry    Time        Asked  State          Note
        request-1a2b3c4d  anna  tuxmath  15 minutes  09:30  asked          nearly
                                                                           \u{1b}[2Jdone
                                                                           , only the
                                                                           last level is
                                                                           missing,
                                                                           please please
        request-1a2b3c4d  anna  tuxmath  15 minutes  09:30  denied: dinn…
        ");
    }
}
