//! `receipt`: what every attempted call left behind.

mod report;

use std::path::Path;

use clap::Subcommand;
use collieclaw_agent::receipts::{self, Receipt as Listed, ReceiptError, ReceiptSigning};
use serde_json::{Value, json};
use ward_ledger::verify::{LedgerVerifyError, LogAuthenticity, LogCompleteness};
use ward_ledger::{LedgerKey, LedgerOpenError, VerificationReport};
use ward_terminal::escape_line;

use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::output::{OutputPrinter, format_table};
use super::wiring;

#[derive(Subcommand)]
pub(crate) enum ReceiptCommand {
    /// The receipts, oldest first.
    #[command(
        after_help = "Examples:\n  collieclaw receipt list\n  collieclaw receipt list --limit 5 --output json"
    )]
    List {
        /// Only the last so many.
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Replays the chain, and names the first broken link.
    #[command(
        after_help = "Examples:\n  collieclaw receipt verify\n  collieclaw receipt verify --output json"
    )]
    Verify,
    /// Goes on with a log as it is, although its head or its signatures are gone. Look at it first. It is recorded.
    #[command(after_help = "Example:\n  collieclaw receipt adopt --yes")]
    Adopt {
        /// Yes, I have looked.
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
                [] if whole.is_err() => "no receipts that can be read".to_owned(),
                [] => "no receipts yet: every attempted call of a tool leaves one".to_owned(),
                listed => format_table(&listed.iter().map(table_row).collect::<Vec<_>>()),
            });
            whole?;
        }
        ReceiptCommand::Adopt { yes: false } => {
            let what = "nothing shows who wrote it, and whether it was cut".to_owned();
            return Err(CommandFailure::InvalidInput {
                what,
                cure: "look at it, then say `collieclaw receipt adopt --yes`",
            });
        }
        ReceiptCommand::Adopt { yes: true } => {
            receipts::adopt_log(path, &signing)?;
            screen.print_answer(&json!({ "adopted": true }), || {
                "The log goes on; it says so itself.".to_owned()
            });
        }
        ReceiptCommand::Verify => return verify(path, &signing, screen),
    }
    Ok(())
}

/// A key that can't be used is no reason not to look at the links.
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

/// What is wrong in a way that somebody can put right comes before what is wrong at all.
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

/// Of a log in its own place the head is there, too.
fn is_sound(report: &VerificationReport) -> bool {
    report.is_sound() && matches!(report.completeness, LogCompleteness::Complete { .. })
}

/// The last so many, and whether all on the way to them could be read; what is wrong, `verify` names.
fn read_last(path: &Path, limit: usize) -> (Vec<Listed>, Result<(), CommandFailure>) {
    let mut whole = Ok(());
    let mut readable = |record: Result<_, _>| match record {
        Ok((_, record)) => Some(Listed { record }),
        Err(_) => {
            whole = Err(CommandFailure::ReceiptChainUnsound);
            None
        }
    };
    let mut last: Vec<Listed> =
        match ward_ledger::read_records_reversed(path, &receipts::ledger_format(), None) {
            Ok(records) => records.map_while(&mut readable).take(limit).collect(),
            Err(_) => Vec::new(),
        };
    last.reverse();
    let number = |receipt: &Listed| receipt.record.get("sequence").and_then(Value::as_u64);
    let follows = |pair: &[Listed]| match pair {
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

fn table_row(receipt: &Listed) -> Vec<String> {
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
