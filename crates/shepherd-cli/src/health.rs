//! `shepherd health` and `metrics`: the daemon's checks, limitations and counters (S13.2).

use shepherd_api::{Command, CommandReply, HealthView};
use ward_terminal::{TextTone, escape_label, pad_or_truncate, paint, wrap};

use crate::context::{CommandContext, DisplaySettings};
use crate::daemon;
use crate::error::ShepherdCliError;
use crate::humanize;
use crate::output::ConsoleOutput;

pub(crate) fn health(context: &CommandContext, output: &mut ConsoleOutput) -> Result<(), ShepherdCliError> {
    let reply = daemon::send_command(context, Command::Health {})?;
    let CommandReply::Health { health } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    output.print_result(&reply, |output| {
        for line in health_lines(health, &context.display) {
            output.print_line(&line);
        }
    });
    if health.ready { Ok(()) } else { Err(ShepherdCliError::NotReady) }
}

fn health_lines(health: &HealthView, display: &DisplaySettings) -> Vec<String> {
    let (tone, mark, state) =
        if health.ready { (TextTone::Good, "●", "ready") } else { (TextTone::Bad, "✗", "not ready") };
    let version = escape_label(&health.daemon_version);
    let uptime = humanize::duration(health.uptime);
    let mut lines = vec![format!("{} shepherdd {version} is {state}, up {uptime}", paint(tone, mark))];
    let column = health.checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
    for check in &health.checks {
        let (tone, mark) = if check.passed { (TextTone::Good, "✓") } else { (TextTone::Bad, "✗") };
        let name = pad_or_truncate(&escape_label(&check.name), column);
        let mut start = format!("  {} {name}  ", paint(tone, mark));
        for part in wrap(&escape_label(&check.detail), display.width.saturating_sub(column + 6)) {
            lines.push(format!("{start}{part}"));
            start = " ".repeat(column + 6);
        }
    }
    if let Some(containment) = humanize::containment(health) {
        lines.push(format!("  {} {containment}", paint(TextTone::Good, "●")));
    }
    if !health.limitations.is_empty() {
        lines.push(paint(TextTone::Strong, "Limitations on this machine"));
    }
    for limitation in &health.limitations {
        let mut start = format!("  {} ", paint(TextTone::Warn, "–"));
        for part in wrap(&escape_label(limitation), display.width.saturating_sub(4)) {
            lines.push(format!("{start}{part}"));
            start = " ".repeat(4);
        }
    }
    lines
}

pub(crate) fn metrics(context: &CommandContext, output: &mut ConsoleOutput) -> Result<(), ShepherdCliError> {
    let reply = daemon::send_command(context, Command::Metrics {})?;
    let CommandReply::Metrics { text } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    output.print_result(&reply, |output| {
        for line in text.lines() {
            output.print_line(&escape_label(line));
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
    fn every_check_and_limitation_is_shown() {
        let display = DisplaySettings::new("2026-11-16T10:00:00Z".parse().unwrap(), TimeZone::UTC, 60);
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
                check("store", false, "could not write the usage records: no space left on the device"),
            ],
            limitations: vec![
                "No cgroups here: programs are contained by a PID namespace instead.".to_owned(),
            ],
            containment: Some("pid_namespace".to_owned()),
            audit_log: None,
        };
        let lines = health_lines(&health, &display).join("\n");
        insta::assert_snapshot!(anstream::adapter::strip_str(&lines).to_string(), @r"
        ✗ shepherdd 0.1.0 is not ready, up 1 hour
          ✓ policy  7 entries
          ✗ store   could not write the usage records: no space left
                    on the device
          ● a PID namespace keeps each program and everything it starts together
        Limitations on this machine
          – No cgroups here: programs are contained by a PID
            namespace instead.
        ");
    }
}
