//! The tamper-evident log: read through the daemon, checked from outside (S8.3).

mod pages;
mod record_text;

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use shepherd_api::{AuditRecord, Command as Order, CommandReply, EventKind};
use shepherd_ipc::{ConnectError, ServerPush};
use ward_ledger::{LedgerFormat, LedgerKey};

use crate::context::{CommandContext, DisplaySettings};
use crate::daemon::{self, DaemonConnection};
use crate::error::ShepherdCliError;
use crate::output::ConsoleOutput;

/// The hash field of Shepherd's own log; CollieClaw's receipts have another.
pub(crate) const EVENT_HASH: &str = "event_hash";

/// The log's name in the daemon's data folder.
const LOG_NAME: &str = "audit.log";

#[derive(Subcommand)]
pub(crate) enum AuditCommand {
    /// The last lines of the log.
    #[command(after_help = "Examples:\n  shepherd audit list\n  shepherd audit list --last 100 --follow")]
    List {
        /// So many.
        #[arg(long, value_name = "N", default_value_t = 20)]
        last: u32,
        /// And what comes, as it comes.
        #[arg(long)]
        follow: bool,
    },
    /// Replays a log and names the first broken link. Exit code 1 when there is one.
    #[command(
        after_help = "Examples:\n  shepherd audit verify\n  shepherd audit verify /var/lib/shepherd/audit.log\n  \
                            shepherd audit verify receipts.log --hash-field receipt_hash --key receipts.key"
    )]
    Verify {
        /// The log; that of the daemon which answers here if absent, or which this user would start if none does.
        log: Option<PathBuf>,
        /// The key it was signed with.
        #[arg(long)]
        key: Option<PathBuf>,
        /// The field that carries a record's hash (`receipt_hash` in an agent's receipts).
        #[arg(long, default_value = EVENT_HASH, value_parser = |name: &str| LedgerFormat::new(name))]
        hash_field: LedgerFormat,
    },
    /// The whole log, for other programs.
    #[command(after_help = "Examples:\n  shepherd audit export\n  shepherd audit export --format csv")]
    Export {
        /// In which format.
        #[arg(long, value_enum, default_value_t)]
        format: AuditExportFormat,
    },
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuditExportFormat {
    /// One JSON object a line.
    #[default]
    Jsonl,
    /// For spreadsheets: number, time, who, what, and the rest as JSON.
    Csv,
}

pub(crate) fn run(
    command: &AuditCommand,
    context: &CommandContext,
    screen: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    match command {
        AuditCommand::List { last, follow } => list(*last, *follow, context, screen),
        AuditCommand::Verify { log, key, hash_field } => {
            let log = match log {
                Some(log) => log.clone(),
                None => daemon_log_path(context, screen)?,
            };
            verify(&log, key.as_deref(), hash_field, screen)
        }
        AuditCommand::Export { format } => export(*format, context, screen),
    }
}

/// The log of whoever the other commands talk to.
fn daemon_log_path(
    context: &CommandContext,
    screen: &mut ConsoleOutput,
) -> Result<PathBuf, ShepherdCliError> {
    let log = match daemon::send_command(context, Order::Health {}) {
        Ok(CommandReply::Health { health }) => {
            health.audit_log.ok_or(ShepherdCliError::UnexpectedReply)?.into()
        }
        Ok(_) => return Err(ShepherdCliError::UnexpectedReply),
        Err(ShepherdCliError::Connect(ConnectError::NoDaemon { .. }))
            if context.socket_override().is_none() =>
        {
            context.paths().map_err(ShepherdCliError::Paths)?.data.join(LOG_NAME)
        }
        Err(failure) => return Err(failure),
    };
    screen.print_note(&format!("Checking {}.", log.display()));
    Ok(log)
}

fn verify(
    log: &Path,
    key: Option<&Path>,
    hash_field: &LedgerFormat,
    screen: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let key = key.map(LedgerKey::load).transpose()?;
    let report = ward_ledger::verify(log, hash_field, key.as_ref())
        .map_err(|source| ShepherdCliError::Verify { log: log.to_owned(), source })?;
    screen.print_result(&report, |screen| screen.print_line(&report.to_string()));
    if report.is_sound() { Ok(()) } else { Err(ShepherdCliError::LogNotSound) }
}

fn list(
    last: u32,
    follow: bool,
    context: &CommandContext,
    screen: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let mut daemon = DaemonConnection::connect(context)?;
    let records = pages::last_records(&mut daemon, last)?;
    if !follow {
        screen.print_result(&records, |screen| {
            for record in &records {
                screen.print_line(&record_text::format_line(record, &context.display));
            }
        });
        return Ok(());
    }
    let mut shown = records.first().map(|record| record.sequence - 1);
    daemon.client().subscribe()?;
    // From what was shown to the subscription there may be more; after it, everything comes by itself.
    print_new_records(&mut daemon, &mut shown, &context.display, screen)?;
    while screen.is_open() {
        match daemon.client().next_push(None)? {
            ServerPush::Event(event) => {
                if matches!(event.kind, EventKind::AuditAppended { .. }) {
                    print_new_records(&mut daemon, &mut shown, &context.display, screen)?;
                }
            }
            ServerPush::FellBehind { .. } => {
                print_new_records(&mut daemon, &mut shown, &context.display, screen)?;
            }
        }
    }
    Ok(())
}

/// Shows whatever came after what was shown.
fn print_new_records(
    daemon: &mut DaemonConnection<'_>,
    shown: &mut Option<u64>,
    look: &DisplaySettings,
    screen: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    while screen.is_open()
        && let Some(page) = pages::page_after(daemon, *shown)?
    {
        for record in &page {
            screen.print_stream_item(record, |screen| {
                screen.print_line(&record_text::format_line(record, look));
            });
            *shown = Some(record.sequence);
        }
    }
    Ok(())
}

fn export(
    format: AuditExportFormat,
    context: &CommandContext,
    screen: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let mut daemon = DaemonConnection::connect(context)?;
    if format == AuditExportFormat::Csv {
        screen.write_bytes(record_text::CSV_HEADER.as_bytes());
    }
    let mut after = None;
    while screen.is_open()
        && let Some(page) = pages::page_after(&mut daemon, after)?
    {
        after = page.last().map(|record| record.sequence);
        let text: String = page.iter().map(|record| export_record(record, format)).collect();
        screen.write_bytes(text.as_bytes());
    }
    Ok(())
}

fn export_record(record: &AuditRecord, format: AuditExportFormat) -> String {
    match format {
        AuditExportFormat::Jsonl => format!("{}\n", serde_json::to_string(record).unwrap_or_default()),
        AuditExportFormat::Csv => record_text::format_csv(record),
    }
}
