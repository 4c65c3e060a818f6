//! Formats the result of a receipt check for people.

use ward_ledger::VerificationReport;
use ward_ledger::verify::{LogAuthenticity, LogCompleteness};
use ward_terminal::{escape_line, format_count};

pub(super) fn format_report(report: &VerificationReport) -> String {
    let mut lines = Vec::new();
    match &report.broken {
        None => {
            lines.push(format!(
                "integrity: {}, every link holds",
                format_count(report.records, "receipt", "receipts")
            ));
        }
        Some(broken) => {
            let kind = serde_json::to_value(broken.kind).unwrap_or_default();
            let kind = kind.as_str().unwrap_or("broken").replace('_', " ");
            lines.push(format!("integrity: the chain is invalid at receipt {} ({kind})", broken.sequence));
            let place = match broken.segment.as_str() {
                // A log that is missing altogether has no sound part.
                "" => escape_line(&report.log.display().to_string()),
                segment => format!("{}, line {}", escape_line(segment), broken.line),
            };
            lines.push(format!("  {place}: {}", escape_line(&broken.detail)));
        }
    }
    if let Some(torn) = &report.torn {
        // The head covers this line, so it was complete before.
        let next = match report.broken {
            None => "; the next call sets it aside",
            Some(_) => "",
        };
        lines.push(format!("torn:      the last line is half-written ({} bytes){next}", torn.bytes));
    }
    for stray in &report.strays {
        lines.push(format!("stray:     {} looks like a part of the log but isn't", escape_line(stray)));
    }
    lines.push(match report.completeness {
        LogCompleteness::Complete { covered, uncovered: 0 } => {
            format!("complete:  the head covers all {covered}")
        }
        LogCompleteness::Complete { covered, uncovered } => {
            format!("complete:  the head covers {covered}, but not the last {uncovered}")
        }
        LogCompleteness::Cut { covered, found } => {
            format!("CUT:       the head covers {covered}, but only {found} exist")
        }
        LogCompleteness::NotReached { covered } => {
            format!("unknown:   the head covers {covered}, but the chain breaks before them")
        }
        LogCompleteness::NoHead => {
            "unknown:   the head is missing, so a shortened log would not be noticed".to_owned()
        }
        LogCompleteness::HeadMissing => "unknown:   the head is missing".to_owned(),
        LogCompleteness::HeadUnreadable => "unknown:   the head is damaged".to_owned(),
        LogCompleteness::HeadForged => {
            "FORGED:    the head was not written by the holder of the key".to_owned()
        }
        LogCompleteness::HeadOfOtherKey { .. } => "unknown:   the head is signed with another key".to_owned(),
    });
    lines.push(format_signature(report));
    lines.join("\n")
}

/// Describes which part of the log is signed, and by which key.
fn format_signature(report: &VerificationReport) -> String {
    if let (LogAuthenticity::Signed { key_id, from }, Some(broken)) = (&report.authenticity, &report.broken) {
        let sound = broken.sequence.saturating_sub(1);
        return match sound >= *from {
            true => {
                format!("signed:    receipts {from} to {sound}, with key {key_id}; the rest was not checked")
            }
            false => format!("signed:    with key {key_id}, but no receipt could be checked"),
        };
    }
    match &report.authenticity {
        LogAuthenticity::Signed { key_id, .. } if report.records == 0 => {
            format!("signed:    the head, with key {key_id}; there are no receipts")
        }
        LogAuthenticity::Unsigned => {
            "unsigned:  anyone who can write the files can rewrite the log".to_owned()
        }
        LogAuthenticity::Signed { key_id, from: 1 } => format!("signed:    all, with key {key_id}"),
        LogAuthenticity::Signed { key_id, from } => format!(
            "signed:    from receipt {from} on, with key {key_id}; earlier receipts are unsigned and were adopted"
        ),
        LogAuthenticity::NotSigned { given } => {
            format!("UNSIGNED:  no receipt is signed with the key {given}")
        }
        LogAuthenticity::NotAdopted { key_id, from } => format!(
            "UNSIGNED:  signed with key {key_id} from receipt {from} on; earlier receipts may be forged"
        ),
        LogAuthenticity::NoKey { key_id } => {
            format!(
                "unknown:   signed with key {key_id}, which is missing, so the signatures were not checked"
            )
        }
    }
}
