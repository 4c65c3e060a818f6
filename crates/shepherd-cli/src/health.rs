//! Whether the daemon is well, and what it counts (S13.2).

use shepherd_api::{Command, HealthView, Reply};

use crate::context::{Context, Look};
use crate::daemon;
use crate::failure::Failure;
use crate::screen::{Screen, Tone, paint};
use crate::text::{clean, wrap};
use crate::words;

pub(crate) fn health(context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    let reply = daemon::ask(context, Command::Health {})?;
    let Reply::Health { health } = &reply else { return Err(Failure::StrangeReply) };
    screen.answer(&reply, |screen| {
        for line in lines(health, &context.look) {
            screen.line(&line);
        }
    });
    if health.ready { Ok(()) } else { Err(Failure::NotReady) }
}

fn lines(health: &HealthView, look: &Look) -> Vec<String> {
    let (tone, mark, told) =
        if health.ready { (Tone::Good, "●", "ready") } else { (Tone::Bad, "✗", "not ready") };
    let version = clean(&health.daemon_version);
    let uptime = words::length(health.uptime);
    let mut lines = vec![format!("{} shepherdd {version} is {told}, up {uptime}", paint(tone, mark))];
    let column = health.checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
    for check in &health.checks {
        let (tone, mark) = if check.passed { (Tone::Good, "✓") } else { (Tone::Bad, "✗") };
        let name = crate::text::fit(&clean(&check.name), column);
        let mut begin = format!("  {} {name}  ", paint(tone, mark));
        for part in wrap(&clean(&check.detail), look.width.saturating_sub(column + 6)) {
            lines.push(format!("{begin}{part}"));
            begin = " ".repeat(column + 6);
        }
    }
    if let Some(held) = words::held(health) {
        lines.push(format!("  {} {held}", paint(Tone::Good, "●")));
    }
    if !health.limitations.is_empty() {
        lines.push(paint(Tone::Strong, "What it can't do here"));
    }
    for limitation in &health.limitations {
        let mut begin = format!("  {} ", paint(Tone::Warn, "–"));
        for part in wrap(&clean(limitation), look.width.saturating_sub(4)) {
            lines.push(format!("{begin}{part}"));
            begin = " ".repeat(4);
        }
    }
    lines
}

pub(crate) fn metrics(context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    let reply = daemon::ask(context, Command::Metrics {})?;
    let Reply::Metrics { text } = &reply else { return Err(Failure::StrangeReply) };
    screen.answer(&reply, |screen| {
        for line in text.lines() {
            screen.line(&clean(line));
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
        let look = Look { now: "2026-11-16T10:00:00Z".parse().unwrap(), zone: TimeZone::UTC, width: 60 };
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
        let lines = lines(&health, &look).join("\n");
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
