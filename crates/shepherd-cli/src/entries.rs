//! What could be launched, and every rule about it (S3.2, S3.10).

use clap::Args;
use shepherd_api::{Command, EntryView, ReasonCode, Reply, RuleOutcome, WhyView};
use shepherd_util::EntryId;

use crate::context::{Context, Look};
use crate::daemon;
use crate::failure::Failure;
use crate::moment::Moment;
use crate::screen::{Screen, Tone, paint};
use crate::table::{Cell, Table};
use crate::text::{clean, wrap};
use crate::words;

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd list\n  shepherd list --at \"sat 10:00\" --profile anna")]
pub(crate) struct List {
    /// At which moment, instead of now.
    #[arg(long, value_name = "TIME")]
    at: Option<Moment>,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd why tuxmath\n  shepherd why tuxmath --at \"tomorrow 9:00\"")]
pub(crate) struct Why {
    /// Which entry.
    entry: EntryId,
    /// At which moment, instead of now.
    #[arg(long, value_name = "TIME")]
    at: Option<Moment>,
}

pub(crate) fn list(list: &List, context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    let at_time = context.at(list.at)?;
    let reply = daemon::ask(context, Command::ListEntries { at_time, profile: context.profile.clone() })?;
    let Reply::Entries { at, profile, entries } = &reply else { return Err(Failure::StrangeReply) };
    screen.answer(&reply, |screen| {
        if at_time.is_some() {
            let then = at.to_zoned(context.look.zone.clone()).strftime("%a %Y-%m-%d %H:%M");
            screen.line(&format!("For {profile}, {then}, with what was used until now:"));
        }
        if entries.is_empty() {
            screen.line("The policy has no entries. `shepherd policy init` writes one to begin with.");
        }
        for line in list_lines(entries, &context.look) {
            screen.line(&line);
        }
    });
    Ok(())
}

pub(crate) fn list_lines(entries: &[EntryView], look: &Look) -> Vec<String> {
    if entries.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(&["", "Entry~", "Id", "How it stands"]);
    for entry in entries {
        let (tone, mark) = mark(entry);
        let mark = Cell::toned(tone, mark);
        let tone = if entry.enabled || is_running(entry) { Tone::Strong } else { Tone::Faint };
        let id = entry.entry_id.as_str();
        table.row([mark, Cell::toned(tone, &entry.label), Cell::new(id), Cell::new(standing(entry, look))]);
    }
    table.lines(look.width)
}

/// How it stands with an entry, in a sign.
pub(crate) fn mark(entry: &EntryView) -> (Tone, &'static str) {
    match entry.enabled {
        _ if is_running(entry) => (Tone::Good, "▶"),
        true => (Tone::Good, "✓"),
        false => (Tone::Bad, "✗"),
    }
}

/// Whether it is this entry that runs.
pub(crate) fn is_running(entry: &EntryView) -> bool {
    let active = |reason: &ReasonCode| matches!(reason, ReasonCode::SessionActive { entry_id, .. } if *entry_id == entry.entry_id);
    entry.reasons.iter().any(active)
}

/// How it stands with an entry, in a line: how long it could run, or the first reason why not. That something else
/// runs is the last thing to say: it is in plain sight, and passes.
pub(crate) fn standing(entry: &EntryView, look: &Look) -> String {
    if is_running(entry) {
        return "is running".to_owned();
    }
    let lasting = |reason: &&ReasonCode| !matches!(reason, ReasonCode::SessionActive { .. });
    let more = entry.reasons.iter().filter(lasting).count().saturating_sub(1);
    let first = entry.reasons.iter().find(lasting).or(entry.reasons.first());
    let mut told = match first.filter(|_| !entry.enabled) {
        Some(ReasonCode::SessionActive { entry_id, .. }) => format!("when `{entry_id}` has ended"),
        Some(first) => words::reason(first, look),
        None => match entry.max_run_if_started_now {
            Some(most) => format!("up to {}", words::length(most)),
            None => "without end".to_owned(),
        },
    };
    let next = entry
        .next_available
        .filter(|next| !entry.enabled && first.and_then(ReasonCode::until) != Some(*next));
    if let Some(next) = next {
        told.push_str(&format!(" Next {}.", words::moment(next, look)));
    }
    match more {
        0 => {}
        1 => told.push_str(" (and one more reason)"),
        more => told.push_str(&format!(" (and {more} more reasons)")),
    }
    told
}

pub(crate) fn why(why: &Why, context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    let at = context.at(why.at)?;
    let entry_id = why.entry.clone();
    let reply = daemon::ask(context, Command::Why { entry_id, at, profile: context.profile.clone() })?;
    let Reply::Why { why } = &reply else { return Err(Failure::StrangeReply) };
    screen.answer(&reply, |screen| {
        for line in why_lines(why, &context.look) {
            screen.line(&line);
        }
    });
    Ok(())
}

pub(crate) fn why_lines(why: &WhyView, look: &Look) -> Vec<String> {
    let (tone, mark, answer) = if why.entry.enabled {
        (Tone::Good, "✓", format!("yes, {}", standing(&why.entry, look)))
    } else {
        let next = why.entry.next_available.map(|next| format!(", next {}", words::moment(next, look)));
        (Tone::Bad, "✗", format!("no{}", next.unwrap_or_default()))
    };
    let label = paint(Tone::Strong, &clean(&why.entry.label));
    let then = why.at.to_zoned(look.zone.clone()).strftime("%a %Y-%m-%d %H:%M");
    let mut lines = vec![format!("{} {label} for {}, {then}: {answer}", paint(tone, mark), why.profile)];
    let column = why.rules.iter().map(|rule| rule.rule.len()).max().unwrap_or(0);
    for rule in &why.rules {
        let (tone, mark, outcome) = match &rule.outcome {
            RuleOutcome::Passes => (Tone::Good, "✓", None),
            RuleOutcome::Limits { at_most } => {
                (Tone::Warn, "≤", Some(format!("at most {}", words::length(*at_most))))
            }
            RuleOutcome::LimitsUntil { until } => {
                (Tone::Warn, "≤", Some(format!("until {}", words::moment(*until, look))))
            }
            RuleOutcome::Refuses { reason } => (Tone::Bad, "✗", Some(words::reason(reason, look))),
        };
        let name = crate::text::fit(&clean(&rule.rule), column);
        let indent = column + 6;
        let mut begin = format!("  {} {name}  ", paint(tone, mark));
        for part in wrap(&clean(&rule.looked_at), look.width.saturating_sub(indent)) {
            lines.push(format!("{begin}{}", paint(Tone::Faint, &part)));
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
