//! `receipt`: what every attempted call left behind.

use std::collections::VecDeque;

use clap::Subcommand;
use collieclaw::channels::visible;
use collieclaw::receipts::{self, Receipt as Listed};
use serde_json::Value;
use ward_ledger::Report;
use ward_ledger::verify::{Completeness, VerifyError};

use super::environment::Environment;
use super::failure::Failure;
use super::open;
use super::screen::{Screen, count, table};

#[derive(Subcommand)]
pub(crate) enum Receipt {
    /// The receipts, oldest first.
    List {
        /// Only the last so many.
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Replays the chain, and names the first broken link.
    Verify,
    /// Goes on with a log whose head is gone. Nothing shows whether it was cut: look at it first. It is recorded.
    Adopt {
        /// Yes, I have looked.
        #[arg(long)]
        yes: bool,
    },
}

pub(crate) fn run(receipt: &Receipt, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let path = open::config(environment)?.receipts.path;
    match receipt {
        Receipt::List { limit } => {
            let listed = last(&path, *limit)?;
            screen.answer(&listed, || table(&listed.iter().map(row).collect::<Vec<_>>()));
        }
        Receipt::Adopt { yes: false } => {
            let what = "nothing shows whether a log without its head was cut".to_owned();
            return Err(Failure::Wrong {
                what,
                cure: "look at it, then say `collieclaw receipt adopt --yes`",
            });
        }
        Receipt::Adopt { yes: true } => {
            receipts::adopt(&path)?;
            screen.answer(&serde_json::json!({ "adopted": true }), || {
                "The log goes on; it says so itself.".to_owned()
            });
        }
        Receipt::Verify => match ward_ledger::verify(&path, &receipts::format(), None) {
            Err(VerifyError::NoLog { .. }) => {
                screen.answer(&serde_json::json!({ "records": 0, "sound": true }), || {
                    "no receipts yet".to_owned()
                });
            }
            Err(error) => return Err(error.into()),
            Ok(report) => {
                let mut value = serde_json::to_value(&report).unwrap_or_default();
                if let Value::Object(members) = &mut value {
                    members.insert("sound".to_owned(), is_sound(&report).into());
                }
                screen.answer(&value, || told(&report));
                if !is_sound(&report) {
                    return Err(Failure::NotSound);
                }
            }
        },
    }
    Ok(())
}

/// Of a log in its own place the head is there, too.
fn is_sound(report: &Report) -> bool {
    report.is_sound() && matches!(report.completeness, Completeness::Complete { .. })
}

fn last(path: &std::path::Path, limit: usize) -> Result<Vec<Listed>, Failure> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let records = ward_ledger::read(path, &receipts::format())
        .map_err(|error| Failure::Receipt(receipts::ReceiptError::Read(Box::new(error))))?;
    let mut last = VecDeque::new();
    // What is no record is for `verify` to name.
    for entry in records.flatten() {
        last.push_back(Listed { record: entry.record });
        if last.len() > limit {
            last.pop_front();
        }
    }
    Ok(last.into())
}

fn row(receipt: &Listed) -> Vec<String> {
    let text = |name: &str| match receipt.record.get(name) {
        Some(Value::String(text)) if name == "timestamp" => {
            text.get(..19).map_or_else(|| visible(text), visible)
        }
        Some(Value::String(text)) => visible(text),
        Some(other) => other.to_string(),
        None => "-".to_owned(),
    };
    ["sequence", "timestamp", "tool", "status", "risk", "reason_code", "approver", "id"].map(text).to_vec()
}

fn told(report: &Report) -> String {
    let mut lines = Vec::new();
    match &report.broken {
        None => {
            lines.push(format!("integrity: {} in a row, every link holds", count(report.records, "receipt")));
        }
        Some(broken) => {
            let kind = serde_json::to_value(broken.kind).unwrap_or_default();
            let kind = kind.as_str().unwrap_or("broken").replace('_', " ");
            lines.push(format!("integrity: the chain is invalid at receipt {} ({kind})", broken.sequence));
            lines.push(format!(
                "  {}, line {}: {}",
                visible(&broken.segment),
                broken.line,
                visible(&broken.detail)
            ));
        }
    }
    if let Some(torn) = &report.torn {
        lines.push(format!("torn:      the last line was left half-written by a crash ({} bytes); the next call sets it aside", torn.bytes));
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
    lines.join("\n")
}
