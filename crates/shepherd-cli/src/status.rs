//! `shepherd status`: the running sessions, their remaining time, and the household's mode.

use shepherd_api::{Command, CommandReply, DaemonStateSnapshot, EntryView, Millis, SessionView};
use ward_terminal::{TextTone, escape_label, paint, truncate};

use crate::context::{CommandContext, DisplaySettings, PolicyLabels};
use crate::daemon::{DaemonConnection, fetch_old_rules};
use crate::entries::describe_rest_of_day;
use crate::error::ShepherdCliError;
use crate::humanize;
use crate::output::ConsoleOutput;

/// Width of the bar, in columns.
const BAR_WIDTH: usize = 40;

pub(crate) fn run(context: &CommandContext, output: &mut ConsoleOutput) -> Result<(), ShepherdCliError> {
    let mut daemon = DaemonConnection::connect(context)?;
    let reply = daemon.send_command(&Command::GetState {})?;
    let CommandReply::State { snapshot } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    let mut labels = PolicyLabels::default();
    labels.set_language(snapshot.language);
    let display = DisplaySettings { now: snapshot.at, ..context.display.with_labels(labels) };
    output.print_result(&reply, |output| {
        let sessions = snapshot.all_sessions().iter();
        let entries: Vec<Option<EntryView>> =
            sessions.map(|session| fetch_entry(&mut daemon, session)).collect();
        output.print_line(&format_status(snapshot, &entries, &display));
        if let Some(old_rules) = fetch_old_rules(daemon.client()) {
            output.print_marked(TextTone::Warn, "!", &old_rules);
        }
    });
    Ok(())
}

/// Asks for the entry of a session. Not every client may see the entries of another child.
fn fetch_entry(daemon: &mut DaemonConnection<'_>, session: &SessionView) -> Option<EntryView> {
    let entries = daemon.fetch_entries(Some(&session.profile)).ok()??;
    entries.into_iter().find(|entry| entry.entry_id == session.entry_id)
}

fn format_status(
    snapshot: &DaemonStateSnapshot,
    entries: &[Option<EntryView>],
    display: &DisplaySettings,
) -> String {
    let sessions = snapshot.all_sessions();
    let mut lines = Vec::new();
    if sessions.is_empty() {
        lines.push(format!("{} {}", paint(TextTone::Faint, "○"), display.catalogue().nothing_running()));
    }
    for (number, session) in sessions.iter().enumerate() {
        lines.extend(session_lines(session, snapshot.profile_label(&session.profile), display));
        let entry = entries.get(number).and_then(Option::as_ref);
        lines.extend(
            entry.and_then(|entry| describe_rest_of_day(entry, display)).map(|rest| format!("  {rest}")),
        );
        if sessions.len() > 1 {
            lines.push(format!("  {}", humanize::short_id(session.session_id.as_str())));
        }
    }
    let catalogue = display.catalogue();
    let entries = catalogue.entry_count(u64::try_from(snapshot.entry_count).unwrap_or(u64::MAX));
    let mode = if snapshot.mode.is_empty() {
        String::new()
    } else {
        format!("{}, ", catalogue.household_mode(&escape_label(&snapshot.mode)))
    };
    lines.push(format!("  {mode}{entries}"));
    if !snapshot.clock_trusted {
        lines.push(format!("{} {}", paint(TextTone::Bad, "✗"), catalogue.clock_set_back()));
        lines.push(format!("  {}", catalogue.clock_set_back_help()));
    }
    lines.join("\n")
}

fn session_lines(session: &SessionView, child: &str, display: &DisplaySettings) -> Vec<String> {
    let label = truncate(&escape_label(&session.label), display.width.saturating_sub(40).max(20));
    let mut lines = vec![format!(
        "{} {} · {} · {}",
        paint(TextTone::Good, "●"),
        paint(TextTone::Strong, &label),
        humanize::session_state(session, display),
        escape_label(child)
    )];
    let (catalogue, since) = (display.catalogue(), humanize::family_time(session.started_at, display));
    match session.remaining {
        None => lines.push(format!("  {}", catalogue.since_without_limit(&since))),
        Some(remaining) => {
            let (tone, bar) = remaining_bar(session, remaining, display);
            let left = catalogue.countdown_left(&humanize::countdown(remaining));
            lines.push(format!("  {} {left}", paint(tone, &bar)));
            let ends = display.now + std::time::Duration::from(remaining);
            lines.push(format!("  {}", catalogue.since_until(&since, &humanize::family_time(ends, display))));
        }
    }
    lines
}

/// Draws the remaining time as a bar.
fn remaining_bar(session: &SessionView, remaining: Millis, display: &DisplaySettings) -> (TextTone, String) {
    let share = remaining_fraction(session, remaining, display.now);
    let tone = match share {
        share if share > 0.5 => TextTone::Good,
        share if share > 0.2 => TextTone::Warn,
        _ => TextTone::Bad,
    };
    (tone, draw_bar(share, BAR_WIDTH))
}

/// Returns the fraction of the session that remains, from 0 to 1. The whole is the run time so far and the remaining
/// time, so that a suspend or a changed clock does not move the bar. An older daemon does not report the run time.
pub(crate) fn remaining_fraction(
    session: &SessionView,
    Millis(remaining): Millis,
    now: jiff::Timestamp,
) -> f64 {
    let passed = now.as_millisecond().saturating_sub(session.started_at.as_millisecond());
    let passed = session.ran.map_or_else(|| u64::try_from(passed).unwrap_or(0), |Millis(ran)| ran);
    fraction(remaining, remaining.saturating_add(passed))
}

/// Returns a part as a fraction of the whole, from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "the bar has only a few dozen columns")]
pub(crate) fn fraction(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).clamp(0.0, 1.0) }
}

/// Draws a bar, exact to an eighth of a column.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the bar has only a few dozen columns"
)]
pub(crate) fn draw_bar(share: f64, columns: usize) -> String {
    const EIGHTHS: [char; 8] = ['░', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * (columns * 8) as f64).round() as usize;
    let (whole, part) = (eighths / 8, eighths % 8);
    let mut bar: String = std::iter::repeat_n('█', whole).collect();
    if whole < columns {
        bar.push(EIGHTHS.get(part).copied().unwrap_or('░'));
        bar.extend(std::iter::repeat_n('░', columns - whole - 1));
    }
    bar
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use shepherd_api::SessionPhase;
    use shepherd_util::SessionId;

    use super::*;

    fn snapshot(session: Option<SessionView>) -> DaemonStateSnapshot {
        DaemonStateSnapshot {
            api_version: 1,
            at: "2026-11-16T10:00:00Z".parse().unwrap(),
            session,
            sessions: Vec::new(),
            entry_count: 7,
            mode: "normal".to_owned(),
            clock_trusted: true,
            profiles: Vec::new(),
            language: None,
        }
    }

    fn display() -> DisplaySettings {
        DisplaySettings::new("2026-11-16T10:00:00Z".parse().unwrap(), TimeZone::UTC, 80)
    }

    fn session(remaining: Option<u64>) -> SessionView {
        SessionView {
            session_id: SessionId::from_random(1),
            entry_id: "racing".parse().unwrap(),
            label: "Racing\x1b[2J".to_owned(),
            profile: "anna".parse().unwrap(),
            slot: Default::default(),
            counting: Default::default(),
            phase: SessionPhase::Warned,
            warned: Some(shepherd_api::WarningSeverity::Warn),
            started_at: "2026-11-16T09:45:00Z".parse().unwrap(),
            remaining: remaining.map(Millis),
            hours_end: None,
            ran: None,
        }
    }

    fn plain(snapshot: &DaemonStateSnapshot) -> String {
        anstream::adapter::strip_str(&format_status(snapshot, &[], &display())).to_string()
    }

    #[test]
    fn a_session_is_shown_with_its_remaining_time() {
        insta::assert_snapshot!(plain(&snapshot(Some(session(Some(300_000))))), @r"
        ● Racing\u{1b}[2J · running, warned · anna
          ██████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ 5:00 left
          since 09:45, until 10:05
          mode normal, 7 entries
        ");
        insta::assert_snapshot!(plain(&snapshot(Some(session(None)))), @r"
        ● Racing\u{1b}[2J · running, warned · anna
          since 09:45, with no time limit
          mode normal, 7 entries
        ");
    }

    #[test]
    fn the_bar_follows_the_run_time() {
        // The machine was suspended for ten of the fifteen minutes since the launch.
        let suspended = SessionView { ran: Some(Millis(300_000)), ..session(Some(300_000)) };
        assert_eq!(
            remaining_bar(&suspended, Millis(300_000), &display()),
            (TextTone::Warn, draw_bar(0.5, 40))
        );
        let extended = SessionView { remaining: Some(Millis(900_000)), ..suspended };
        assert_eq!(
            remaining_bar(&extended, Millis(900_000), &display()),
            (TextTone::Good, draw_bar(0.75, 40))
        );
    }

    #[test]
    fn an_idle_daemon_and_a_wrong_clock_are_shown() {
        let untrusted = DaemonStateSnapshot { clock_trusted: false, entry_count: 1, ..snapshot(None) };
        insta::assert_snapshot!(plain(&untrusted), @r"
        ○ Nothing is running.
          mode normal, 1 entry
        ✗ The clock was set back, so nothing can be launched.
          Correct the clock or, if it is right, run `shepherd clock confirm`.
        ");
    }

    #[test]
    fn bars_show_any_fraction_at_the_same_width() {
        assert_eq!(draw_bar(1.0, 4), "████");
        assert_eq!(draw_bar(0.0, 4), "░░░░");
        assert_eq!(draw_bar(0.5, 4), "██░░");
        assert_eq!(draw_bar(0.56, 4), "██▎░");
        assert_eq!(draw_bar(f64::NAN, 4).chars().count(), 4);
    }
}
