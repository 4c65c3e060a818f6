//! What could be launched, and every rule about it (S3.2, S3.10).

use clap::Args;
use shepherd_api::{Command, CommandReply, EntryView, ExplanationView, ReasonCode, RuleOutcomeView};
use shepherd_util::EntryId;

use crate::context::{CommandContext, DisplaySettings};
use crate::daemon;
use crate::error::ShepherdCliError;
use crate::humanize;
use crate::output::{ConsoleOutput, TextTone, paint};
use crate::table::{ConsoleTable, TableCell};
use crate::text::{escape_unsafe, wrap};
use crate::time_argument::TimeArgument;

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd list\n  shepherd list --at \"sat 10:00\" --profile anna")]
pub(crate) struct ListArgs {
    /// At which moment, instead of now.
    #[arg(long, value_name = "TIME")]
    at: Option<TimeArgument>,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd why tuxmath\n  shepherd why tuxmath --at \"tomorrow 9:00\"")]
pub(crate) struct WhyArgs {
    /// Which entry.
    entry: EntryId,
    /// At which moment, instead of now.
    #[arg(long, value_name = "TIME")]
    at: Option<TimeArgument>,
}

pub(crate) fn list(
    list: &ListArgs,
    context: &CommandContext,
    screen: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let at_time = context.resolve_time(list.at)?;
    let reply =
        daemon::send_command(context, Command::ListEntries { at_time, profile: context.profile.clone() })?;
    let CommandReply::Entries { at, profile, entries } = &reply else {
        return Err(ShepherdCliError::UnexpectedReply);
    };
    screen.print_result(&reply, |screen| {
        if at_time.is_some() {
            let then = at.to_zoned(context.display.zone.clone()).strftime("%a %Y-%m-%d %H:%M");
            screen.print_line(&format!("For {profile}, {then}, with what was used until now:"));
        }
        if entries.is_empty() {
            screen.print_line("The policy has no entries. `shepherd policy init` writes one to begin with.");
        }
        for line in list_lines(entries, &context.display) {
            screen.print_line(&line);
        }
    });
    Ok(())
}

pub(crate) fn list_lines(entries: &[EntryView], look: &DisplaySettings) -> Vec<String> {
    if entries.is_empty() {
        return Vec::new();
    }
    let mut table = ConsoleTable::new(&["", "Entry~", "Id", "How it stands"]);
    for entry in entries {
        let (tone, mark) = entry_mark(entry);
        let mark = TableCell::with_tone(tone, mark);
        let tone = if entry.enabled || is_running(entry) { TextTone::Strong } else { TextTone::Faint };
        let id = entry.entry_id.as_str();
        table.push_row([
            mark,
            TableCell::with_tone(tone, &entry.label),
            TableCell::new(id),
            TableCell::new(describe_availability(entry, look)),
        ]);
    }
    table.render_lines(look.width)
}

/// How it stands with an entry, in a sign.
pub(crate) fn entry_mark(entry: &EntryView) -> (TextTone, &'static str) {
    match entry.enabled {
        _ if is_running(entry) => (TextTone::Good, "▶"),
        true => (TextTone::Good, "✓"),
        false => (TextTone::Bad, "✗"),
    }
}

/// Whether it is this entry that runs.
pub(crate) fn is_running(entry: &EntryView) -> bool {
    let active = |reason: &ReasonCode| matches!(reason, ReasonCode::SessionActive { entry_id, .. } if *entry_id == entry.entry_id);
    entry.reasons.iter().any(active)
}

/// How it stands with an entry, in a line: how long it could run, or the first reason why not. That something else
/// runs is the last thing to say: it is in plain sight, and passes.
pub(crate) fn describe_availability(entry: &EntryView, look: &DisplaySettings) -> String {
    if is_running(entry) {
        return "is running".to_owned();
    }
    let lasting = |reason: &&ReasonCode| !matches!(reason, ReasonCode::SessionActive { .. });
    let more = entry.reasons.iter().filter(lasting).count().saturating_sub(1);
    let first = entry.reasons.iter().find(lasting).or(entry.reasons.first());
    let mut told = match first.filter(|_| !entry.enabled) {
        Some(ReasonCode::SessionActive { entry_id, .. }) => format!("when `{entry_id}` has ended"),
        Some(first) => humanize::reason(first, look),
        None => match entry.max_run_if_started_now {
            Some(most) => format!("up to {}", humanize::duration(most)),
            None => "without end".to_owned(),
        },
    };
    let next = entry
        .next_available
        .filter(|next| !entry.enabled && first.and_then(ReasonCode::until) != Some(*next));
    if let Some(next) = next {
        told.push_str(&format!(" Next {}.", humanize::time(next, look)));
    }
    match more {
        0 => {}
        1 => told.push_str(" (and one more reason)"),
        more => told.push_str(&format!(" (and {more} more reasons)")),
    }
    told
}

pub(crate) fn why(
    why: &WhyArgs,
    context: &CommandContext,
    screen: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let at = context.resolve_time(why.at)?;
    let entry_id = why.entry.clone();
    let reply =
        daemon::send_command(context, Command::Why { entry_id, at, profile: context.profile.clone() })?;
    let CommandReply::Why { why } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    screen.print_result(&reply, |screen| {
        for line in why_lines(why, &context.display) {
            screen.print_line(&line);
        }
    });
    Ok(())
}

pub(crate) fn why_lines(why: &ExplanationView, look: &DisplaySettings) -> Vec<String> {
    let (tone, mark, answer) = if why.entry.enabled {
        (TextTone::Good, "✓", format!("yes, {}", describe_availability(&why.entry, look)))
    } else {
        let next = why.entry.next_available.map(|next| format!(", next {}", humanize::time(next, look)));
        (TextTone::Bad, "✗", format!("no{}", next.unwrap_or_default()))
    };
    let label = paint(TextTone::Strong, &escape_unsafe(&why.entry.label));
    let then = why.at.to_zoned(look.zone.clone()).strftime("%a %Y-%m-%d %H:%M");
    let mut lines = vec![format!("{} {label} for {}, {then}: {answer}", paint(tone, mark), why.profile)];
    let column = why.rules.iter().map(|rule| rule.rule.len()).max().unwrap_or(0);
    for rule in &why.rules {
        let (tone, mark, outcome) = match &rule.outcome {
            RuleOutcomeView::Passes => (TextTone::Good, "✓", None),
            RuleOutcomeView::Limits { at_most } => {
                (TextTone::Warn, "≤", Some(format!("at most {}", humanize::duration(*at_most))))
            }
            RuleOutcomeView::LimitsUntil { until } => {
                (TextTone::Warn, "≤", Some(format!("until {}", humanize::time(*until, look))))
            }
            RuleOutcomeView::Refuses { reason } => (TextTone::Bad, "✗", Some(humanize::reason(reason, look))),
        };
        let name = crate::text::pad_or_truncate(&escape_unsafe(&rule.rule), column);
        let indent = column + 6;
        let mut begin = format!("  {} {name}  ", paint(tone, mark));
        for part in wrap(&escape_unsafe(&rule.looked_at), look.width.saturating_sub(indent)) {
            lines.push(format!("{begin}{}", paint(TextTone::Faint, &part)));
            begin = " ".repeat(indent);
        }
        for part in outcome.iter().flat_map(|outcome| wrap(outcome, look.width.saturating_sub(indent + 2))) {
            lines.push(format!("{}{} {part}", " ".repeat(indent), paint(tone, "→")));
        }
    }
    lines
}

#[cfg(test)]
mod tests;
