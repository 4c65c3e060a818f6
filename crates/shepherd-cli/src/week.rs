//! `shepherd week`: draws when entries can be launched in the next seven days (S3.10).

use clap::Args;
use jiff::{Timestamp, ToSpan, Zoned};
use shepherd_api::{Command, CommandReply, EntryTimeline, TimeInterval};
use ward_terminal::{TextTone, display_width, escape_label, pad_or_truncate, paint, truncate};

use crate::context::{CommandContext, DisplaySettings};
use crate::daemon::DaemonConnection;
use crate::entries::{print_child, print_for_children};
use crate::error::ShepherdCliError;
use crate::humanize;
use crate::output::ConsoleOutput;

const DAYS: i64 = 7;

/// The mark of times at which an entry opens once another entry has been used.
const UNLOCKABLE: &str = "?";

/// The mark of bedtime.
const BEDTIME: &str = "z";

#[derive(Args)]
#[command(
    after_help = "Examples:\n  shepherd week\n  shepherd week tuxmath --profile anna\n\nWithout `--profile`, a parent sees \
                  all children."
)]
pub(crate) struct WeekArgs {
    /// Entry, by id or label; without it, all entries are shown in one line each
    entry: Option<String>,
}

pub(crate) fn run(
    week: &WeekArgs,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let display = &context.display;
    let days = week_midnights(display);
    let (Some(first), Some(last)) = (days.first(), days.last()) else {
        return Err(ShepherdCliError::UnexpectedReply);
    };
    let (from, to) = (first.timestamp(), last.timestamp());
    let mut daemon = DaemonConnection::connect(context)?;
    let wanted = match &week.entry {
        Some(given) => Some(daemon.resolve_entry(given, daemon.profile().as_ref())?),
        None => None,
    };
    let mut replies = daemon.ask_about_children(|profile| Command::Timeline { from, to, profile })?;
    if let Some(wanted) = &wanted {
        let has_entry = |reply: &CommandReply| match reply {
            CommandReply::Timeline { timeline } => {
                timeline.entries.iter().any(|entry| entry.entry_id == *wanted)
            }
            _ => true,
        };
        replies.retain(|(_, reply)| has_entry(reply));
        if replies.is_empty() {
            return Err(daemon.unknown_entry(wanted));
        }
    }
    print_for_children(&replies, output, |reply, child, output| {
        let CommandReply::Timeline { timeline } = reply else {
            return Err(ShepherdCliError::UnexpectedReply);
        };
        if let Some(child) = child {
            print_child(child, output);
        }
        let lines = match &wanted {
            Some(wanted) => {
                let chosen = timeline.entries.iter().filter(|entry| entry.entry_id == *wanted);
                chosen.flat_map(|entry| entry_lines(entry, &timeline.bedtimes, &days, display)).collect()
            }
            None => overview_lines(&timeline.entries, &timeline.bedtimes, &days, display),
        };
        for line in lines {
            output.print_line(&line);
        }
        Ok(())
    })
}

/// Returns the midnights at the start of the seven days, and the midnight at the end of the last day.
fn week_midnights(display: &DisplaySettings) -> Vec<Zoned> {
    let today = display.now.to_zoned(display.zone.clone()).date();
    let dates = (0..=DAYS).filter_map(|days| today.checked_add(days.days()).ok());
    dates.filter_map(|date| date.to_zoned(display.zone.clone()).ok()).collect()
}

/// Draws one entry: a line for each day, 24 hours wide.
fn entry_lines(
    entry: &EntryTimeline,
    bedtimes: &[TimeInterval],
    days: &[Zoned],
    display: &DisplaySettings,
) -> Vec<String> {
    const NAME: usize = 11;
    let cells_per_hour = match display.width.saturating_sub(NAME) {
        room if room >= 96 => 4,
        room if room >= 48 => 2,
        _ => 1,
    };
    let columns = 24 * cells_per_hour;
    let mut lines = vec![paint(TextTone::Strong, &truncate(&escape_label(&entry.label), display.width))];
    let hours: String =
        (0..24).step_by(3).map(|hour| pad_or_truncate(&hour.to_string(), 3 * cells_per_hour)).collect();
    lines.push(paint(TextTone::Faint, format!("{}{hours}", " ".repeat(NAME)).trim_end()));
    for day in days.windows(2) {
        let [begin, end] = day else { continue };
        let name = begin.strftime("%a %d %b").to_string();
        let drawn = day_cells(entry, bedtimes, [begin, end], columns, display.now);
        lines.push(format!("{}{drawn}", pad_or_truncate(&name, NAME)));
    }
    lines.push(legend(60 / cells_per_hour, std::slice::from_ref(entry), bedtimes));
    lines.extend(unlock_line(entry));
    lines
}

/// Draws all entries: a line for each entry, with the days side by side.
fn overview_lines(
    entries: &[EntryTimeline],
    bedtimes: &[TimeInterval],
    days: &[Zoned],
    display: &DisplaySettings,
) -> Vec<String> {
    let room = usize::try_from(DAYS).unwrap_or(7);
    let longest = entries.iter().map(|entry| display_width(&escape_label(&entry.label))).max().unwrap_or(0);
    let (columns, label) = [24, 12, 8, 6, 4]
        .into_iter()
        .map(|columns| (columns, display.width.saturating_sub(room * (columns + 1))))
        .find(|(_, label)| *label >= longest.clamp(6, 20))
        .unwrap_or((3, 12));
    let label = label.min(longest.max(6) + 1);
    let names =
        days.iter().take(room).map(|day| pad_or_truncate(&day.strftime("%a %d").to_string(), columns));
    let head = format!("{} {}", pad_or_truncate("", label), names.collect::<Vec<_>>().join(" "));
    let mut lines = vec![paint(TextTone::Faint, head.trim_end())];
    for entry in entries {
        let mut line = pad_or_truncate(&escape_label(&entry.label), label);
        for day in days.windows(2) {
            let [begin, end] = day else { continue };
            line.push(' ');
            line.push_str(&day_cells(entry, bedtimes, [begin, end], columns, display.now));
        }
        lines.push(line);
    }
    lines.push(legend(24 * 60 / columns, entries, bedtimes));
    lines.extend(entries.iter().filter_map(unlock_line));
    lines
}

/// Describes what unlocks an entry, such as "Play opens after 10 minutes of Maths".
fn unlock_line(entry: &EntryTimeline) -> Option<String> {
    let unlock = entry.unlock.as_ref().filter(|_| !entry.unlockable.is_empty())?;
    let (label, needed) = (escape_label(&entry.label), humanize::duration(unlock.needed));
    Some(format!(
        "{} {label}: after {needed} of {} on that day",
        paint(TextTone::Warn, UNLOCKABLE),
        escape_label(&unlock.label)
    ))
}

fn legend(minutes: usize, entries: &[EntryTimeline], bedtimes: &[TimeInterval]) -> String {
    let cell =
        if minutes.is_multiple_of(60) { format!("{} h", minutes / 60) } else { format!("{minutes} min") };
    let unlockable = if entries.iter().any(|entry| !entry.unlockable.is_empty()) {
        format!("  {} to be unlocked", paint(TextTone::Warn, UNLOCKABLE))
    } else {
        String::new()
    };
    let bedtime = if bedtimes.is_empty() {
        String::new()
    } else {
        format!("  {} bedtime", paint(TextTone::Faint, BEDTIME))
    };
    format!(
        "{} open  {} partly open{unlockable}  {} closed{bedtime}  {} past   each mark is {cell}",
        paint(TextTone::Good, "█"),
        paint(TextTone::Good, "▒"),
        paint(TextTone::Faint, "·"),
        paint(TextTone::Faint, "-"),
    )
}

/// The state of one cell of the drawing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CellShade {
    Open,
    Part,
    /// Another entry has to be used first.
    Unlockable,
    Closed,
    Bedtime,
    Past,
}

fn day_cells(
    entry: &EntryTimeline,
    bedtimes: &[TimeInterval],
    [begin, end]: [&Zoned; 2],
    columns: usize,
    now: Timestamp,
) -> String {
    let minutes = 24 * 60 / i64::try_from(columns).unwrap_or(24);
    let at = |cell: usize| -> Timestamp {
        // Cells follow local time, so that noon is in the middle even on a day of 23 or 25 hours.
        let cell = i64::try_from(cell).unwrap_or(0);
        let clock = begin.datetime().checked_add((cell * minutes).minutes());
        let zoned = clock.and_then(|clock| clock.to_zoned(begin.time_zone().clone()));
        zoned.map_or(end.timestamp(), |zoned| zoned.timestamp().min(end.timestamp()))
    };
    let shades = (0..columns).map(|cell| cell_shade(entry, bedtimes, [at(cell), at(cell + 1)], now));
    let shades: Vec<CellShade> = shades.collect();
    shades.chunk_by(|one, other| one == other).map(paint_run).collect()
}

fn paint_run(run: &[CellShade]) -> String {
    let Some(first) = run.first() else { return String::new() };
    let (tone, mark) = match first {
        CellShade::Open => (TextTone::Good, "█"),
        CellShade::Part => (TextTone::Good, "▒"),
        CellShade::Unlockable => (TextTone::Warn, UNLOCKABLE),
        CellShade::Closed => (TextTone::Faint, "·"),
        CellShade::Bedtime => (TextTone::Faint, BEDTIME),
        CellShade::Past => (TextTone::Faint, "-"),
    };
    paint(tone, &mark.repeat(run.len()))
}

fn cell_shade(
    entry: &EntryTimeline,
    bedtimes: &[TimeInterval],
    [from, to]: [Timestamp; 2],
    now: Timestamp,
) -> CellShade {
    if to <= now && from < to {
        return CellShade::Past;
    }
    let from = from.max(now.min(to));
    let length = to.as_millisecond() - from.as_millisecond();
    let overlap = |intervals: &[TimeInterval]| -> i64 {
        let overlaps = intervals.iter().map(|interval| {
            (interval.to.min(to).as_millisecond() - interval.from.max(from).as_millisecond()).max(0)
        });
        overlaps.sum()
    };
    match overlap(&entry.intervals) {
        0 if overlap(&entry.unlockable) > 0 => CellShade::Unlockable,
        // Where it is bedtime for most of the time.
        0 if overlap(bedtimes) * 2 > length => CellShade::Bedtime,
        0 => CellShade::Closed,
        open if open >= length => CellShade::Open,
        _ => CellShade::Part,
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    fn display(width: usize) -> DisplaySettings {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        DisplaySettings::new("2026-11-16T09:15:00Z".parse().unwrap(), zone, width)
    }

    fn timeline(id: &str, label: &str, spans: &[(&str, &str)]) -> EntryTimeline {
        let interval = |(from, to): &(&str, &str)| TimeInterval {
            from: format!("2026-11-{from}:00Z").parse().unwrap(),
            to: format!("2026-11-{to}:00Z").parse().unwrap(),
        };
        EntryTimeline {
            entry_id: id.parse().unwrap(),
            label: label.to_owned(),
            intervals: spans.iter().map(interval).collect(),
            unlock: None,
            unlockable: Vec::new(),
        }
    }

    fn sample() -> Vec<EntryTimeline> {
        vec![
            timeline("paint", "Painting", &[("15T23:00", "22T23:00")]),
            timeline("race", "Racing 数学", &[("16T15:00", "16T17:10"), ("21T08:00", "21T11:00")]),
            timeline("off", "Switched off", &[]),
        ]
    }

    fn plain(lines: &[String]) -> String {
        anstream::adapter::strip_str(&lines.join("\n")).to_string()
    }

    #[test]
    fn times_that_another_entry_unlocks_are_not_shown_as_closed() {
        let display = display(60);
        let mut play = timeline("play", "Play", &[("16T15:00", "16T17:00")]);
        play.unlockable = timeline("play", "Play", &[("17T15:00", "17T17:00")]).intervals;
        play.unlock = Some(shepherd_api::UnlockView {
            entry_id: "maths".parse().unwrap(),
            label: "Maths".to_owned(),
            needed: shepherd_api::Millis(600_000),
        });
        let days = week_midnights(&display);
        let shown = plain(&entry_lines(&play, &[], &days, &display));
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[2].contains("████") && !lines[2].contains('?'), "{shown}");
        assert!(lines[3].contains("·????·") && !lines[3].contains('█'), "{shown}");
        assert!(shown.contains("? to be unlocked"), "{shown}");
        assert!(shown.ends_with("? Play: after 10 minutes of Maths on that day"), "{shown}");
        let all = plain(&overview_lines(&[play], &[], &days, &display));
        assert!(all.ends_with("? Play: after 10 minutes of Maths on that day"), "{all}");
    }

    #[test]
    fn bedtime_is_shown_as_closed_for_its_reason() {
        // S19.4.
        let display = display(80);
        let night = |from: &str, to: &str| timeline("night", "", &[(from, to)]).intervals.remove(0);
        let bedtimes = [night("16T19:00", "17T06:00"), night("17T19:00", "18T06:00")];
        let play = timeline("play", "Play", &[("16T14:00", "16T19:20"), ("17T06:00", "17T19:00")]);
        let shown = plain(&entry_lines(&play, &bedtimes, &week_midnights(&display), &display));
        insta::assert_snapshot!(shown.lines().skip(2).take(3).collect::<Vec<_>>().join("\n"), @r"
        Mon 16 Nov --------------------··········██████████▒zzzzzzz
        Tue 17 Nov zzzzzzzzzzzzzz██████████████████████████zzzzzzzz
        Wed 18 Nov zzzzzzzzzzzzzz··································
        ");
        assert_eq!(
            shown.lines().last().unwrap(),
            "█ open  ▒ partly open  · closed  z bedtime  - past   each mark is 30 min"
        );
    }

    #[test]
    fn a_week_of_one_entry_in_80_columns() {
        let shown = plain(&entry_lines(&sample()[1], &[], &week_midnights(&display(80)), &display(80)));
        insta::assert_snapshot!(shown, @r"
        Racing 数学
                   0     3     6     9     12    15    18    21
        Mon 16 Nov --------------------············████▒···········
        Tue 17 Nov ················································
        Wed 18 Nov ················································
        Thu 19 Nov ················································
        Fri 20 Nov ················································
        Sat 21 Nov ··················██████························
        Sun 22 Nov ················································
        █ open  ▒ partly open  · closed  - past   each mark is 30 min
        ");
    }

    #[test]
    fn a_week_of_one_entry_in_120_and_in_40_columns() {
        insta::assert_snapshot!(plain(&entry_lines(&sample()[1], &[], &week_midnights(&display(120)), &display(120))), @r"
        Racing 数学
                   0           3           6           9           12          15          18          21
        Mon 16 Nov -----------------------------------------·······················████████▒·······················
        Tue 17 Nov ································································································
        Wed 18 Nov ································································································
        Thu 19 Nov ································································································
        Fri 20 Nov ································································································
        Sat 21 Nov ····································████████████················································
        Sun 22 Nov ································································································
        █ open  ▒ partly open  · closed  - past   each mark is 15 min
        ");
        insta::assert_snapshot!(plain(&entry_lines(&sample()[1], &[], &week_midnights(&display(40)), &display(40))), @r"
        Racing 数学
                   0  3  6  9  12 15 18 21
        Mon 16 Nov ----------······██▒·····
        Tue 17 Nov ························
        Wed 18 Nov ························
        Thu 19 Nov ························
        Fri 20 Nov ························
        Sat 21 Nov ·········███············
        Sun 22 Nov ························
        █ open  ▒ partly open  · closed  - past   each mark is 1 h
        ");
    }

    #[test]
    fn a_week_of_everything_fits() {
        for width in [40, 60, 80, 120, 200] {
            let shown =
                plain(&overview_lines(&sample(), &[], &week_midnights(&display(width)), &display(width)));
            let table = shown.lines().take(4);
            assert!(table.clone().all(|line| display_width(line) <= width), "{width}:\n{shown}");
        }
        insta::assert_snapshot!(plain(&overview_lines(&sample(), &[], &week_midnights(&display(80)), &display(80))), @r"
                      Mon 16   Tue 17   Wed 18   Thu 19   Fri 20   Sat 21   Sun 22
        Painting      ---█████ ████████ ████████ ████████ ████████ ████████ ████████
        Racing 数学   ---··▒▒· ········ ········ ········ ········ ···█···· ········
        Switched off  ---····· ········ ········ ········ ········ ········ ········
        █ open  ▒ partly open  · closed  - past   each mark is 3 h
        ");
    }

    #[test]
    fn noon_is_in_the_middle_of_a_day_of_23_hours() {
        // S4.3: the clock jumps on 29 March 2026.
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let display = DisplaySettings::new("2026-03-28T23:00:00Z".parse().unwrap(), zone, 40);
        let noon = TimeInterval {
            from: "2026-03-29T10:00:00Z".parse().unwrap(),
            to: "2026-03-29T11:00:00Z".parse().unwrap(),
        };
        let entry = EntryTimeline {
            entry_id: "noon".parse().unwrap(),
            label: "Noon".to_owned(),
            intervals: vec![noon],
            unlock: None,
            unlockable: Vec::new(),
        };
        let days = week_midnights(&display);
        let cells = day_cells(&entry, &[], [&days[0], &days[1]], 24, display.now);
        assert_eq!(
            anstream::adapter::strip_str(&cells).to_string(),
            format!("{}█{}", "·".repeat(12), "·".repeat(11))
        );
    }
}
