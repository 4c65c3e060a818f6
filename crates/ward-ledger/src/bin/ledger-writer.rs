//! A test program that appends records to a log. After each acknowledged append, it prints a line with the
//! sequence number and hash of each record.
//!
//! Usage: `ledger-writer LOG TAG COUNT [key=FILE] [segment=BYTES] [batch=COUNT]`

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Map, Value, json};
use ward_ledger::{Ledger, LedgerFormat, LedgerKey, LedgerOptions};

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut text = error.to_string();
            let mut cause = error.source();
            while let Some(error) = cause {
                text.push_str(": ");
                text.push_str(&error.to_string());
                cause = error.source();
            }
            // If standard error is closed, there is no other way to report the error.
            drop(writeln!(std::io::stderr(), "{text}"));
            ExitCode::FAILURE
        }
    }
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    let usage = "usage: ledger-writer LOG TAG COUNT [key=FILE] [segment=BYTES] [batch=COUNT]";
    let (log, tag, count) = (arguments.next(), arguments.next(), arguments.next());
    let (Some(log), Some(tag), Some(count)) = (log, tag, count) else { return Err(usage.into()) };
    let mut options = LedgerOptions::new(LedgerFormat::new("receipt_hash")?);
    let mut batch = 1;
    for argument in arguments {
        match argument.split_once('=') {
            Some(("key", file)) => options = options.with_key(LedgerKey::load_or_create(Path::new(file))?),
            Some(("segment", bytes)) => options = options.with_segment_bytes(bytes.parse()?),
            Some(("batch", records)) => batch = records.parse()?,
            _ => return Err(usage.into()),
        }
    }
    let (mut ledger, _) = Ledger::open(Path::new(&log), options)?;
    let mut output = std::io::stdout().lock();
    for number in 0..count.parse()? {
        let records = (0..batch).map(|part| record(&tag, number, part)).collect();
        for appended in ledger.append_all(records)? {
            writeln!(output, "{} {}", appended.sequence, appended.hash)?;
        }
        output.flush()?;
    }
    Ok(())
}

fn record(tag: &str, number: u64, part: u64) -> Map<String, Value> {
    let mut record = Map::new();
    record.insert("tag".to_owned(), json!(tag));
    record.insert("number".to_owned(), json!(number));
    record.insert("part".to_owned(), json!(part));
    record.insert("reason".to_owned(), json!("inside the workspace, \"quoted\" and é"));
    record
}
