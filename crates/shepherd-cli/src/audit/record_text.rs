//! Formats records of the log as lines for people and for spreadsheets.

use serde::Deserialize;
use serde_json::Value;
use shepherd_api::{AuditKind, AuditRecord, GrantView, StopMode};
use ward_terminal::{TextTone, escape_label, format_count, paint, paint_optional};

use crate::context::DisplaySettings;
use crate::humanize;

pub(super) const CSV_HEADER: &str = "sequence,at,actor,event,details\r\n";

/// Formats a record for people: number, time, actor and event.
pub(super) fn format_line(record: &AuditRecord, display: &DisplaySettings) -> String {
    let at = record.line.at.to_zoned(display.zone.clone()).strftime("%Y-%m-%d %H:%M:%S");
    let (tone, text) = describe_event(&record.line.what, display);
    let head = format!("{:>6}  {at}  {}", record.sequence, escape_label(&name_user(&record.line.actor)));
    format!("{}  {}", paint(TextTone::Faint, &head), paint_optional(tone, &escape_label(&text)))
}

/// Replaces the user id in an actor, such as `uid 1000 pid 7 (shepherd)`, by the name of the account.
fn name_user(actor: &str) -> String {
    let parts = actor.strip_prefix("uid ").and_then(|rest| rest.split_once(' '));
    let name = parts.and_then(|(uid, rest)| Some((humanize::account_name(uid.parse().ok()?)?, rest)));
    name.map_or_else(|| actor.to_owned(), |(name, rest)| format!("{name} {rest}"))
}

fn describe_event(what: &AuditKind, display: &DisplaySettings) -> (Option<TextTone>, String) {
    match what {
        AuditKind::LaunchApproved { entry_id, profile, max_run, .. } => {
            let most = max_run
                .map_or("no time limit".to_owned(), |most| format!("up to {}", humanize::duration(most)));
            (Some(TextTone::Good), format!("launch of {entry_id} for {profile} approved, {most}"))
        }
        AuditKind::LaunchDenied { entry_id, profile, reasons } => {
            let codes: Vec<&str> = reasons.iter().map(shepherd_api::ReasonCode::code).collect();
            (Some(TextTone::Bad), format!("launch of {entry_id} for {profile} denied: {}", codes.join(", ")))
        }
        AuditKind::SessionStarted { session_id } => (None, format!("{} started", short(session_id.as_str()))),
        AuditKind::WarningGiven { session_id, threshold_secs } => {
            let warned = format!("{}: warning {threshold_secs} s before the end", short(session_id.as_str()));
            (Some(TextTone::Warn), warned)
        }
        AuditKind::DeadlineChanged { session_id, remaining } => {
            let left = remaining
                .map_or("no time limit".to_owned(), |left| format!("{} left", humanize::duration(left)));
            (None, format!("{} now has {left}", short(session_id.as_str())))
        }
        AuditKind::StopRequested { session_id, by, mode } => {
            let how = match mode {
                StopMode::Graceful => "asked to stop",
                StopMode::Force => "to be killed at once",
            };
            (
                Some(TextTone::Warn),
                format!("{} {how} by {}", short(session_id.as_str()), humanize::requester(*by)),
            )
        }
        AuditKind::SessionEnded { session_id, end, charged } => {
            let charged = humanize::duration(*charged);
            (
                None,
                format!(
                    "{} ended: {}; charged {charged}",
                    short(session_id.as_str()),
                    humanize::end_reason(end)
                ),
            )
        }
        AuditKind::Granted { grant_id, grant } => (
            Some(TextTone::Good),
            format!("{} granted{}", short(grant_id.as_str()), describe_grant(grant, display)),
        ),
        AuditKind::GrantRevoked { grant_id } => {
            (Some(TextTone::Warn), format!("{} revoked", short(grant_id.as_str())))
        }
        AuditKind::TimeRequested { request_id, entry_id, profile, amount } => {
            let wants = format!("{} of {entry_id}", humanize::duration(*amount));
            (None, format!("{}: {profile} asks for {wants}", short(request_id.as_str())))
        }
        AuditKind::RequestDecided { request_id, decision } => {
            (None, format!("{}: {decision}", short(request_id.as_str())))
        }
        AuditKind::CommandRefused { command, reason } => {
            (Some(TextTone::Bad), format!("command {command} refused: {reason}"))
        }
        AuditKind::PolicyRejected { faults } => (
            Some(TextTone::Bad),
            format!("policy rejected, {}", format_count(faults.len(), "mistake", "mistakes")),
        ),
        AuditKind::PolicyLoaded { entry_count, .. } => {
            (None, format!("policy loaded, {}", format_count(*entry_count, "entry", "entries")))
        }
        AuditKind::Note { text } => (None, text.clone()),
        other => (None, describe_fields(other)),
    }
}

/// Describes a grant, or returns nothing if this version can't read the record.
fn describe_grant(grant: &Value, display: &DisplaySettings) -> String {
    let Ok(grant) = GrantView::deserialize(grant) else { return String::new() };
    let profile = grant.profile.as_ref().map_or("everybody", |profile| profile.as_str());
    let (scope, gift) = (humanize::scope(&grant.scope, display), humanize::gift(&grant.gift, display));
    format!(" to {profile}, for {scope}: {gift}")
}

/// Describes any other event by its name and its fields.
fn describe_fields(what: &AuditKind) -> String {
    let (event, details) = split_event_name(what);
    let fields = details.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let fields: Vec<String> = fields
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name} {text}"),
            other => format!("{name} {other}"),
        })
        .collect();
    if fields.is_empty() {
        event.replace('_', " ")
    } else {
        format!("{}: {}", event.replace('_', " "), fields.join(", "))
    }
}

/// Splits an event into its name and its other fields.
fn split_event_name(what: &AuditKind) -> (String, Value) {
    let mut details = serde_json::to_value(what).unwrap_or_default();
    let event = details.as_object_mut().and_then(|fields| fields.remove("event"));
    (event.and_then(|event| event.as_str().map(str::to_owned)).unwrap_or_default(), details)
}

/// Formats a record for spreadsheets. The details start with a brace, so that a spreadsheet never takes a child's text
/// for a formula.
pub(super) fn format_csv(record: &AuditRecord) -> String {
    let (event, details) = split_event_name(&record.line.what);
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let (sequence, at) = (record.sequence, record.line.at);
    let (actor, details) = (quoted(&record.line.actor), quoted(&details.to_string()));
    format!("{sequence},{at},{actor},{event},{details}\r\n")
}

fn short(id: &str) -> &str {
    humanize::short_id(id)
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use shepherd_api::{AuditEvent, EndReason, Millis, ReasonCode};
    use shepherd_util::{GrantId, SessionId};

    use super::*;

    fn record(sequence: u64, what: AuditKind) -> AuditRecord {
        let at = "2026-11-16T10:00:00Z".parse().unwrap();
        AuditRecord { sequence, line: AuditEvent { at, actor: "uid 1000".to_owned(), what } }
    }

    #[test]
    fn every_line_shows_actor_and_event() {
        let display = DisplaySettings::new("2026-11-16T10:00:00Z".parse().unwrap(), TimeZone::UTC, 80);
        let session_id = SessionId::from_random(0x1a2b_3c4d << 96);
        let records = [
            AuditKind::DaemonStarted { recovered: None },
            AuditKind::LaunchDenied {
                entry_id: "racing".parse().unwrap(),
                profile: "anna".parse().unwrap(),
                reasons: vec![ReasonCode::NotForProfile, ReasonCode::Disabled { reason: None }],
            },
            AuditKind::SessionEnded { session_id, end: EndReason::Expired, charged: Millis(20_000) },
            AuditKind::ZoneChanged { zone: "Europe/Berlin".to_owned() },
            AuditKind::GrantRevoked { grant_id: GrantId::from_random(1) },
            AuditKind::Granted { grant_id: GrantId::from_random(1), grant: serde_json::json!({"new": 1}) },
            AuditKind::Note { text: "\x1b[2J".to_owned() },
        ];
        let lines: Vec<String> =
            (1..).zip(records).map(|(number, what)| format_line(&record(number, what), &display)).collect();
        insta::assert_snapshot!(anstream::adapter::strip_str(&lines.join("\n")).to_string(), @r"
        1  2026-11-16 10:00:00  uid 1000  daemon started
        2  2026-11-16 10:00:00  uid 1000  launch of racing for anna denied: not-for-profile, disabled
        3  2026-11-16 10:00:00  uid 1000  session-1a2b3c4d ended: time is up; charged 20 seconds
        4  2026-11-16 10:00:00  uid 1000  zone changed: zone Europe/Berlin
        5  2026-11-16 10:00:00  uid 1000  grant-00000000 revoked
        6  2026-11-16 10:00:00  uid 1000  grant-00000000 granted
        7  2026-11-16 10:00:00  uid 1000  \u{1b}[2J
        ");
    }

    #[test]
    fn a_spreadsheet_gets_every_field_quoted() {
        let what = AuditKind::Note { text: "=\"a\",b".to_owned() };
        assert_eq!(
            format_csv(&record(7, what)),
            "7,2026-11-16T10:00:00Z,\"uid 1000\",note,\"{\"\"text\"\":\"\"=\\\"\"a\\\"\",b\"\"}\"\r\n"
        );
    }
}
