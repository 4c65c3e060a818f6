//! `shepherd usage`: the time used today or in the last seven days, as bars.

use std::collections::BTreeMap;

use clap::Args;
use jiff::ToSpan;
use jiff::civil::Date;
use shepherd_api::{Command, CommandReply, UsageView};
use shepherd_util::ProfileId;
use ward_terminal::{TextTone, display_width, pad_or_truncate, paint, truncate};

use crate::context::{CommandContext, DisplaySettings};
use crate::daemon::DaemonConnection;
use crate::error::ShepherdCliError;
use crate::humanize;
use crate::output::ConsoleOutput;
use crate::status::{draw_bar, fraction};

/// The most days between the reader's date and the daemon's, which counts days in the policy's time zone: zones are up
/// to 26 hours apart.
const MAX_DATE_DIFFERENCE: i64 = 2;

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd usage\n  shepherd usage --week --profile anna")]
pub(crate) struct UsageArgs {
    /// Show the last seven days instead of today
    #[arg(long)]
    week: bool,
}

pub(crate) fn run(
    usage: &UsageArgs,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let here = context.display.now.to_zoned(context.display.zone.clone()).date();
    let (from, to) = (
        here.saturating_sub((6 + MAX_DATE_DIFFERENCE).days()),
        here.saturating_add(MAX_DATE_DIFFERENCE.days()),
    );
    let mut daemon = DaemonConnection::connect(context)?;
    let profile = daemon.profile();
    let reply = daemon.send_command(&Command::Usage { from, to, profile })?;
    let CommandReply::Usage { today, usage: mut used } = reply else {
        return Err(ShepherdCliError::UnexpectedReply);
    };
    // An older daemon doesn't say which day it has.
    let last = today.unwrap_or(here);
    let first = if usage.week { last.saturating_sub(6.days()) } else { last };
    used.retain(|usage| (first..=last).contains(&usage.day));
    let reply = CommandReply::Usage { today, usage: used.clone() };
    output.print_result(&reply, |output| {
        if used.is_empty() {
            output.print_line(if usage.week {
                "No time was used in the last seven days."
            } else {
                "No time was used today."
            });
            return;
        }
        let display = daemon.display_with_labels();
        let lines = if usage.week { week_lines(&used, &display) } else { day_lines(&used, &display) };
        for line in lines {
            output.print_line(&line);
        }
    });
    Ok(())
}

/// Draws one day: a bar for each entry and budget, by profile.
fn day_lines(used: &[UsageView], display: &DisplaySettings) -> Vec<String> {
    let names = used.iter().map(|usage| display_width(&humanize::scope(&usage.of, display)));
    let name_width = names.max().unwrap_or(0).min(display.width / 3);
    let mut lines = Vec::new();
    let mut by_profile: BTreeMap<&ProfileId, Vec<&UsageView>> = BTreeMap::new();
    for usage in used {
        by_profile.entry(&usage.profile).or_default().push(usage);
    }
    let longest = longest_usage(used);
    for (profile, used) in by_profile {
        lines.push(paint(TextTone::Strong, &humanize::profile_name(profile, display)));
        for usage in used {
            lines.push(usage_line(&humanize::scope(&usage.of, display), name_width, usage, longest, display));
        }
    }
    lines
}

/// Draws several days: a bar for each day, by profile and by entry or budget.
fn week_lines(used: &[UsageView], display: &DisplaySettings) -> Vec<String> {
    let mut by_scope: BTreeMap<(&ProfileId, String), Vec<&UsageView>> = BTreeMap::new();
    for usage in used {
        by_scope.entry((&usage.profile, humanize::scope(&usage.of, display))).or_default().push(usage);
    }
    let longest = longest_usage(used);
    let mut lines = Vec::new();
    for ((profile, scope), used) in by_scope {
        let name = humanize::profile_name(profile, display);
        lines.push(truncate(&paint(TextTone::Strong, &format!("{name}: {scope}")), display.width + 8));
        for usage in used {
            lines.push(usage_line(&day_name(usage.day), 10, usage, longest, display));
        }
    }
    lines
}

fn day_name(day: Date) -> String {
    day.strftime("%a %d %b").to_string()
}

/// Returns the longest use, which is the full length of bars without a limit.
fn longest_usage(used: &[UsageView]) -> u64 {
    used.iter().map(|usage| usage.used.0).max().unwrap_or(0)
}

fn usage_line(
    name: &str,
    name_width: usize,
    usage: &UsageView,
    longest: u64,
    display: &DisplaySettings,
) -> String {
    let whole = usage.limit.map_or(longest, |limit| limit.0);
    let share = fraction(usage.used.0, whole);
    let tone = match usage.limit {
        None => TextTone::Faint,
        Some(_) if share < 0.75 => TextTone::Good,
        Some(_) if share < 1.0 => TextTone::Warn,
        Some(_) => TextTone::Bad,
    };
    let amount = match usage.limit {
        Some(limit) => format!("{} of {}", humanize::duration(usage.used), humanize::duration(limit)),
        None => humanize::duration(usage.used),
    };
    let bar = display.width.saturating_sub(name_width + 40).clamp(10, 40);
    format!("  {}  {}  {amount}", pad_or_truncate(name, name_width), paint(tone, &draw_bar(share, bar)))
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use shepherd_api::{EntryScope, Millis};

    use super::*;

    fn used(day: &str, profile: &str, of: EntryScope, minutes: u64, limit: Option<u64>) -> UsageView {
        UsageView {
            day: day.parse().unwrap(),
            profile: profile.parse().unwrap(),
            of,
            used: Millis(minutes * 60_000),
            limit: limit.map(|minutes| Millis(minutes * 60_000)),
        }
    }

    fn sample() -> Vec<UsageView> {
        let entry = |id: &str| EntryScope::Entry { entry_id: id.parse().unwrap() };
        vec![
            used("2026-11-15", "anna", entry("tuxmath"), 20, Some(60)),
            used("2026-11-16", "anna", entry("tuxmath"), 60, Some(60)),
            used(
                "2026-11-16",
                "anna",
                EntryScope::Budget { budget_id: "games".parse().unwrap() },
                45,
                Some(50),
            ),
            used("2026-11-16", "ben", EntryScope::Everything {}, 30, None),
        ]
    }

    fn display() -> DisplaySettings {
        DisplaySettings::new("2026-11-16T10:00:00Z".parse().unwrap(), TimeZone::UTC, 80)
    }

    #[test]
    fn a_day_has_a_bar_for_each_entry_and_budget() {
        let lines = day_lines(&sample()[1..], &display()).join("\n");
        insta::assert_snapshot!(anstream::adapter::strip_str(&lines).to_string(), @r"
        anna
          tuxmath       ████████████████████████████  1 hour of 1 hour
          budget games  █████████████████████████▎░░  45 minutes of 50 minutes
        ben
          everything    ██████████████░░░░░░░░░░░░░░  30 minutes
        ");
    }

    #[test]
    fn a_week_has_a_bar_for_each_day() {
        let lines = week_lines(&sample(), &display()).join("\n");
        insta::assert_snapshot!(anstream::adapter::strip_str(&lines).to_string(), @r"
        anna: budget games
          Mon 16 Nov  ███████████████████████████░░░  45 minutes of 50 minutes
        anna: tuxmath
          Sun 15 Nov  ██████████░░░░░░░░░░░░░░░░░░░░  20 minutes of 1 hour
          Mon 16 Nov  ██████████████████████████████  1 hour of 1 hour
        ben: everything
          Mon 16 Nov  ███████████████░░░░░░░░░░░░░░░  30 minutes
        ");
    }
}
