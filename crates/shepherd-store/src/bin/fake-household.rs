//! A process that runs the engine on a store, for tests: `fake-household FOLDER BOOT`.
//!
//! It prints the stored state, then reads steps as lines of JSON and confirms each step once the store has made it
//! durable. The steps contain the clock. Errors go to standard error.

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::process::ExitCode;

use shepherd_core::DaemonHeartbeat;
use shepherd_store::conformance::household::{
    HouseholdAction, HouseholdReport, HouseholdStep, PersistedState, apply_step, new_engine,
};
use shepherd_store::conformance::sample;
use shepherd_store::{HeartbeatFile, SqliteStore, Store};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do if standard error is closed.
            drop(writeln!(io::stderr(), "{error:?}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, boot] = arguments.as_slice() else {
        return Err("usage: fake-household FOLDER BOOT".into());
    };
    let (mut store, _) = SqliteStore::open(Path::new(folder), sample::timestamp(1_800_000_000))?;
    let boot = boot.parse()?;
    let mut engine = new_engine(store.load()?, boot);
    let mut pulse = HeartbeatFile::in_folder(Path::new(folder));
    print_report(&HouseholdReport::Opened(Box::new(PersistedState::read_from(&store)?)))?;
    for line in io::stdin().lock().lines() {
        let step: HouseholdStep = serde_json::from_str(&line?)?;
        let outcome = apply_step(&mut engine, &step);
        if step.action == HouseholdAction::Pulse {
            pulse.write(DaemonHeartbeat { boot, at: step.now })?;
        }
        store.apply(&outcome.writes)?;
        let events = outcome.events.iter().map(|event| format!("{event:?}"));
        print_report(&HouseholdReport::Done(events.collect()))?;
    }
    Ok(())
}

fn print_report(report: &HouseholdReport) -> Result<(), Box<dyn Error>> {
    let mut output = io::stdout().lock();
    writeln!(output, "{}", serde_json::to_string(report)?)?;
    Ok(output.flush()?)
}
