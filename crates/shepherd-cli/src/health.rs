//! Whether the daemon is well, and what it counts (S13.2).

use shepherd_api::{Command, CommandReply, HealthView};

use crate::context::{CommandContext, DisplaySettings};
use crate::daemon;
use crate::error::ShepherdCliError;
use crate::humanize;
use crate::output::{ConsoleOutput, TextTone, paint};
use crate::text::{escape_unsafe, wrap};

pub(crate) fn health(context: &CommandContext, screen: &mut ConsoleOutput) -> Result<(), ShepherdCliError> {
    let reply = daemon::send_command(context, Command::Health {})?;
    let CommandReply::Health { health } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    screen.print_result(&reply, |screen| {
        for line in health_lines(health, &context.display) {
            screen.print_line(&line);
        }
    });
    if health.ready { Ok(()) } else { Err(ShepherdCliError::NotReady) }
}

fn health_lines(health: &HealthView, look: &DisplaySettings) -> Vec<String> {
    let (tone, mark, told) =
        if health.ready { (TextTone::Good, "●", "ready") } else { (TextTone::Bad, "✗", "not ready") };
    let version = escape_unsafe(&health.daemon_version);
    let uptime = humanize::duration(health.uptime);
    let mut lines = vec![format!("{} shepherdd {version} is {told}, up {uptime}", paint(tone, mark))];
    let column = health.checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
    for check in &health.checks {
        let (tone, mark) = if check.passed { (TextTone::Good, "✓") } else { (TextTone::Bad, "✗") };
        let name = crate::text::pad_or_truncate(&escape_unsafe(&check.name), column);
        let mut begin = format!("  {} {name}  ", paint(tone, mark));
        for part in wrap(&escape_unsafe(&check.detail), look.width.saturating_sub(column + 6)) {
            lines.push(format!("{begin}{part}"));
            begin = " ".repeat(column + 6);
        }
    }
    if let Some(held) = humanize::containment(health) {
        lines.push(format!("  {} {held}", paint(TextTone::Good, "●")));
    }
    if !health.limitations.is_empty() {
        lines.push(paint(TextTone::Strong, "What it can't do here"));
    }
    for limitation in &health.limitations {
        let mut begin = format!("  {} ", paint(TextTone::Warn, "–"));
        for part in wrap(&escape_unsafe(limitation), look.width.saturating_sub(4)) {
            lines.push(format!("{begin}{part}"));
            begin = " ".repeat(4);
        }
    }
    lines
}

pub(crate) fn metrics(context: &CommandContext, screen: &mut ConsoleOutput) -> Result<(), ShepherdCliError> {
    let reply = daemon::send_command(context, Command::Metrics {})?;
    let CommandReply::Metrics { text } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    screen.print_result(&reply, |screen| {
        for line in text.lines() {
            screen.print_line(&escape_unsafe(line));
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use shepherd_api::{HealthCheck, Millis};

    use super::*;

    #[test]
    fn every_check_and_limitation_is_said() {
        let look =
            DisplaySettings { now: "2026-11-16T10:00:00Z".parse().unwrap(), zone: TimeZone::UTC, width: 60 };
        let check = |name: &str, passed, detail: &str| HealthCheck {
            name: name.to_owned(),
            passed,
            detail: detail.to_owned(),
        };
        let health = HealthView {
            ready: false,
            daemon_version: "0.1.0".to_owned(),
            uptime: Millis(3_600_000),
            checks: vec![
                check("policy", true, "7 entries"),
                check("store", false, "the disk is full, and so nothing more can be written down on it"),
            ],
            limitations: vec![
                "No cgroups here: programs are held together by a PID namespace instead.".to_owned(),
            ],
            containment: Some("pid_namespace".to_owned()),
            audit_log: None,
        };
        let lines = health_lines(&health, &look).join("\n");
        insta::assert_snapshot!(anstream::adapter::strip_str(&lines).to_string(), @r"
        ✗ shepherdd 0.1.0 is not ready, up 1 hour
          ✓ policy  7 entries
          ✗ store   the disk is full, and so nothing more can be
                    written down on it
          ● its programs are held by a PID namespace
        What it can't do here
          – No cgroups here: programs are held together by a PID
            namespace instead.
        ");
    }
}
