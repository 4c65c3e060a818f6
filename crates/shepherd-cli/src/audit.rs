//! The tamper-evident log, from outside.

use std::path::PathBuf;

use clap::Subcommand;
use ward_ledger::{Format, Key};

use crate::failure::Failure;
use crate::screen::Screen;

/// The hash field of Shepherd's own log; CollieClaw's receipts have another.
pub(crate) const EVENT_HASH: &str = "event_hash";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Replays a log and names the first broken link. Exit code 1 when there is one.
    Verify {
        /// The log.
        log: PathBuf,
        /// The key it was signed with.
        #[arg(long)]
        key: Option<PathBuf>,
        /// The field that carries a record's hash (`receipt_hash` in an agent's receipts).
        #[arg(long, default_value = EVENT_HASH, value_parser = |name: &str| Format::new(name))]
        hash_field: Format,
    },
}

pub(crate) fn run(command: &Command, screen: &mut Screen) -> Result<(), Failure> {
    let Command::Verify { log, key, hash_field } = command;
    let key = key.as_deref().map(Key::load).transpose()?;
    let report = ward_ledger::verify(log, hash_field, key.as_ref())
        .map_err(|source| Failure::Verify { log: log.clone(), source })?;
    screen.answer(&report, |screen| screen.line(&report.to_string()));
    if report.is_sound() { Ok(()) } else { Err(Failure::LogNotSound) }
}
