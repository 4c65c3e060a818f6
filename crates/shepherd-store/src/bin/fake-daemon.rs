//! A process that keeps a store open, for tests: `fake-daemon FOLDER BATCHES`, or `fake-daemon FOLDER hold`.
//!
//! It prints how many batches it finds (`opened 7`), then applies numbered batches and prints each acknowledged one
//! (`ack 8`). With `hold` it keeps the store open until its standard input ends. Errors go to standard error; the exit
//! code is 2 if the store could not be opened.

use std::error::Error;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use shepherd_core::StoreWrite;
use shepherd_store::conformance::sample;
use shepherd_store::{SqliteStore, Store};
use shepherd_util::ErrorChain;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, error)) => {
            // Nothing is left to do if standard error is closed.
            drop(writeln!(io::stderr(), "{}", ErrorChain(&*error)));
            ExitCode::from(code)
        }
    }
}

fn run() -> Result<(), (u8, Box<dyn Error>)> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, batches] = arguments.as_slice() else {
        return Err((1, "usage: fake-daemon FOLDER BATCHES|hold".into()));
    };
    let (mut store, _) = SqliteStore::open(Path::new(folder), sample::timestamp(1_800_000_000))
        .map_err(|error| (2, error.into()))?;
    apply_batches(&mut store, batches).map_err(|error| (1, error))
}

fn apply_batches(store: &mut SqliteStore, batches: &str) -> Result<(), Box<dyn Error>> {
    let mut output = io::stdout().lock();
    let key = sample::usage_key("ada", sample::entry_counter("chess"), 20_000);
    let found = store.get_usage(&key.profile, &key.counter, key.day)?.as_secs();
    writeln!(output, "opened {found}")?;
    output.flush()?;
    if batches == "hold" {
        io::stdin().read_to_end(&mut Vec::new())?;
        return Ok(());
    }
    for number in (found + 1..).take(batches.parse()?) {
        let mut batch = sample::batch(number, &key);
        // Some batches have no event, others have several.
        match number % 5 {
            0 => drop(batch.pop()),
            1 => batch.push(StoreWrite::AppendAudit(Box::new(sample::note_event(number + 1_000_000)))),
            _ => {}
        }
        store.apply(&batch)?;
        writeln!(output, "ack {number}")?;
        output.flush()?;
    }
    Ok(())
}
