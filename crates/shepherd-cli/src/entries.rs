//! `shepherd list` and `shepherd why`: the entries with their availability, and every rule for one entry (S3.2, S3.10).

use clap::Args;
use jiff::Timestamp;
use shepherd_api::{
    Command, CommandReply, EntryView, ExplanationView, Language, ProfileView, ReasonCode, RuleOutcomeView,
    RuleView,
};
use ward_cli::OutputFormat;
use ward_terminal::{ConsoleTable, TableCell, TextTone, escape_label, paint, wrap};

use crate::context::{CommandContext, DisplaySettings};
use crate::daemon::DaemonConnection;
use crate::error::ShepherdCliError;
use crate::humanize;
use crate::output::ConsoleOutput;
use crate::time_argument::TimeArgument;

/// Columns before the text of a rule.
const RULE_INDENT: usize = 4;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  shepherd list\n  shepherd list --at \"sat 10:00\" --profile anna\n\nWithout \
                  `--profile`, a parent sees all children."
)]
pub(crate) struct ListArgs {
    /// Show the state at this time instead of now
    #[arg(long, value_name = "TIME")]
    at: Option<TimeArgument>,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd why tuxmath\n  shepherd why tuxmath --at \"tomorrow 9:00\"")]
pub(crate) struct WhyArgs {
    /// Entry, by id or label
    entry: String,
    /// Show the state at this time instead of now
    #[arg(long, value_name = "TIME")]
    at: Option<TimeArgument>,
}

pub(crate) fn list(
    list: &ListArgs,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let at_time = context.resolve_time(list.at)?;
    let mut daemon = DaemonConnection::connect(context)?;
    let replies = daemon.ask_about_children(|profile| Command::ListEntries { at_time, profile })?;
    let display = match output.format() {
        OutputFormat::Text => daemon.display_with_labels(),
        OutputFormat::Json => context.display.clone(),
    };
    print_for_children(&replies, output, |reply, child, output| {
        let CommandReply::Entries { at, profile, entries } = reply else {
            return Err(ShepherdCliError::UnexpectedReply);
        };
        if at_time.is_some() {
            let (time, name) = (full_time(*at, &display), humanize::profile_name(profile, &display));
            output.print_line(&display.catalogue().list_heading(&name, &time));
        } else if let Some(child) = child {
            print_child(child, output);
        }
        if entries.is_empty() {
            output.print_line(&match child {
                Some(_) => display.catalogue().no_entries_for_child(),
                None => display.catalogue().no_entries(),
            });
        }
        let date = |at: Timestamp| at.to_zoned(display.zone.clone()).date();
        let mut entries = entries.clone();
        if date(*at) != date(display.now) {
            // The time that is left on that day is not the time that is left today.
            entries.iter_mut().for_each(|entry| entry.left_today = None);
        }
        let runs_for_another = entries.iter().any(is_running)
            && daemon.fetch_sessions().iter().all(|session| session.profile != *profile);
        let owner = if runs_for_another { SessionOwner::OtherChild } else { SessionOwner::ListedChild };
        for line in list_lines(&entries, owner, &display) {
            output.print_line(&line);
        }
        Ok(())
    })
}

/// Prints the replies for one child or several: with `text` for people, and as one JSON value for each child.
pub(crate) fn print_for_children(
    replies: &[(Option<ProfileView>, CommandReply)],
    output: &mut ConsoleOutput,
    mut text: impl FnMut(&CommandReply, Option<&ProfileView>, &mut ConsoleOutput) -> Result<(), ShepherdCliError>,
) -> Result<(), ShepherdCliError> {
    for (number, (child, reply)) in replies.iter().enumerate() {
        match (output.format(), child) {
            (OutputFormat::Json, None) => output.print_result(reply, |_| {}),
            (OutputFormat::Json, Some(_)) => output.print_stream_item(reply, |_| {}),
            (OutputFormat::Text, _) => {
                if number > 0 {
                    output.print_line("");
                }
                text(reply, child.as_ref(), output)?;
            }
        }
    }
    Ok(())
}

/// Prints the name of a child, above what is about that child.
pub(crate) fn print_child(child: &ProfileView, output: &mut ConsoleOutput) {
    output.print_line(&paint(TextTone::Strong, &escape_label(&child.label)));
}

/// The child whose session is running. Of several children with the same entry, only one can be running it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionOwner {
    /// The child whose entries are listed.
    ListedChild,
    OtherChild,
}

pub(crate) fn list_lines(
    entries: &[EntryView],
    owner: SessionOwner,
    display: &DisplaySettings,
) -> Vec<String> {
    if entries.is_empty() {
        return Vec::new();
    }
    let mut table = ConsoleTable::new(&["", "Entry", "Id", "Status"]).shrinkable(&["Entry"]);
    for entry in entries {
        let is_running = is_running(entry) && owner == SessionOwner::ListedChild;
        let (tone, mark) = entry_mark(entry, is_running);
        let mark = TableCell::with_tone(tone, mark);
        let tone = if entry.enabled || is_running { TextTone::Strong } else { TextTone::Faint };
        let id = entry.entry_id.as_str();
        table.push_row([
            mark,
            TableCell::with_tone(tone, &entry.label),
            TableCell::new(id),
            TableCell::new(describe_entry(entry, is_running, display)),
        ]);
    }
    table.render_lines(display.width)
}

/// Returns the mark for an entry: running, available or not available.
pub(crate) fn entry_mark(entry: &EntryView, is_running: bool) -> (TextTone, &'static str) {
    match entry.enabled {
        _ if is_running => (TextTone::Good, "▶"),
        true => (TextTone::Good, "✓"),
        false => (TextTone::Bad, "✗"),
    }
}

/// Returns true if this entry is running.
pub(crate) fn is_running(entry: &EntryView) -> bool {
    let active = |reason: &ReasonCode| matches!(reason, ReasonCode::SessionActive { entry_id, .. } if *entry_id == entry.entry_id);
    entry.reasons.iter().any(active)
}

/// Describes in one line how long an entry could run, or the first reason why it can't be launched, and what is left of
/// the day.
pub(crate) fn describe_availability(entry: &EntryView, display: &DisplaySettings) -> String {
    describe_entry(entry, is_running(entry), display)
}

/// Describes an entry. A running session of another entry is named only if there is no other reason, because it passes
/// soon.
pub(crate) fn describe_entry(entry: &EntryView, is_running: bool, display: &DisplaySettings) -> String {
    let (catalogue, rest) = (display.catalogue(), describe_rest_of_day(entry, display));
    let and_rest = |text: String| rest.as_ref().map_or(text.clone(), |rest| format!("{text}, {rest}"));
    if is_running {
        return and_rest(catalogue.phase_running());
    }
    let lasting = |reason: &&ReasonCode| !matches!(reason, ReasonCode::SessionActive { .. });
    let more = entry.reasons.iter().filter(lasting).count().saturating_sub(1);
    let first = entry.reasons.iter().find(lasting).or(entry.reasons.first());
    let mut text = match first.filter(|_| !entry.enabled) {
        Some(ReasonCode::SessionActive { entry_id, .. }) => {
            catalogue.after_session(&humanize::entry_name(entry_id, display))
        }
        Some(first) => humanize::reason(first, display),
        None => and_rest(match entry.max_run_if_started_now {
            Some(most) => catalogue.run_up_to(&humanize::family_duration(most, display)),
            None => catalogue.no_time_limit(),
        }),
    };
    let next = entry
        .next_available
        .filter(|next| !entry.enabled && first.and_then(ReasonCode::until) != Some(*next));
    if let Some(next) = next {
        text.push_str(&format!(" {}", catalogue.available_from(&humanize::family_time(next, display))));
    }
    if more > 0 {
        text.push_str(&format!(" {}", catalogue.more_reasons(u64::try_from(more).unwrap_or(u64::MAX))));
    }
    text
}

/// Describes the time that is left today and the grants that help, such as "45 minutes left today (+30 minutes from mum
/// until 20:00)".
pub(crate) fn describe_rest_of_day(entry: &EntryView, display: &DisplaySettings) -> Option<String> {
    let left = entry
        .left_today
        .map(|left| display.catalogue().left_today(&humanize::family_duration(left, display)));
    let grants: Vec<String> =
        entry.grants.iter().map(|grant| humanize::entry_grant(grant, display)).collect();
    match (left, grants.as_slice()) {
        (left, []) => left,
        (None, grants) => Some(grants.join(", ")),
        (Some(left), grants) => Some(format!("{left} ({})", grants.join(", "))),
    }
}

/// Formats a time with its date and time zone, for headings.
pub(crate) fn full_time(at: Timestamp, display: &DisplaySettings) -> String {
    let catalogue = display.catalogue();
    catalogue.time_in_zone(&catalogue.full_time(&at.to_zoned(display.zone.clone())), &display.zone_name(at))
}

pub(crate) fn why(
    why: &WhyArgs,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let at = context.resolve_time(why.at)?;
    let mut daemon = DaemonConnection::connect(context)?;
    let profile = daemon.profile();
    let entry_id = daemon.resolve_entry(&why.entry, profile.as_ref())?;
    let reply = daemon.send_command(&Command::Why { entry_id, at, profile })?;
    let CommandReply::Why { why } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    output.print_result(&reply, |output| {
        for line in why_lines(why, &daemon.display_with_labels()) {
            output.print_line(&line);
        }
    });
    Ok(())
}

pub(crate) fn why_lines(why: &ExplanationView, display: &DisplaySettings) -> Vec<String> {
    let catalogue = display.catalogue();
    let (tone, mark, answer) = if why.entry.enabled {
        let how_long = describe_availability(&why.entry, display);
        (TextTone::Good, "✓", catalogue.entry_available(&how_long))
    } else {
        let answer = match why.entry.next_available {
            Some(next) => catalogue.entry_unavailable_until(&humanize::family_time(next, display)),
            None => catalogue.entry_unavailable(),
        };
        (TextTone::Bad, "✗", answer)
    };
    let label = escape_label(&why.entry.label);
    let (time, name) = (full_time(why.at, display), humanize::profile_name(&why.profile, display));
    let heading = catalogue.why_heading(&label, &name, &time, &answer);
    let mut lines = Vec::new();
    for part in wrap(&heading, display.width.saturating_sub(2)) {
        let part = match part.strip_prefix(&label) {
            Some(rest) if lines.is_empty() => format!("{}{rest}", paint(TextTone::Strong, &label)),
            _ => part,
        };
        let start = if lines.is_empty() { paint(tone, mark) } else { " ".to_owned() };
        lines.push(format!("{start} {part}"));
    }
    for rule in &why.rules {
        lines.extend(rule_lines(rule, &display.zone_name(why.at), display));
    }
    lines
}

/// Describes a rule by its facts and its result. The daemon sends the facts in English, so in another language only the
/// result is shown, if the rule limits or refuses a launch.
fn rule_lines(rule: &RuleView, zone: &str, display: &DisplaySettings) -> Vec<String> {
    let catalogue = display.catalogue();
    let (tone, mark, outcome) = match &rule.outcome {
        RuleOutcomeView::Passes => (TextTone::Good, "✓", None),
        RuleOutcomeView::Limits { at_most } => {
            let most = humanize::family_duration(*at_most, display);
            (TextTone::Warn, "≤", Some(catalogue.limit_at_most(&most)))
        }
        RuleOutcomeView::LimitsUntil { until } => {
            (TextTone::Warn, "≤", Some(catalogue.limit_until(&humanize::family_time(*until, display))))
        }
        RuleOutcomeView::Refuses { reason } => (TextTone::Bad, "✗", Some(humanize::reason(reason, display))),
    };
    let marked = format!("  {} ", paint(tone, mark));
    let outcome = outcome.unwrap_or_default();
    if catalogue.language() != Language::English {
        return indented_lines(&marked, RULE_INDENT, &outcome, display.width);
    }
    let remark = RuleView::policy_zone_remark(zone);
    let facts = escape_label(rule.facts.strip_suffix(&remark).unwrap_or(&rule.facts));
    let mut lines = indented_lines(&marked, RULE_INDENT, &facts, display.width);
    let arrow = format!("{}{} ", " ".repeat(RULE_INDENT), paint(tone, "→"));
    lines.extend(indented_lines(&arrow, RULE_INDENT + 2, &outcome, display.width));
    lines
}

/// Wraps a text to lines after a start of this many columns. Returns no line for an empty text.
fn indented_lines(start: &str, columns: usize, text: &str, width: usize) -> Vec<String> {
    let indent = " ".repeat(columns);
    let parts = wrap(text, width.saturating_sub(columns)).into_iter().filter(|part| !part.is_empty());
    parts
        .enumerate()
        .map(|(number, part)| format!("{}{part}", if number == 0 { start } else { &indent }))
        .collect()
}

#[cfg(test)]
mod tests;
