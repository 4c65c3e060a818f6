//! `receipt`: what every attempted call left behind.

mod told;

use std::path::Path;

use clap::Subcommand;
use collieclaw::channels::visible;
use collieclaw::receipts::{self, Receipt as Listed, ReceiptError, Signing};
use serde_json::{Value, json};
use ward_ledger::verify::{Authenticity, Completeness, VerifyError};
use ward_ledger::{Key, OpenError, Report};

use super::environment::Environment;
use super::failure::Failure;
use super::open;
use super::screen::{Screen, table};

#[derive(Subcommand)]
pub(crate) enum Receipt {
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

pub(crate) fn run(receipt: &Receipt, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let config = open::config(environment)?;
    let (path, signing) = (&config.receipts.path, config.receipts.signing(&environment.home));
    match receipt {
        Receipt::List { limit } => {
            let (listed, whole) = last(path, *limit);
            screen.answer(&listed, || match listed.as_slice() {
                [] if whole.is_err() => "no receipts that can be read".to_owned(),
                [] => "no receipts yet: every attempted call of a tool leaves one".to_owned(),
                listed => table(&listed.iter().map(row).collect::<Vec<_>>()),
            });
            whole?;
        }
        Receipt::Adopt { yes: false } => {
            let what = "nothing shows who wrote it, and whether it was cut".to_owned();
            return Err(Failure::Wrong {
                what,
                cure: "look at it, then say `collieclaw receipt adopt --yes`",
            });
        }
        Receipt::Adopt { yes: true } => {
            receipts::adopt(path, &signing)?;
            screen.answer(&json!({ "adopted": true }), || "The log goes on; it says so itself.".to_owned());
        }
        Receipt::Verify => return verify(path, &signing, screen),
    }
    Ok(())
}

/// A key that can't be used is no reason not to look at the links.
fn verify(path: &Path, signing: &Signing, screen: &Screen) -> Result<(), Failure> {
    let key = signing.key();
    let at_hand = key.as_ref().ok().and_then(Option::as_ref);
    let report = match ward_ledger::verify(path, &receipts::format(), at_hand) {
        Err(VerifyError::NoLog { .. }) => {
            let fault = key.map(drop).and_then(|()| signing.never_begun(path)).err();
            let value = json!({ "records": 0, "sound": fault.is_none(), "fault": fault.as_ref().map(ToString::to_string) });
            screen.answer(&value, || {
                if fault.is_none() { "no receipts yet".to_owned() } else { "no receipts".to_owned() }
            });
            return fault.map_or(Ok(()), |fault| Err(fault.into()));
        }
        report => report?,
    };
    let fault = fault(&report, signing, key);
    let mut value = serde_json::to_value(&report).unwrap_or_default();
    if let Value::Object(members) = &mut value {
        members.insert("sound".to_owned(), fault.is_none().into());
        members.insert("fault".to_owned(), fault.as_ref().map(ToString::to_string).into());
    }
    screen.answer(&value, || told::told(&report));
    fault.map_or(Ok(()), Err)
}

/// What is wrong in a way that somebody can put right comes before what is wrong at all.
fn fault(report: &Report, signing: &Signing, key: Result<Option<Key>, ReceiptError>) -> Option<Failure> {
    let path = report.log.clone();
    let error: ReceiptError = match (key, &report.authenticity, signing) {
        (Err(error), ..) => error,
        (Ok(None), &Authenticity::NoKey { key_id }, Signing::With { key }) => {
            ReceiptError::KeyMissing { key: key.clone(), key_id }
        }
        (Ok(None), &Authenticity::NoKey { key_id }, Signing::Off) => {
            OpenError::KeyNeeded { path, key_id }.into()
        }
        (Ok(Some(key)), authenticity, _) => match (&report.completeness, authenticity) {
            (&Completeness::HeadOfOtherKey { key_id }, _) => {
                OpenError::WrongKey { path, key_id, given: key.id() }.into()
            }
            (_, &Authenticity::NotSigned { given }) => OpenError::NotSigned { path, given }.into(),
            _ => return (!is_sound(report)).then_some(Failure::NotSound),
        },
        (Ok(None), ..) => return (!is_sound(report)).then_some(Failure::NotSound),
    };
    Some(Failure::Receipt(error))
}

/// Of a log in its own place the head is there, too.
fn is_sound(report: &Report) -> bool {
    report.is_sound() && matches!(report.completeness, Completeness::Complete { .. })
}

/// The last so many, and whether all on the way to them could be read; what is wrong, `verify` names.
fn last(path: &Path, limit: usize) -> (Vec<Listed>, Result<(), Failure>) {
    let mut whole = Ok(());
    let mut readable = |record: Result<_, _>| match record {
        Ok((_, record)) => Some(Listed { record }),
        Err(_) => {
            whole = Err(Failure::NotSound);
            None
        }
    };
    let mut last: Vec<Listed> = match ward_ledger::read_back(path, &receipts::format(), None) {
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
        whole = Err(Failure::NotSound);
    }
    if last.is_empty() && limit > 0 {
        whole = match ward_ledger::verify(path, &receipts::format(), None) {
            Err(VerifyError::NoLog { .. }) => Ok(()),
            Ok(report) if is_sound(&report) => Ok(()),
            Ok(_) => Err(Failure::NotSound),
            Err(error) => Err(error.into()),
        };
    }
    (last, whole)
}

fn row(receipt: &Listed) -> Vec<String> {
    let text = |name: &str| match receipt.record.get(name) {
        Some(Value::String(text)) if name == "timestamp" => {
            text.get(..19).map_or_else(|| visible(text), |text| visible(text).replace('T', " "))
        }
        Some(Value::String(text)) => visible(text),
        Some(other) => other.to_string(),
        None => "-".to_owned(),
    };
    ["sequence", "timestamp", "tool", "status", "risk", "reason_code", "approver", "id"].map(text).to_vec()
}
