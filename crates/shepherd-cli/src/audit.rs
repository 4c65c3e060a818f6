//! `shepherd audit`: lists and exports the log through the daemon, and verifies the file itself (S8.3).

mod pages;
mod record_text;

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use shepherd_api::{AuditRecord, Command as Order, CommandReply, EventKind};
use shepherd_ipc::ServerPush;
use ward_ledger::{LedgerFormat, LedgerKey};

use crate::context::{CommandContext, DisplaySettings};
use crate::daemon::{self, DaemonConnection};
use crate::error::ShepherdCliError;
use crate::output::ConsoleOutput;

/// The hash field of Shepherd's log. CollieClaw's receipts use another name.
pub(crate) const EVENT_HASH: &str = "event_hash";

/// File name of the log in the daemon's data folder.
const LOG_NAME: &str = "audit.log";

#[derive(Subcommand)]
pub(crate) enum AuditCommand {
    /// List the last records of the log
    #[command(after_help = "Examples:\n  shepherd audit list\n  shepherd audit list --last 100 --follow")]
    List {
        /// Number of records
        #[arg(long, value_name = "N", default_value_t = 20)]
        last: u32,
        /// Keep running and show new records
        #[arg(long)]
        follow: bool,
    },
    /// Verify a log and name the first changed or missing record; exit code 1 if there is one
    #[command(
        after_help = "Examples:\n  shepherd audit verify\n  shepherd audit verify /var/lib/shepherd/audit.log\n  \
                            shepherd audit verify receipts.log --hash-field receipt_hash --key receipts.key"
    )]
    Verify {
        /// Log file [default: the log of the running daemon, else of a daemon that you would start]
        log: Option<PathBuf>,
        /// Key that signed the log
        #[arg(long)]
        key: Option<PathBuf>,
        /// Field with the hash of a record (`receipt_hash` in CollieClaw's receipts)
        #[arg(long, default_value = EVENT_HASH, value_parser = |name: &str| LedgerFormat::new(name))]
        hash_field: LedgerFormat,
    },
    /// Export the whole log for other programs
    #[command(after_help = "Examples:\n  shepherd audit export\n  shepherd audit export --format csv")]
    Export {
        /// Format of the export
        #[arg(long, value_enum, default_value_t)]
        format: AuditExportFormat,
    },
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuditExportFormat {
    /// JSON objects, one per line
    #[default]
    Jsonl,
    /// For spreadsheets: number, time, actor, event, and details as JSON
    Csv,
}

pub(crate) fn run(
    command: &AuditCommand,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    match command {
        AuditCommand::List { last, follow } => list(*last, *follow, context, output),
        AuditCommand::Verify { log, key, hash_field } => {
            let log = match log {
                Some(log) => log.clone(),
                None => daemon_log_path(context, output)?,
            };
            verify(&log, key.as_deref(), hash_field, output)
        }
        AuditCommand::Export { format } => export(*format, context, output),
    }
}

/// Returns the log of the daemon that the other commands talk to.
fn daemon_log_path(
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<PathBuf, ShepherdCliError> {
    let log = match daemon::send_command(context, &Order::Health {}) {
        Ok(CommandReply::Health { health }) => {
            health.audit_log.ok_or(ShepherdCliError::UnexpectedReply)?.into()
        }
        Ok(_) => return Err(ShepherdCliError::UnexpectedReply),
        Err(ShepherdCliError::NoDaemon { .. }) if context.socket_override().is_none() => {
            context.paths().map_err(ShepherdCliError::Paths)?.data.join(LOG_NAME)
        }
        Err(failure) => return Err(failure),
    };
    output.print_note(&format!("Checking {}.", log.display()));
    Ok(log)
}

fn verify(
    log: &Path,
    key: Option<&Path>,
    hash_field: &LedgerFormat,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let key = key.map(LedgerKey::load).transpose()?;
    let report = ward_ledger::verify(log, hash_field, key.as_ref())
        .map_err(|source| ShepherdCliError::Verify { log: log.to_owned(), source })?;
    output.print_result(&report, |output| output.print_line(&report.to_string()));
    if report.is_sound() { Ok(()) } else { Err(ShepherdCliError::LogNotSound) }
}

fn list(
    last: u32,
    follow: bool,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let mut daemon = DaemonConnection::connect(context)?;
    let records = pages::last_records(&mut daemon, last)?;
    if !follow {
        output.print_result(&records, |output| {
            for record in &records {
                output.print_line(&record_text::format_line(record, &context.display));
            }
        });
        return Ok(());
    }
    let mut shown = records.first().map(|record| record.sequence - 1);
    daemon.client().subscribe()?;
    // Records may have been added before the subscription. Later ones are announced by events.
    print_new_records(&mut daemon, &mut shown, &context.display, output)?;
    while output.is_open() {
        match daemon.client().next_push(None)? {
            ServerPush::Event(event) => {
                if matches!(event.kind, EventKind::AuditAppended { .. }) {
                    print_new_records(&mut daemon, &mut shown, &context.display, output)?;
                }
            }
            ServerPush::FellBehind { .. } => {
                print_new_records(&mut daemon, &mut shown, &context.display, output)?;
            }
        }
    }
    Ok(())
}

/// Prints the records after the last one shown.
fn print_new_records(
    daemon: &mut DaemonConnection<'_>,
    shown: &mut Option<u64>,
    display: &DisplaySettings,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    while output.is_open()
        && let Some(page) = pages::page_after(daemon, *shown)?
    {
        for record in &page {
            output.print_stream_item(record, |output| {
                output.print_line(&record_text::format_line(record, display));
            });
            *shown = Some(record.sequence);
        }
    }
    Ok(())
}

fn export(
    format: AuditExportFormat,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let mut daemon = DaemonConnection::connect(context)?;
    if format == AuditExportFormat::Csv {
        output.write_bytes(record_text::CSV_HEADER.as_bytes());
    }
    let mut after = None;
    while output.is_open()
        && let Some(page) = pages::page_after(&mut daemon, after)?
    {
        after = page.last().map(|record| record.sequence);
        let text: String = page.iter().map(|record| export_record(record, format)).collect();
        output.write_bytes(text.as_bytes());
    }
    Ok(())
}

fn export_record(record: &AuditRecord, format: AuditExportFormat) -> String {
    match format {
        AuditExportFormat::Jsonl => format!("{}\n", serde_json::to_string(record).unwrap_or_default()),
        AuditExportFormat::Csv => record_text::format_csv(record),
    }
}
