//! What a check of the receipts found, for people.

use collieclaw::channels::visible;
use ward_ledger::Report;
use ward_ledger::verify::{Authenticity, Completeness};

use crate::cli::screen::count;

pub(super) fn told(report: &Report) -> String {
    let mut lines = Vec::new();
    match &report.broken {
        None => {
            lines.push(format!("integrity: {} in a row, every link holds", count(report.records, "receipt")));
        }
        Some(broken) => {
            let kind = serde_json::to_value(broken.kind).unwrap_or_default();
            let kind = kind.as_str().unwrap_or("broken").replace('_', " ");
            lines.push(format!("integrity: the chain is invalid at receipt {} ({kind})", broken.sequence));
            let place = match broken.segment.as_str() {
                // Of a log that is gone there is no part.
                "" => visible(&report.log.display().to_string()),
                segment => format!("{}, line {}", visible(segment), broken.line),
            };
            lines.push(format!("  {place}: {}", visible(&broken.detail)));
        }
    }
    if let Some(torn) = &report.torn {
        // One that the head vouches for was whole before.
        let next = match report.broken {
            None => "; the next call sets it aside",
            Some(_) => "",
        };
        lines.push(format!("torn:      the last line is half-written ({} bytes){next}", torn.bytes));
    }
    for stray in &report.strays {
        lines.push(format!("stray:     {} looks like a part of the log and is none", visible(stray)));
    }
    lines.push(match report.completeness {
        Completeness::Complete { vouched, unvouched: 0 } => {
            format!("complete:  the head vouches for all {vouched}")
        }
        Completeness::Complete { vouched, unvouched } => {
            format!("complete:  the head vouches for {vouched}, not for the last {unvouched}")
        }
        Completeness::Cut { vouched, found } => {
            format!("CUT:       the head vouches for {vouched}, and {found} are there")
        }
        Completeness::NotReached { vouched } => {
            format!("unknown:   the head vouches for {vouched}, and the chain breaks before")
        }
        Completeness::NoHead => "unknown:   there is no head, so a cut end would not be noticed".to_owned(),
        Completeness::HeadMissing => "unknown:   the head is missing".to_owned(),
        Completeness::HeadUnreadable => "unknown:   the head is damaged".to_owned(),
        Completeness::HeadForged => "FORGED:    the head was not written by the holder of the key".to_owned(),
        Completeness::HeadOfOtherKey { .. } => "unknown:   the head is signed with another key".to_owned(),
    });
    lines.push(signed(report));
    lines.join("\n")
}

/// What the key says of it, and of what it says nothing.
fn signed(report: &Report) -> String {
    if let (Authenticity::Signed { key_id, from }, Some(broken)) = (&report.authenticity, &report.broken) {
        let sound = broken.sequence.saturating_sub(1);
        return match sound >= *from {
            true => {
                format!("signed:    receipts {from} to {sound}, with key {key_id}; the rest was not checked")
            }
            false => format!("signed:    with key {key_id}; nothing of it could be checked"),
        };
    }
    match &report.authenticity {
        Authenticity::Signed { key_id, .. } if report.records == 0 => {
            format!("signed:    the head, with key {key_id}; there are no receipts")
        }
        Authenticity::Unsigned => "unsigned:  whoever can write the files can rewrite all of it".to_owned(),
        Authenticity::Signed { key_id, from: 1 } => format!("signed:    all, with key {key_id}"),
        Authenticity::Signed { key_id, from } => format!(
            "signed:    from receipt {from} on, with key {key_id}; those before were taken as they were, unsigned"
        ),
        Authenticity::NotSigned { given } => {
            format!("UNSIGNED:  there is a key, {given}, and nothing is signed with it")
        }
        Authenticity::NotAdopted { key_id, from } => format!(
            "UNSIGNED:  signed with key {key_id} from receipt {from} on, and those before may be anybody's"
        ),
        Authenticity::NoKey { key_id } => {
            format!("unknown:   signed with key {key_id}, and not checked without it")
        }
    }
}
