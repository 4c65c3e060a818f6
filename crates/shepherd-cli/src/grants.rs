//! Grants: what is given beyond the policy, as records that can be taken back (S2.7).

use clap::{ArgGroup, Args};
use shepherd_api::{Command, Gift, GrantView, Note, Reply, Scope};
use shepherd_util::{BudgetId, DurationText, EntryId, ProfileId};

use crate::context::{Context, Look};
use crate::daemon::{self, Daemon};
use crate::failure::Failure;
use crate::moment::Moment;
use crate::screen::{Screen, Tone, paint};
use crate::table::{Cell, Table};
use crate::words;

#[derive(Args)]
#[command(
    group = ArgGroup::new("gift").required(true).args(["amount", "open_until"]),
    group = ArgGroup::new("scope").args(["entry", "budget"]),
    after_help = "Examples:\n  shepherd grant 30m --entry tuxmath --for anna --why \"tidied up\"\n  \
                  shepherd grant 1h --budget games --from \"sat 9:00\"\n  shepherd grant --open-until 20:00\n\n\
                  Without --entry or --budget it is for everything, without --for for everybody."
)]
pub(crate) struct Grant {
    /// How much more time.
    #[arg(value_name = "DURATION")]
    amount: Option<DurationText>,
    /// Open until then, whatever the hours say.
    #[arg(long, value_name = "TIME")]
    open_until: Option<Moment>,
    /// For this entry only.
    #[arg(long, value_name = "ENTRY")]
    entry: Option<EntryId>,
    /// For this budget only.
    #[arg(long, value_name = "BUDGET")]
    budget: Option<BudgetId>,
    /// For whom.
    #[arg(long = "for", value_name = "NAME")]
    profile: Option<ProfileId>,
    /// From when it holds; now if absent.
    #[arg(long, value_name = "TIME")]
    from: Option<Moment>,
    /// When it lapses; at the end of the day if absent.
    #[arg(long, value_name = "TIME")]
    until: Option<Moment>,
    /// Why, for the record.
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd revoke grant-1f2e3d4c")]
pub(crate) struct Revoke {
    /// Which grant: its name, or as much of the beginning as tells it from others.
    #[arg(value_name = "ID")]
    id: String,
}

pub(crate) fn give(grant: &Grant, context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    let gift = match (grant.amount, context.at(grant.open_until)?) {
        (Some(DurationText(amount)), _) => Gift::Extra { amount: amount.into() },
        (None, Some(until)) => Gift::OpenUntil { until },
        // The command line asks for one of the two.
        (None, None) => return Err(Failure::NoSuchMoment),
    };
    let scope = match (&grant.entry, &grant.budget) {
        (Some(entry_id), _) => Scope::Entry { entry_id: entry_id.clone() },
        (None, Some(budget_id)) => Scope::Budget { budget_id: budget_id.clone() },
        (None, None) => Scope::Everything {},
    };
    let command = Command::Grant {
        profile: grant.profile.clone().or_else(|| context.profile.clone()),
        scope,
        gift,
        valid_from: context.at(grant.from)?,
        lapses_at: context.at(grant.until)?,
        why: grant.why.clone().map(Note::try_from).transpose()?,
    };
    let reply = daemon::ask(context, command)?;
    let Reply::Grant { grant } = &reply else { return Err(Failure::StrangeReply) };
    screen.answer(&reply, |screen| screen.line(&given(grant, &context.look)));
    Ok(())
}

fn given(grant: &GrantView, look: &Look) -> String {
    let whom = grant.profile.as_ref().map_or("everybody".to_owned(), ToString::to_string);
    format!(
        "{} {} for {whom}: {}, until {}. Take it back with `shepherd revoke {}`.",
        paint(Tone::Good, "✓"),
        words::scope(&grant.scope),
        words::gift(&grant.gift, look),
        words::moment(grant.lapses_at, look),
        words::short_id(grant.grant_id.as_str()),
    )
}

pub(crate) fn list(context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    let reply = daemon::ask(context, Command::ListGrants {})?;
    let Reply::Grants { grants } = &reply else { return Err(Failure::StrangeReply) };
    screen.answer(&reply, |screen| {
        if grants.is_empty() {
            screen.line("No grant holds or will hold.");
        }
        for line in list_lines(grants, &context.look) {
            screen.line(&line);
        }
    });
    Ok(())
}

fn list_lines(grants: &[GrantView], look: &Look) -> Vec<String> {
    if grants.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(&["Id", "Who~", "For", "Gives~", "Holds", "Why"]);
    for grant in grants {
        let whom = grant.profile.as_ref().map_or("everybody".to_owned(), ToString::to_string);
        let holds = match grant.revoked_at {
            Some(at) => format!("taken back {}", words::moment(at, look)),
            None if grant.valid_from > look.now => {
                let (from, to) =
                    (words::moment(grant.valid_from, look), words::moment(grant.lapses_at, look));
                format!("{from} to {to}")
            }
            None => format!("until {}", words::moment(grant.lapses_at, look)),
        };
        let why = grant.why.clone().unwrap_or_default();
        let id = words::short_id(grant.grant_id.as_str());
        let (scope, gift) = (words::scope(&grant.scope), words::gift(&grant.gift, look));
        table.row([id, &whom, &scope, &gift, &holds, &why].map(Cell::new));
    }
    table.lines(look.width)
}

pub(crate) fn revoke(revoke: &Revoke, context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    let mut daemon = Daemon::connect(context)?;
    let Reply::Grants { grants } = daemon.ask(Command::ListGrants {})? else {
        return Err(Failure::StrangeReply);
    };
    let ids = grants.into_iter().map(|grant| grant.grant_id);
    let grant_id = the_one("grant", "grants", &revoke.id, ids)?;
    let reply = daemon.ask(Command::RevokeGrant { grant_id })?;
    let Reply::Grant { grant } = &reply else { return Err(Failure::StrangeReply) };
    screen.answer(&reply, |screen| {
        let id = words::short_id(grant.grant_id.as_str());
        screen.line(&format!("{} {id} was taken back.", paint(Tone::Good, "✓")));
    });
    Ok(())
}

/// The one id that begins so, with or without the word before its digits.
pub(crate) fn the_one<Id: Clone + Into<String>>(
    what: &'static str,
    list: &'static str,
    given: &str,
    ids: impl Iterator<Item = Id>,
) -> Result<Id, Failure> {
    let begins = |id: &Id| {
        let id: String = id.clone().into();
        let digits = id.split_once('-').map_or("", |(_, digits)| digits);
        id.starts_with(given) || digits.starts_with(given)
    };
    let mut found: Vec<Id> = if given.is_empty() { Vec::new() } else { ids.filter(begins).collect() };
    match (found.pop(), found.is_empty()) {
        (Some(id), true) => Ok(id),
        (Some(_), false) => Err(Failure::SeveralOfThese { what, given: given.to_owned() }),
        (None, _) => Err(Failure::NoneOfThese { what, given: given.to_owned(), list }),
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use shepherd_api::Millis;
    use shepherd_util::GrantId;

    use super::*;

    #[test]
    fn an_id_is_found_by_its_beginning_and_never_guessed() {
        let ids = [GrantId::from_random(0x1a << 120), GrantId::from_random(0x1b << 120)];
        let find = |given: &str| the_one("grant", "grants", given, ids.iter().cloned());
        assert_eq!(find("1a").unwrap(), ids[0]);
        assert_eq!(find("grant-1b00").unwrap(), ids[1]);
        assert_eq!(find(ids[0].as_str()).unwrap(), ids[0]);
        assert_eq!(find("1").unwrap_err().to_string(), "`1` could be several grants; give more of it");
        for given in ["", "2", "grant-1a1"] {
            assert!(matches!(find(given).unwrap_err(), Failure::NoneOfThese { .. }), "{given}");
        }
    }

    #[test]
    fn grants_are_listed_with_who_what_until_and_why() {
        let look = Look { now: "2026-11-16T10:00:00Z".parse().unwrap(), zone: TimeZone::UTC, width: 100 };
        let grant = GrantView {
            grant_id: GrantId::from_random(0x1a2b_3c4d << 96),
            profile: Some("anna".parse().unwrap()),
            scope: Scope::Entry { entry_id: "tuxmath".parse().unwrap() },
            gift: Gift::Extra { amount: Millis(1_800_000) },
            by: "uid 1000".to_owned(),
            why: Some("tidied up".to_owned()),
            given_at: look.now,
            valid_from: look.now,
            lapses_at: "2026-11-17T00:00:00Z".parse().unwrap(),
            revoked_at: None,
        };
        let ahead = GrantView {
            profile: None,
            scope: Scope::Everything {},
            gift: Gift::OpenUntil { until: "2026-11-21T20:00:00Z".parse().unwrap() },
            why: None,
            valid_from: "2026-11-21T09:00:00Z".parse().unwrap(),
            lapses_at: "2026-11-21T20:00:00Z".parse().unwrap(),
            ..grant.clone()
        };
        let taken = GrantView { revoked_at: Some(look.now), ..grant.clone() };
        let lines = list_lines(&[grant.clone(), ahead, taken], &look).join("\n");
        insta::assert_snapshot!(anstream::adapter::strip_str(&lines).to_string(), @r"
        Id              Who        For         Gives                 Holds                   Why
        grant-1a2b3c4d  anna       tuxmath     30 minutes more       until tomorrow 00:00    tidied up
        grant-1a2b3c4d  everybody  everything  open until Sat 20:00  Sat 09:00 to Sat 20:00
        grant-1a2b3c4d  anna       tuxmath     30 minutes more       taken back 10:00:00     tidied up
        ");
        insta::assert_snapshot!(anstream::adapter::strip_str(&given(&grant, &look)).to_string(), @r"✓ tuxmath for anna: 30 minutes more, until tomorrow 00:00. Take it back with `shepherd revoke grant-1a2b3c4d`.");
    }
}
