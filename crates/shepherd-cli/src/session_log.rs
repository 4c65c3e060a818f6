//! `shepherd log`: the recorded output of a session.

use clap::Args;
use shepherd_api::{Command, CommandReply, SessionLogView};
use ward_terminal::{TextTone, escape_label, escape_lines, format_count, paint};

use crate::context::{CommandContext, DisplaySettings};
use crate::daemon::DaemonConnection;
use crate::error::ShepherdCliError;
use crate::humanize;
use crate::output::ConsoleOutput;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  shepherd log\n  shepherd log --profile anna\n  shepherd log session-1f2e3d4c\n\n\
                  Administrators can read the output of every session, others that of their own sessions."
)]
pub(crate) struct LogArgs {
    /// Id of the session, or the first characters of it [default: the newest session]
    #[arg(value_name = "SESSION")]
    session: Option<String>,
}

pub(crate) fn run(
    log: &LogArgs,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let mut daemon = DaemonConnection::connect(context)?;
    let command = Command::ReadSessionLog { session: log.session.clone(), profile: daemon.profile() };
    let reply = daemon.send_command(&command)?;
    let CommandReply::SessionLog { log } = &reply else { return Err(ShepherdCliError::UnexpectedReply) };
    output.print_result(&reply, |output| {
        for line in log_lines(log, &daemon.display_with_labels()) {
            output.print_line(&line);
        }
    });
    Ok(())
}

fn log_lines(log: &SessionLogView, display: &DisplaySettings) -> Vec<String> {
    let label = paint(TextTone::Strong, &escape_label(&log.label));
    let started = humanize::time(log.started_at, display);
    let end = log.end.as_ref().map_or_else(|| "still running".to_owned(), humanize::end_reason);
    let id = humanize::short_id(log.session_id.as_str());
    let name = humanize::profile_name(&log.profile, display);
    let mut lines = vec![format!("{label} for {name}, started {started} ({id}): {end}")];
    match &log.text {
        None => lines.push("The output of this session was not kept.".to_owned()),
        Some(text) if text.is_empty() => lines.push("The program wrote no output.".to_owned()),
        Some(text) => {
            if log.left_out > 0 {
                let earlier = format_count(log.left_out, "earlier byte is", "earlier bytes are");
                let left_out = format!("… {earlier} left out");
                lines.push(paint(TextTone::Faint, &left_out));
            }
            lines.push(escape_lines(text));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use shepherd_api::EndReason;
    use shepherd_util::SessionId;

    use super::*;

    #[test]
    fn output_is_shown_without_control_characters() {
        let display = DisplaySettings::new("2026-11-16T10:00:00Z".parse().unwrap(), TimeZone::UTC, 80);
        let mut log = SessionLogView {
            session_id: SessionId::from_random(0x1f2e_3d4c << 96),
            entry_id: "racing".parse().unwrap(),
            label: "Racing".to_owned(),
            profile: "anna".parse().unwrap(),
            started_at: "2026-11-16T09:45:00Z".parse().unwrap(),
            end: Some(EndReason::Exited { code: Some(1), signal: None }),
            text: Some("no display\x1b[2J\nbye\n".to_owned()),
            left_out: 12,
        };
        let plain = |log: &SessionLogView| {
            let lines = log_lines(log, &display);
            anstream::adapter::strip_str(&lines.join("\n")).to_string()
        };
        insta::assert_snapshot!(plain(&log), @r"
        Racing for anna, started 09:45 (session-1f2e3d4c): the program exited with code 1
        … 12 earlier bytes are left out
        no display\u{1b}[2J
        bye
        ");
        log.text = None;
        log.end = None;
        insta::assert_snapshot!(plain(&log), @r"
        Racing for anna, started 09:45 (session-1f2e3d4c): still running
        The output of this session was not kept.
        ");
    }
}
