//! Durations, times, reasons and results in words for people.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::civil::Time;
use shepherd_api::{
    EndReason, EntryGrantView, EntryScope, EntryView, GrantKind, GrantView, HealthView, Millis, PolicyItem,
    ReasonCode, SessionCounting, SessionPhase, SessionSlot, SessionView, StopRequester, TimeRequestState,
    TimeRequestView,
};
use shepherd_text::{ClosedEntry, Language, SentenceCatalogue};
use shepherd_util::{DurationText, EntryId, HumanDuration, ProfileId, parse_passwd};
use ward_process::Containment;
use ward_terminal::{TextTone, escape_label};

use crate::context::DisplaySettings;

pub(crate) fn duration(millis: Millis) -> String {
    HumanDuration(millis.into()).to_string()
}

/// Describes how the daemon contains its programs. Names that this version does not know are shown unchanged.
pub(crate) fn containment(health: &HealthView) -> Option<String> {
    let code = health.containment.as_deref()?;
    let name = Containment::from_code(code).map_or_else(|| escape_label(code), |known| known.to_string());
    Some(format!("a {name} keeps each program and everything it starts together"))
}

/// Says since when a policy file doesn't apply, and what helps. Without old rules, none can be put back.
pub(crate) fn rejected_policy(health: &HealthView, display: &DisplaySettings) -> Option<String> {
    let rejected = health.rejected_policy.as_ref()?;
    let (since, path) = (time(rejected.since, display), escape_label(&rejected.path));
    let remedy = if has_rules(health) {
        "`sudo shepherd policy restore` puts the old rules back into the file"
    } else {
        "`sudo shepherd policy init` writes rules to start from if the file is missing"
    };
    Some(format!(
        "The file has not been used since {since}. `shepherd policy check {path}` shows how to fix it, and {remedy}."
    ))
}

/// Returns true if rules are in force.
fn has_rules(health: &HealthView) -> bool {
    health.checks.iter().any(|check| check.name == "policy" && check.passed)
}

/// Says in one line that the rules in force aren't those of the policy file.
pub(crate) fn old_rules(health: &HealthView) -> Option<String> {
    let sentence = escape_label(&health.rejected_policy.as_ref()?.sentence);
    let consequence =
        if has_rules(health) { "The old rules are in force" } else { "Nothing can be launched" };
    Some(format!("{consequence}: {sentence}. `shepherd health` shows what helps."))
}

/// Formats a countdown such as `0:19`, `12:05` or `1:02:03`, rounded up so that it shows zero only when time is up.
pub(crate) fn countdown(Millis(millis): Millis) -> String {
    let seconds = millis.div_ceil(1000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// Times nearer than this are shown with seconds.
const NEAR_SECONDS: u64 = 120;

/// Formats a time in the reader's zone, as short as possible seen from today.
pub(crate) fn time(at: Timestamp, display: &DisplaySettings) -> String {
    let (then, now) = (at.to_zoned(display.zone.clone()), display.now.to_zoned(display.zone.clone()));
    let near = at.as_second().abs_diff(display.now.as_second()) < NEAR_SECONDS;
    let days = (then.date() - now.date()).get_days();
    let format = match days {
        0 if near => "%H:%M:%S",
        0 => "%H:%M",
        1 => "tomorrow %H:%M",
        -1 => "yesterday %H:%M",
        -6..=6 => "%a %H:%M",
        _ => "%Y-%m-%d %H:%M",
    };
    then.strftime(format).to_string()
}

/// Returns the time of day in an hour, as it would be typed.
pub(crate) fn time_in_an_hour(display: &DisplaySettings) -> String {
    let later = display.now + std::time::Duration::from_hours(1);
    later.to_zoned(display.zone.clone()).strftime("%H:%M").to_string()
}

/// Describes the state of a session, with its place and whether its time counts if those are unusual.
pub(crate) fn session_state(session: &SessionView, display: &DisplaySettings) -> String {
    let catalogue = display.catalogue();
    let slot = match session.slot {
        SessionSlot::Foreground => None,
        SessionSlot::Background => Some(catalogue.session_in_background()),
        SessionSlot::Login { .. } => Some(catalogue.session_logged_in()),
    };
    let counting = match session.counting {
        SessionCounting::Active => None,
        SessionCounting::Idle => Some(catalogue.session_idle()),
        SessionCounting::Stopped => Some(catalogue.session_stands_still()),
    };
    let parts = [Some(phase(session.phase, display)), slot, counting];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

pub(crate) fn phase(phase: SessionPhase, display: &DisplaySettings) -> String {
    let catalogue = display.catalogue();
    match phase {
        SessionPhase::Launching => catalogue.phase_launching(),
        SessionPhase::Running => catalogue.phase_running(),
        SessionPhase::Warned => catalogue.phase_warned(),
        SessionPhase::Expiring => catalogue.phase_expiring(),
    }
}

pub(crate) fn end_reason(end: &EndReason) -> String {
    match end {
        EndReason::Exited { code: Some(0), .. } => "the program exited".to_owned(),
        EndReason::Exited { code: Some(code), .. } => format!("the program exited with code {code}"),
        EndReason::Exited { signal: Some(signal), .. } => {
            format!("the program was killed by signal {signal}")
        }
        EndReason::Exited { .. } => "the program exited".to_owned(),
        EndReason::Expired => "time is up".to_owned(),
        EndReason::Stopped { by } => format!("stopped by {}", requester(*by)),
        EndReason::LaunchFailed { detail } => format!("could not start: {}", escape_label(detail)),
        EndReason::LaunchTimedOut => "it did not start in time".to_owned(),
        EndReason::Lost => "it was no longer running when the daemon restarted".to_owned(),
    }
}

pub(crate) fn requester(by: StopRequester) -> &'static str {
    match by {
        StopRequester::User => "the user",
        StopRequester::Admin => "a parent",
        StopRequester::Policy => "the policy",
    }
}

pub(crate) fn reason(reason: &ReasonCode, display: &DisplaySettings) -> String {
    let label_of = |item: PolicyItem<'_>| match item {
        PolicyItem::Entry(entry_id) => display.labels.get(entry_id).map(str::to_owned),
        // The daemon doesn't send the labels of budgets.
        PolicyItem::Budget(_) => None,
    };
    escape_label(&display.catalogue().reason(reason, |at| family_time(at, display), label_of))
}

/// Describes a length of time in the language of the policy.
pub(crate) fn family_duration(millis: Millis, display: &DisplaySettings) -> String {
    display.catalogue().duration(millis.into())
}

/// Formats a time in the reader's zone and in the language of the policy, as short as possible seen from now.
pub(crate) fn family_time(at: Timestamp, display: &DisplaySettings) -> String {
    let now = display.now.to_zoned(display.zone.clone());
    let then = at.to_zoned(display.zone.clone());
    if at.as_second().abs_diff(display.now.as_second()) < NEAR_SECONDS && then.date() == now.date() {
        return display.catalogue().clock_time(&then.strftime("%H:%M:%S").to_string());
    }
    display.catalogue().time(at, &now)
}

/// Returns the label of an entry, or its id if the label is unknown.
pub(crate) fn entry_name(entry_id: &EntryId, display: &DisplaySettings) -> String {
    escape_label(display.labels.get(entry_id).unwrap_or(entry_id.as_str()))
}

/// Finds what keeps an entry closed in spite of extra time.
pub(crate) fn closed_entry(entry: &EntryView, display: &DisplaySettings) -> Option<ClosedEntry> {
    let label_of = |entry_id: &EntryId| entry_name(entry_id, display);
    SentenceCatalogue::of(Language::English).closed_entry(&entry.reasons, |at| time(at, display), label_of)
}

/// Says that an entry stays closed. The parents' sentences of the command line are in English.
pub(crate) fn stays_closed(closed: &ClosedEntry) -> String {
    SentenceCatalogue::of(Language::English).stays(&closed.until)
}

/// Finds what keeps one of these entries closed in spite of extra time.
pub(crate) fn find_closed_entry(
    entries: &[EntryView],
    entry_id: &EntryId,
    display: &DisplaySettings,
) -> Option<ClosedEntry> {
    closed_entry(entries.iter().find(|entry| entry.entry_id == *entry_id)?, display)
}

/// Returns until when it is bedtime for an entry in scope, such as " until 07:00"; `None` if it isn't.
pub(crate) fn bedtime_end(
    entries: &[EntryView],
    scope: &EntryScope,
    display: &DisplaySettings,
) -> Option<String> {
    let is_meant = |entry: &&EntryView| match scope {
        EntryScope::Entry { entry_id } => entry.entry_id == *entry_id,
        EntryScope::Everything {} | EntryScope::Budget { .. } => true,
    };
    let mut reasons = entries.iter().filter(is_meant).flat_map(|entry| &entry.reasons);
    reasons.find_map(|reason| match reason {
        ReasonCode::Bedtime { until } => {
            Some(until.map_or(String::new(), |at| format!(" until {}", time(at, display))))
        }
        _ => None,
    })
}

/// Returns the session to which a grant of extra time gives run time. Budgets aren't known here.
pub(crate) fn session_of_grant<'s>(
    sessions: &'s [SessionView],
    grant: &GrantView,
) -> Option<&'s SessionView> {
    sessions
        .iter()
        .find(|session| grant.scope.includes(&session.entry_id, &[]) && grant.is_for(&session.profile))
}

/// Returns the command that lets the running session go on past its hours.
pub(crate) fn extend_command(amount: Millis) -> String {
    format!("`shepherd extend {}`", DurationText(amount.into()))
}

/// Says that a session ends with its hours, in spite of extra time.
pub(crate) fn hours_end(session: &SessionView, display: &DisplaySettings) -> Option<String> {
    let end = grant_end(session.hours_end?, display);
    Some(format!("{} still ends at {end}, because its hours end then.", escape_label(&session.label)))
}

/// Says the same to a parent who gives this much extra time, with the command that lets the session go on.
pub(crate) fn hours_end_with_cure(
    session: &SessionView,
    amount: Millis,
    display: &DisplaySettings,
) -> Option<String> {
    let (amount, entry, profile) = (DurationText(amount.into()), &session.entry_id, &session.profile);
    let sentence = hours_end(session, display)?;
    Some(format!("{sentence} To let it go on: `shepherd extend {amount} {entry} --profile {profile}`"))
}

/// Returns the label of a profile, or its id if the label is unknown.
pub(crate) fn profile_name(profile: &ProfileId, display: &DisplaySettings) -> String {
    escape_label(display.labels.profile(profile).unwrap_or(profile.as_str()))
}

/// Returns the end of a grant, for a sentence such as "until midnight".
pub(crate) fn grant_end(at: Timestamp, display: &DisplaySettings) -> String {
    if is_next_midnight(at, display) { "midnight".to_owned() } else { time(at, display) }
}

fn family_grant_end(at: Timestamp, display: &DisplaySettings) -> String {
    if is_next_midnight(at, display) { display.catalogue().midnight() } else { family_time(at, display) }
}

fn is_next_midnight(at: Timestamp, display: &DisplaySettings) -> bool {
    let (then, now) = (at.to_zoned(display.zone.clone()), display.now.to_zoned(display.zone.clone()));
    then.time() == Time::midnight() && (then.date() - now.date()).get_days() == 1
}

pub(crate) fn scope(scope: &EntryScope, display: &DisplaySettings) -> String {
    match scope {
        EntryScope::Everything {} => "everything".to_owned(),
        EntryScope::Entry { entry_id } => entry_name(entry_id, display),
        EntryScope::Budget { budget_id } => format!("budget {budget_id}"),
    }
}

pub(crate) fn gift(gift: &GrantKind, display: &DisplaySettings) -> String {
    match gift {
        GrantKind::Extra { amount } => format!("{} more", duration(*amount)),
        GrantKind::OpenUntil { until } => format!("open until {}", grant_end(*until, display)),
    }
}

/// Describes a grant for the child that has it.
pub(crate) fn entry_grant(grant: &EntryGrantView, display: &DisplaySettings) -> String {
    let catalogue = display.catalogue();
    let giver = author(&grant.by).unwrap_or_else(|| catalogue.an_administrator());
    match grant.gift {
        GrantKind::Extra { amount } => catalogue.grant_extra(
            &family_duration(amount, display),
            &giver,
            &family_grant_end(grant.lapses_at, display),
        ),
        GrantKind::OpenUntil { until } => catalogue.grant_open(&giver, &family_grant_end(until, display)),
    }
}

/// The accounts of this machine, read once.
static PASSWD: LazyLock<String> =
    LazyLock::new(|| std::fs::read_to_string("/etc/passwd").unwrap_or_default());

/// Returns the account name of an author whom the daemon names by the user id, such as `uid 1000 pid 7 (shepherd)`.
fn author(by: &str) -> Option<String> {
    let uid = by.strip_prefix("uid ").and_then(|rest| rest.split(' ').next()?.parse::<u32>().ok());
    uid.and_then(account_name)
}

/// Returns the name of an account of this machine.
pub(crate) fn account_name(uid: u32) -> Option<String> {
    parse_passwd(&PASSWD).find(|account| account.uid == uid).map(|account| escape_label(account.name))
}

/// Describes a child's request in one line, without the note.
pub(crate) fn time_request(request: &TimeRequestView, display: &DisplaySettings) -> String {
    let (name, entry) = (profile_name(&request.profile, display), entry_name(&request.entry_id, display));
    format!("{name} asks for {} of {entry}", duration(request.amount))
}

pub(crate) fn request_state(state: &TimeRequestState) -> (TextTone, String) {
    match state {
        TimeRequestState::Asked => (TextTone::Warn, "waiting".to_owned()),
        TimeRequestState::Seen => (TextTone::Warn, "seen".to_owned()),
        TimeRequestState::Granted { .. } => (TextTone::Good, "granted".to_owned()),
        TimeRequestState::Denied { why: None } => (TextTone::Bad, "denied".to_owned()),
        TimeRequestState::Denied { why: Some(why) } => {
            (TextTone::Bad, format!("denied: {}", escape_label(why)))
        }
        TimeRequestState::Lapsed => (TextTone::Faint, "expired".to_owned()),
    }
}

/// Shortens an id to its first eight digits, such as `grant-1f2e3d4c`. Commands accept the short form.
pub(crate) fn short_id(id: &str) -> &str {
    let digits = id.find('-').map_or(0, |dash| dash + 1);
    id.get(..digits + 8).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    #[test]
    fn durations_show_seconds_only_while_they_matter() {
        let shown =
            [0, 1, 999, 1000, 20_000, 60_000, 119_000, 5_400_000].map(|millis| duration(Millis(millis)));
        let expected = [
            "no time",
            "less than a second",
            "less than a second",
            "1 second",
            "20 seconds",
            "1 minute",
            "1 minute 59 seconds",
            "1 hour 30 minutes",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_countdown_is_zero_only_when_time_is_up() {
        let shown = [0, 1, 19_000, 725_000, 3_723_000].map(|millis| countdown(Millis(millis)));
        assert_eq!(shown, ["0:00", "0:01", "0:19", "12:05", "1:02:03"]);
    }

    #[test]
    fn a_time_is_as_short_as_possible() {
        let display = DisplaySettings::new("2026-11-16T10:00:00Z".parse().unwrap(), TimeZone::UTC, 80);
        let check = |at: &str, shown: &str| assert_eq!(time(at.parse().unwrap(), &display), shown);
        check("2026-11-16T10:00:30Z", "10:00:30");
        check("2026-11-16T18:30:00Z", "18:30");
        check("2026-11-17T05:00:00Z", "tomorrow 05:00");
        check("2026-11-15T05:00:00Z", "yesterday 05:00");
        check("2026-11-21T10:00:00Z", "Sat 10:00");
        check("2026-12-24T10:00:00Z", "2026-12-24 10:00");
    }

    #[test]
    fn a_grant_for_the_rest_of_the_day_ends_at_midnight() {
        let display = DisplaySettings::new("2026-11-16T10:00:00Z".parse().unwrap(), TimeZone::UTC, 80);
        let check = |at: &str, shown: &str| assert_eq!(grant_end(at.parse().unwrap(), &display), shown);
        check("2026-11-17T00:00:00Z", "midnight");
        check("2026-11-16T20:00:00Z", "20:00");
        check("2026-11-18T00:00:00Z", "Wed 00:00");
    }

    #[test]
    fn ids_are_short_but_can_be_typed() {
        assert_eq!(short_id("grant-0123456789abcdef0123456789abcdef"), "grant-01234567");
        assert_eq!(short_id("x"), "x");
    }
}
