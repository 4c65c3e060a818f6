//! `shepherd health` and `metrics`: the daemon's checks, limitations and counters (S13.2).

use shepherd_api::{Command, CommandReply, HealthView};
use ward_terminal::{TextTone, escape_label, pad_or_truncate, paint, wrap};

use crate::context::{CommandContext, DisplaySettings};
use crate::daemon;
use crate::error::ShepherdCliError;
use crate::humanize;
use crate::output::ConsoleOutput;

pub(crate) fn health(context: &CommandContext, output: &mut ConsoleOutput) -> Result<(), ShepherdCliError> {
    let reply = daemon::send_command(context, &Command::Health {})?;
    let CommandReply::Health { health } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    output.print_result(&reply, |output| {
        for line in health_lines(health, &context.display) {
            output.print_line(&line);
        }
    });
    if health.ready { Ok(()) } else { Err(ShepherdCliError::NotReady) }
}

fn health_lines(health: &HealthView, display: &DisplaySettings) -> Vec<String> {
    let (tone, mark, state) = match (health.ready, &health.rejected_policy) {
        (true, None) => (TextTone::Good, "●", "ready"),
        (true, Some(_)) => (TextTone::Warn, "●", "ready, with the old rules"),
        (false, _) => (TextTone::Bad, "✗", "not ready"),
    };
    let version = escape_label(&health.daemon_version);
    let uptime = humanize::duration(health.uptime);
    let mut lines = vec![format!("{} shepherdd {version} is {state}, up {uptime}", paint(tone, mark))];
    let column = health.checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
    for check in &health.checks {
        let rejected = health.rejected_policy.as_ref().filter(|_| check.name == "policy");
        let (tone, mark) = match (check.passed, rejected) {
            (true, None) => (TextTone::Good, "✓"),
            (true, Some(_)) => (TextTone::Warn, "!"),
            (false, _) => (TextTone::Bad, "✗"),
        };
        let name = pad_or_truncate(&escape_label(&check.name), column);
        let mut start = format!("  {} {name}  ", paint(tone, mark));
        let advice = rejected.and_then(|_| humanize::rejected_policy(health, display));
        let texts = [Some(escape_label(&check.detail)), advice];
        for part in
            texts.iter().flatten().flat_map(|text| wrap(text, display.width.saturating_sub(column + 6)))
        {
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
    let reply = daemon::send_command(context, &Command::Metrics {})?;
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
    use shepherd_api::{HealthCheck, Millis, RejectedPolicyView};

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
                "A PID namespace keeps each program together, not a cgroup: there are none.".to_owned(),
            ],
            containment: Some("pid_namespace".to_owned()),
            rejected_policy: None,
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
          – A PID namespace keeps each program together, not a
            cgroup: there are none.
        ");
    }

    // S13.2
    #[test]
    fn a_daemon_that_keeps_its_old_rules_is_ready() {
        let display = DisplaySettings::new("2026-11-16T10:00:00Z".parse().unwrap(), TimeZone::UTC, 80);
        let sentence = "/etc/shepherd/policy.toml has 2 mistakes";
        let health = HealthView {
            ready: true,
            daemon_version: "0.1.0".to_owned(),
            uptime: Millis(60_000),
            checks: vec![HealthCheck {
                name: "policy".to_owned(),
                passed: true,
                detail: format!("the old rules apply (7 entries): {sentence}"),
            }],
            limitations: Vec::new(),
            containment: None,
            rejected_policy: Some(RejectedPolicyView {
                path: "/etc/shepherd/policy.toml".to_owned(),
                since: "2026-11-16T09:30:00Z".parse().unwrap(),
                fault_count: 2,
                sentence: sentence.to_owned(),
            }),
            audit_log: None,
        };
        let lines = health_lines(&health, &display).join("\n");
        insta::assert_snapshot!(anstream::adapter::strip_str(&lines).to_string(), @r"
        ● shepherdd 0.1.0 is ready, with the old rules, up 1 minute
          ! policy  the old rules apply (7 entries): /etc/shepherd/policy.toml has 2
                    mistakes
                    The file has not been used since 09:30. `shepherd policy check
                    /etc/shepherd/policy.toml` shows how to fix it, and `sudo shepherd
                    policy restore` puts the old rules back into the file.
        ");
        let unused = HealthView {
            ready: false,
            checks: vec![HealthCheck {
                name: "policy".to_owned(),
                passed: false,
                detail: "every launch is denied".to_owned(),
            }],
            ..health
        };
        let lines = health_lines(&unused, &display).join("\n");
        assert!(
            lines.contains("shepherd policy") && !lines.contains("restore"),
            "no rules can be put back:\n{lines}"
        );
    }
}
