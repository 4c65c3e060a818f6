//! Asking for time, and answering (S2.7).

use clap::{Args, ValueEnum};
use shepherd_api::{Command, Decision, Note, Reply, RequestView};
use shepherd_util::{DurationText, EntryId};

use crate::context::{Context, Look};
use crate::daemon::{self, Daemon};
use crate::failure::Failure;
use crate::grants::the_one;
use crate::screen::{Screen, Tone, paint};
use crate::table::{Cell, Table};
use crate::words;

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd request tuxmath 15m --note \"nearly done\"")]
pub(crate) struct Request {
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
pub(crate) struct Decide {
    /// Which request: its name, or as much of the beginning as tells it from others.
    #[arg(value_name = "ID")]
    id: String,
    /// The answer.
    #[arg(value_enum)]
    answer: Answer,
    /// So many minutes instead of what was asked for.
    #[arg(long, value_name = "N", conflicts_with = "why")]
    minutes: Option<u32>,
    /// Why not.
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Answer {
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

pub(crate) fn ask(request: &Request, context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    let command = Command::RequestTime {
        entry_id: request.entry.clone(),
        minutes: request.minutes,
        note: request.note.clone().map(Note::try_from).transpose()?,
        profile: context.profile.clone(),
    };
    let reply = daemon::ask(context, command)?;
    let Reply::Request { request } = &reply else { return Err(Failure::StrangeReply) };
    screen.answer(&reply, |screen| {
        let amount = words::length(request.amount);
        let told = format!("Asked for {amount} of {}.", request.entry_id);
        screen.line(&format!("{} {told} `shepherd requests` shows the answer.", paint(Tone::Good, "✓")));
    });
    Ok(())
}

pub(crate) fn list(context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    let reply = daemon::ask(context, Command::ListRequests {})?;
    let Reply::Requests { requests } = &reply else { return Err(Failure::StrangeReply) };
    screen.answer(&reply, |screen| {
        if requests.is_empty() {
            screen.line("Nobody has asked for time.");
        }
        for line in list_lines(requests, &context.look) {
            screen.line(&line);
        }
    });
    Ok(())
}

fn list_lines(requests: &[RequestView], look: &Look) -> Vec<String> {
    if requests.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(&["Id", "Who~", "Entry", "Time", "Asked", "State~", "Note"]);
    for request in requests {
        let (tone, state) = words::request_state(&request.state);
        table.row([
            Cell::new(words::short_id(request.request_id.as_str())),
            Cell::new(request.profile.as_str()),
            Cell::new(request.entry_id.as_str()),
            Cell::new(words::length(request.amount)),
            Cell::new(words::moment(request.asked_at, look)),
            Cell::toned(tone, state),
            Cell::new(request.note.as_deref().unwrap_or_default()),
        ]);
    }
    table.lines(look.width)
}

pub(crate) fn decide(decide: &Decide, context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    let mut daemon = Daemon::connect(context)?;
    let Reply::Requests { requests } = daemon.ask(Command::ListRequests {})? else {
        return Err(Failure::StrangeReply);
    };
    let ids = requests.into_iter().map(|request| request.request_id);
    let request_id = the_one("request", "requests", &decide.id, ids)?;
    let decision = match decide.answer {
        Answer::Yes => Decision::Grant { minutes: decide.minutes },
        Answer::No => Decision::Deny { why: decide.why.clone().map(Note::try_from).transpose()? },
    };
    let reply = daemon.ask(Command::DecideRequest { request_id, decision })?;
    let Reply::Decided { request, grant } = &reply else { return Err(Failure::StrangeReply) };
    screen.answer(&reply, |screen| {
        let told = match grant {
            Some(grant) => {
                let gift = words::gift(&grant.gift, &context.look);
                format!("{} {} for {}: {gift}.", paint(Tone::Good, "✓"), request.entry_id, request.profile)
            }
            None => format!("{} {} was told no.", paint(Tone::Good, "✓"), request.profile),
        };
        screen.line(&told);
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use shepherd_api::{Millis, RequestState};
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
        let look = Look { now: "2026-11-16T10:00:00Z".parse().unwrap(), zone: TimeZone::UTC, width: 80 };
        let request = RequestView {
            request_id: RequestId::from_random(0x1a2b_3c4d << 96),
            profile: "anna".parse().unwrap(),
            entry_id: "tuxmath".parse().unwrap(),
            amount: Millis(900_000),
            note: Some("nearly \x1b[2Jdone, only the last level is missing, please please".to_owned()),
            asked_at: "2026-11-16T09:30:00Z".parse().unwrap(),
            lapses_at: "2026-11-16T12:00:00Z".parse().unwrap(),
            state: RequestState::Asked,
        };
        let denied = RequestView {
            note: None,
            state: RequestState::Denied { why: Some("dinner".to_owned()) },
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
