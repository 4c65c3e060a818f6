//! `shepherd grant`, `grants` and `revoke`: extra time and longer hours beyond the policy (S2.7).

mod bedtime;

use clap::{ArgGroup, Args};
use jiff::Timestamp;
use shepherd_api::{Command, CommandReply, EntryScope, GrantKind, GrantView, Note};
use shepherd_util::{BudgetId, DurationText, IdError};
use ward_terminal::{ConsoleTable, TableCell, TextTone, paint};

pub(crate) use self::bedtime::bedtime_command;
use crate::context::{CommandContext, DisplaySettings};
use crate::daemon::DaemonConnection;
use crate::error::ShepherdCliError;
use crate::humanize;
use crate::output::ConsoleOutput;
use crate::refusal::open_command;
use crate::time_argument::{TimeArgument, duration_argument};

#[derive(Args)]
#[command(
    group = ArgGroup::new("gift").required(true).args(["amount", "open_until"]),
    group = ArgGroup::new("scope").args(["entry", "budget"]),
    after_help = "Examples:\n  shepherd grant 30m --entry tuxmath --for anna --why \"tidied up\"\n  \
                  shepherd grant 1h --budget games --from \"sat 9:00\"\n  shepherd grant 20m --bedtime --for anna\n  \
                  shepherd grant --open-until 20:00\n\n\
                  Without --entry or --budget the grant is for all entries, without --for it is for everybody."
)]
pub(crate) struct GrantArgs {
    /// Extra time, such as 30m
    #[arg(value_name = "DURATION", value_parser = duration_argument)]
    amount: Option<DurationText>,
    /// Put bedtime off: open entries for this long after it begins, or from now on if it has begun
    #[arg(long, requires = "amount", conflicts_with_all = ["open_until", "budget", "from", "until"])]
    bedtime: bool,
    /// Allow launches until this time, whatever the hours and the bedtime in the policy say
    #[arg(long, value_name = "TIME")]
    open_until: Option<TimeArgument>,
    /// Limit the grant to this entry, by id or label
    #[arg(long, value_name = "ENTRY")]
    entry: Option<String>,
    /// Limit the grant to this budget
    #[arg(long, value_name = "BUDGET", value_parser = budget_argument)]
    budget: Option<BudgetId>,
    /// Limit the grant to this child, by id or label
    #[arg(long = "for", value_name = "NAME")]
    child: Option<String>,
    /// Start of the grant [default: now]
    #[arg(long, value_name = "TIME")]
    from: Option<TimeArgument>,
    /// End of the grant [default: the end of the day]
    #[arg(long, value_name = "TIME")]
    until: Option<TimeArgument>,
    /// Reason, for the log
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd revoke grant-1f2e3d4c")]
pub(crate) struct RevokeArgs {
    /// Id of the grant, or the first characters of it
    #[arg(value_name = "ID")]
    id: String,
}

/// Parses the id of a budget, in upper or lower case.
fn budget_argument(text: &str) -> Result<BudgetId, IdError> {
    text.to_lowercase().parse()
}

pub(crate) fn create(
    grant: &GrantArgs,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let gift = match (grant.amount, context.resolve_time(grant.open_until)?) {
        (Some(DurationText(amount)), _) => GrantKind::Extra { amount: amount.into() },
        (None, Some(until)) => GrantKind::OpenUntil { until },
        // clap requires one of the two.
        (None, None) => return Err(ShepherdCliError::InvalidTime),
    };
    let mut daemon = DaemonConnection::connect(context)?;
    if let (true, Some(DurationText(amount))) = (grant.bedtime, grant.amount) {
        return bedtime::create(grant, amount, &mut daemon, output);
    }
    let profile = match &grant.child {
        Some(given) => Some(daemon.resolve_profile(given)?),
        None => daemon.profile(),
    };
    let scope = match (&grant.entry, &grant.budget) {
        (Some(given), _) => EntryScope::Entry { entry_id: daemon.resolve_entry(given, profile.as_ref())? },
        (None, Some(budget_id)) => EntryScope::Budget { budget_id: budget_id.clone() },
        (None, None) => EntryScope::Everything {},
    };
    let command = Command::Grant {
        profile,
        scope,
        gift,
        valid_from: context.resolve_time(grant.from)?,
        lapses_at: context.resolve_time(grant.until)?,
        why: grant.why.clone().map(Note::try_from).transpose()?,
    };
    let reply = daemon.send_command(&command)?;
    let CommandReply::Grant { grant } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    output.print_result(&reply, |output| {
        let display = daemon.display_with_labels();
        output.print_line(&describe_new_grant(grant, &display));
        if let Some(hint) = describe_obstacle(&mut daemon, grant, &display) {
            output.print_line(&hint);
        }
    });
    Ok(())
}

/// Says what prevents the use of a grant: the hours of the entry end or have ended, or another entry has to be used first.
/// A parent who says yes expects that the child can play now.
pub(crate) fn describe_obstacle(
    daemon: &mut DaemonConnection<'_>,
    grant: &GrantView,
    display: &DisplaySettings,
) -> Option<String> {
    // The display's time is older than the grant.
    if grant.valid_from > Timestamp::now() {
        return None;
    }
    let sessions = daemon.fetch_sessions();
    if let Some(session) = humanize::session_of_grant(&sessions, grant) {
        let GrantKind::Extra { amount } = grant.gift else { return None };
        return humanize::hours_end_with_cure(session, amount, display).map(|line| format!("  {line}"));
    }
    let entries = daemon.fetch_entries(grant.profile.as_ref()).ok()??;
    if let (GrantKind::Extra { amount }, Some(until)) =
        (grant.gift, humanize::bedtime_end(&entries, &grant.scope, display))
    {
        let entry = match &grant.scope {
            EntryScope::Entry { entry_id } => Some(entry_id.as_str()),
            EntryScope::Everything {} | EntryScope::Budget { .. } => None,
        };
        let command = bedtime_command(amount.into(), entry, grant.profile.as_ref());
        return Some(format!(
            "  It is bedtime{until}, and extra time doesn't open it. To open it: `{command}`"
        ));
    }
    let EntryScope::Entry { entry_id } = &grant.scope else { return None };
    let closed = humanize::find_closed_entry(&entries, entry_id, display)?;
    let sentence = humanize::stays_closed(&closed);
    match grant.gift {
        _ if closed.is_locked => Some(format!("  {sentence}")),
        GrantKind::OpenUntil { .. } => None,
        GrantKind::Extra { .. } => {
            let until = humanize::time_in_an_hour(display);
            let command = open_command(&until, entry_id, grant.profile.as_ref());
            Some(format!("  {sentence} To open it for an hour: `{command}`"))
        }
    }
}

fn describe_new_grant(grant: &GrantView, display: &DisplaySettings) -> String {
    let lapses = match grant.gift {
        GrantKind::OpenUntil { until } if until == grant.lapses_at => String::new(),
        _ => format!(", until {}", humanize::grant_end(grant.lapses_at, display)),
    };
    format!(
        "{} {} for {}: {}{lapses}. To revoke the grant: `shepherd revoke {}`",
        paint(TextTone::Good, "✓"),
        humanize::scope(&grant.scope, display),
        recipient(grant, display),
        humanize::gift(&grant.gift, display),
        humanize::short_id(grant.grant_id.as_str()),
    )
}

/// Returns the name of the child who gets a grant.
fn recipient(grant: &GrantView, display: &DisplaySettings) -> String {
    let profile = grant.profile.as_ref();
    profile.map_or("everybody".to_owned(), |profile| humanize::profile_name(profile, display))
}

pub(crate) fn list(context: &CommandContext, output: &mut ConsoleOutput) -> Result<(), ShepherdCliError> {
    let mut daemon = DaemonConnection::connect(context)?;
    let reply = daemon.send_command(&Command::ListGrants {})?;
    let CommandReply::Grants { grants } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    output.print_result(&reply, |output| {
        if grants.is_empty() {
            output.print_line("There are no grants.");
            return;
        }
        for line in list_lines(grants, &daemon.display_with_labels()) {
            output.print_line(&line);
        }
    });
    Ok(())
}

fn list_lines(grants: &[GrantView], display: &DisplaySettings) -> Vec<String> {
    if grants.is_empty() {
        return Vec::new();
    }
    let mut table =
        ConsoleTable::new(&["Id", "For", "Entry", "Gives", "Valid", "Reason"]).shrinkable(&["For"]);
    for grant in grants {
        let profile = recipient(grant, display);
        let valid = match grant.revoked_at {
            Some(at) => format!("revoked {}", humanize::time(at, display)),
            None if grant.valid_from > display.now => {
                let (from, to) =
                    (humanize::time(grant.valid_from, display), humanize::time(grant.lapses_at, display));
                format!("{from} to {to}")
            }
            None => format!("until {}", humanize::grant_end(grant.lapses_at, display)),
        };
        let why = grant.why.clone().unwrap_or_default();
        let id = humanize::short_id(grant.grant_id.as_str());
        let (scope, gift) = (humanize::scope(&grant.scope, display), humanize::gift(&grant.gift, display));
        table.push_row([id, &profile, &scope, &gift, &valid, &why].map(TableCell::new));
    }
    table.render_lines(display.width)
}

pub(crate) fn revoke(
    revoke: &RevokeArgs,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let mut daemon = DaemonConnection::connect(context)?;
    let CommandReply::Grants { grants } = daemon.send_command(&Command::ListGrants {})? else {
        return Err(ShepherdCliError::UnexpectedReply);
    };
    let ids = grants.into_iter().map(|grant| grant.grant_id);
    let grant_id = find_by_prefix("grant", "grants", &revoke.id, ids)?;
    let reply = daemon.send_command(&Command::RevokeGrant { grant_id })?;
    let CommandReply::Grant { grant } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    output.print_result(&reply, |output| {
        let id = humanize::short_id(grant.grant_id.as_str());
        output.print_line(&format!("{} Revoked {id}.", paint(TextTone::Good, "✓")));
    });
    Ok(())
}

/// Finds the only id that starts with `given`, with or without the word before its digits.
pub(crate) fn find_by_prefix<Id: Clone + Into<String>>(
    what: &'static str,
    list: &'static str,
    given: &str,
    ids: impl Iterator<Item = Id>,
) -> Result<Id, ShepherdCliError> {
    let begins = |id: &Id| {
        let id: String = id.clone().into();
        let digits = id.split_once('-').map_or("", |(_, digits)| digits);
        id.starts_with(given) || digits.starts_with(given)
    };
    let mut found: Vec<Id> = if given.is_empty() { Vec::new() } else { ids.filter(begins).collect() };
    match (found.pop(), found.is_empty()) {
        (Some(id), true) => Ok(id),
        (Some(_), false) => Err(ShepherdCliError::AmbiguousId { what, given: given.to_owned() }),
        (None, _) => Err(ShepherdCliError::NoMatch { what, given: given.to_owned(), list }),
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use shepherd_api::Millis;
    use shepherd_util::GrantId;

    use super::*;

    #[test]
    fn an_id_is_found_by_its_prefix_and_never_guessed() {
        let ids = [GrantId::from_random(0x1a << 120), GrantId::from_random(0x1b << 120)];
        let find = |given: &str| find_by_prefix("grant", "grants", given, ids.iter().cloned());
        assert_eq!(find("1a").unwrap(), ids[0]);
        assert_eq!(find("grant-1b00").unwrap(), ids[1]);
        assert_eq!(find(ids[0].as_str()).unwrap(), ids[0]);
        assert_eq!(find("1").unwrap_err().to_string(), "`1` matches several grants; type more of the id");
        for given in ["", "2", "grant-1a1"] {
            assert!(matches!(find(given).unwrap_err(), ShepherdCliError::NoMatch { .. }), "{given}");
        }
    }

    #[test]
    fn grants_are_listed_with_profile_scope_time_and_reason() {
        let display = DisplaySettings::new("2026-11-16T10:00:00Z".parse().unwrap(), TimeZone::UTC, 100);
        let grant = GrantView {
            grant_id: GrantId::from_random(0x1a2b_3c4d << 96),
            profile: Some("anna".parse().unwrap()),
            scope: EntryScope::Entry { entry_id: "tuxmath".parse().unwrap() },
            gift: GrantKind::Extra { amount: Millis(1_800_000) },
            by: "uid 1000".to_owned(),
            why: Some("tidied up".to_owned()),
            given_at: display.now,
            valid_from: display.now,
            lapses_at: "2026-11-17T00:00:00Z".parse().unwrap(),
            revoked_at: None,
        };
        let ahead = GrantView {
            profile: None,
            scope: EntryScope::Everything {},
            gift: GrantKind::OpenUntil { until: "2026-11-21T20:00:00Z".parse().unwrap() },
            why: None,
            valid_from: "2026-11-21T09:00:00Z".parse().unwrap(),
            lapses_at: "2026-11-21T20:00:00Z".parse().unwrap(),
            ..grant.clone()
        };
        let taken = GrantView { revoked_at: Some(display.now), ..grant.clone() };
        let lines = list_lines(&[grant.clone(), ahead, taken], &display).join("\n");
        insta::assert_snapshot!(anstream::adapter::strip_str(&lines).to_string(), @r"
        Id              For        Entry       Gives                 Valid                   Reason
        grant-1a2b3c4d  anna       tuxmath     30 minutes more       until midnight          tidied up
        grant-1a2b3c4d  everybody  everything  open until Sat 20:00  Sat 09:00 to Sat 20:00
        grant-1a2b3c4d  anna       tuxmath     30 minutes more       revoked 10:00:00        tidied up
        ");
        insta::assert_snapshot!(anstream::adapter::strip_str(&describe_new_grant(&grant, &display)).to_string(), @r"✓ tuxmath for anna: 30 minutes more, until midnight. To revoke the grant: `shepherd revoke grant-1a2b3c4d`");
    }
}
