//! `receipt`: lists and verifies the receipts of tool calls.

mod report;

use std::path::Path;

use clap::Subcommand;
use collieclaw_agent::receipts::{self, Receipt, ReceiptError, ReceiptSigning};
use serde_json::{Value, json};
use ward_ledger::verify::{LedgerVerifyError, LogAuthenticity, LogCompleteness};
use ward_ledger::{LedgerKey, LedgerOpenError, VerificationReport};
use ward_terminal::{align_columns, escape_line};

use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::output::OutputPrinter;
use super::wiring;

#[derive(Subcommand)]
pub(crate) enum ReceiptCommand {
    /// List receipts, oldest first.
    #[command(
        after_help = "Examples:\n  collieclaw receipt list\n  collieclaw receipt list --limit 5 --output json"
    )]
    List {
        /// Number of receipts to show, counted from the last
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Verify the chain of receipts, and name the first broken link.
    #[command(
        after_help = "Examples:\n  collieclaw receipt verify\n  collieclaw receipt verify --output json"
    )]
    Verify,
    /// Accept a log whose head or signatures are missing. Look at it first; the acceptance is recorded.
    #[command(after_help = "Example:\n  collieclaw receipt adopt --yes")]
    Adopt {
        /// Confirm that you have looked at the log
        #[arg(long)]
        yes: bool,
    },
}

pub(crate) fn run(
    receipt: &ReceiptCommand,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let config = wiring::load_config(environment)?;
    let (path, signing) = (&config.receipts.path, config.receipts.signing(&environment.home));
    match receipt {
        ReceiptCommand::List { limit } => {
            let (listed, whole) = read_last(path, *limit);
            screen.print_answer(&listed, || match listed.as_slice() {
                [] if whole.is_err() => "no readable receipts".to_owned(),
                [] => "no receipts yet: every tool call leaves one".to_owned(),
                listed => align_columns(&listed.iter().map(table_row).collect::<Vec<_>>()),
            });
            whole?;
        }
        ReceiptCommand::Adopt { yes: false } => {
            let what = "this accepts a log that may have been shortened or forged".to_owned();
            return Err(CommandFailure::InvalidInput {
                what,
                cure: "check the log, then run `collieclaw receipt adopt --yes`",
            });
        }
        ReceiptCommand::Adopt { yes: true } => {
            receipts::adopt_log(path, &signing)?;
            screen.print_answer(&json!({ "adopted": true }), || {
                "The log was accepted; the acceptance is recorded in it.".to_owned()
            });
        }
        ReceiptCommand::Verify => return verify(path, &signing, screen),
    }
    Ok(())
}

/// Verifies the chain. An unusable key doesn't prevent the check of the links.
fn verify(path: &Path, signing: &ReceiptSigning, screen: &OutputPrinter) -> Result<(), CommandFailure> {
    let key = signing.key();
    let at_hand = key.as_ref().ok().and_then(Option::as_ref);
    let report = match ward_ledger::verify(path, &receipts::ledger_format(), at_hand) {
        Err(LedgerVerifyError::NoLog { .. }) => {
            let fault = key.map(drop).and_then(|()| signing.check_never_started(path)).err();
            let value = json!({ "records": 0, "sound": fault.is_none(), "fault": fault.as_ref().map(ToString::to_string) });
            screen.print_answer(&value, || {
                if fault.is_none() { "no receipts yet".to_owned() } else { "no receipts".to_owned() }
            });
            return fault.map_or(Ok(()), |fault| Err(fault.into()));
        }
        report => report?,
    };
    let fault = find_fault(&report, signing, key);
    let mut value = serde_json::to_value(&report).unwrap_or_default();
    if let Value::Object(members) = &mut value {
        members.insert("sound".to_owned(), fault.is_none().into());
        members.insert("fault".to_owned(), fault.as_ref().map(ToString::to_string).into());
    }
    screen.print_answer(&value, || report::format_report(&report));
    fault.map_or(Ok(()), Err)
}

/// Returns the failure of a check. Errors that the user can fix are reported before a broken chain.
fn find_fault(
    report: &VerificationReport,
    signing: &ReceiptSigning,
    key: Result<Option<LedgerKey>, ReceiptError>,
) -> Option<CommandFailure> {
    let path = report.log.clone();
    let error: ReceiptError = match (key, &report.authenticity, signing) {
        (Err(error), ..) => error,
        (Ok(None), &LogAuthenticity::NoKey { key_id }, ReceiptSigning::With { key }) => {
            ReceiptError::KeyMissing { key: key.clone(), key_id }
        }
        (Ok(None), &LogAuthenticity::NoKey { key_id }, ReceiptSigning::Off) => {
            LedgerOpenError::KeyNeeded { path, key_id }.into()
        }
        (Ok(Some(key)), authenticity, _) => match (&report.completeness, authenticity) {
            (&LogCompleteness::HeadOfOtherKey { key_id }, _) => {
                LedgerOpenError::WrongKey { path, key_id, given: key.id() }.into()
            }
            (_, &LogAuthenticity::NotSigned { given }) => LedgerOpenError::NotSigned { path, given }.into(),
            _ => return (!is_sound(report)).then_some(CommandFailure::ReceiptChainUnsound),
        },
        (Ok(None), ..) => return (!is_sound(report)).then_some(CommandFailure::ReceiptChainUnsound),
    };
    Some(CommandFailure::Receipt(error))
}

/// Returns whether the log in the home is sound. Unlike a copied log, it must have its head file.
fn is_sound(report: &VerificationReport) -> bool {
    report.is_sound() && matches!(report.completeness, LogCompleteness::Complete { .. })
}

/// Reads the last receipts, and whether all receipts could be read. `verify` names the cause if not.
fn read_last(path: &Path, limit: usize) -> (Vec<Receipt>, Result<(), CommandFailure>) {
    let mut whole = Ok(());
    let mut readable = |record: Result<_, _>| match record {
        Ok((_, record)) => Some(Receipt { record }),
        Err(_) => {
            whole = Err(CommandFailure::ReceiptChainUnsound);
            None
        }
    };
    let mut last: Vec<Receipt> =
        match ward_ledger::read_records_reversed(path, &receipts::ledger_format(), None) {
            Ok(records) => records.map_while(&mut readable).take(limit).collect(),
            Err(_) => Vec::new(),
        };
    last.reverse();
    let number = |receipt: &Receipt| receipt.record.get("sequence").and_then(Value::as_u64);
    let follows = |pair: &[Receipt]| match pair {
        [first, second] => number(first).and_then(|first| first.checked_add(1)) == number(second),
        _ => true,
    };
    if !last.windows(2).all(follows) {
        whole = Err(CommandFailure::ReceiptChainUnsound);
    }
    if last.is_empty() && limit > 0 {
        whole = match ward_ledger::verify(path, &receipts::ledger_format(), None) {
            Err(LedgerVerifyError::NoLog { .. }) => Ok(()),
            Ok(report) if is_sound(&report) => Ok(()),
            Ok(_) => Err(CommandFailure::ReceiptChainUnsound),
            Err(error) => Err(error.into()),
        };
    }
    (last, whole)
}

fn table_row(receipt: &Receipt) -> Vec<String> {
    let text = |name: &str| match receipt.record.get(name) {
        Some(Value::String(text)) if name == "timestamp" => {
            text.get(..19).map_or_else(|| escape_line(text), |text| escape_line(text).replace('T', " "))
        }
        Some(Value::String(text)) => escape_line(text),
        Some(other) => other.to_string(),
        None => "-".to_owned(),
    };
    ["sequence", "timestamp", "tool", "status", "risk", "reason_code", "approver", "id"].map(text).to_vec()
}
