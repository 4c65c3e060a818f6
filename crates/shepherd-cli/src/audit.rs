//! The tamper-evident log: read through the daemon, checked from outside (S8.3).

mod lines;
mod pages;

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use shepherd_api::{AuditRecord, Command as Order, EventKind, Reply};
use shepherd_ipc::{ConnectError, Pushed};
use ward_ledger::{Format, Key};

use crate::context::{Context, Look};
use crate::daemon::{self, Daemon};
use crate::failure::Failure;
use crate::screen::Screen;

/// The hash field of Shepherd's own log; CollieClaw's receipts have another.
pub(crate) const EVENT_HASH: &str = "event_hash";

/// The log's name in the daemon's data folder.
const LOG_NAME: &str = "audit.log";

#[derive(Subcommand)]
pub(crate) enum Command {
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
        #[arg(long, default_value = EVENT_HASH, value_parser = |name: &str| Format::new(name))]
        hash_field: Format,
    },
    /// The whole log, for other programs.
    #[command(after_help = "Examples:\n  shepherd audit export\n  shepherd audit export --format csv")]
    Export {
        /// In which format.
        #[arg(long, value_enum, default_value_t)]
        format: Export,
    },
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Export {
    /// One JSON object a line.
    #[default]
    Jsonl,
    /// For spreadsheets: number, time, who, what, and the rest as JSON.
    Csv,
}

pub(crate) fn run(command: &Command, context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    match command {
        Command::List { last, follow } => list(*last, *follow, context, screen),
        Command::Verify { log, key, hash_field } => {
            let log = match log {
                Some(log) => log.clone(),
                None => log_of_the_daemon(context, screen)?,
            };
            verify(&log, key.as_deref(), hash_field, screen)
        }
        Command::Export { format } => export(*format, context, screen),
    }
}

/// The log of whoever the other commands talk to.
fn log_of_the_daemon(context: &Context, screen: &mut Screen) -> Result<PathBuf, Failure> {
    let log = match daemon::ask(context, Order::Health {}) {
        Ok(Reply::Health { health }) => health.audit_log.ok_or(Failure::StrangeReply)?.into(),
        Ok(_) => return Err(Failure::StrangeReply),
        Err(Failure::Connect(ConnectError::NoDaemon { .. })) if context.given_socket().is_none() => {
            context.paths().map_err(Failure::Paths)?.data.join(LOG_NAME)
        }
        Err(failure) => return Err(failure),
    };
    screen.remark(&format!("Checking {}.", log.display()));
    Ok(log)
}

fn verify(log: &Path, key: Option<&Path>, hash_field: &Format, screen: &mut Screen) -> Result<(), Failure> {
    let key = key.map(Key::load).transpose()?;
    let report = ward_ledger::verify(log, hash_field, key.as_ref())
        .map_err(|source| Failure::Verify { log: log.to_owned(), source })?;
    screen.answer(&report, |screen| screen.line(&report.to_string()));
    if report.is_sound() { Ok(()) } else { Err(Failure::LogNotSound) }
}

fn list(last: u32, follow: bool, context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    let mut daemon = Daemon::connect(context)?;
    let records = pages::last(&mut daemon, last)?;
    if !follow {
        screen.answer(&records, |screen| {
            for record in &records {
                screen.line(&lines::line(record, &context.look));
            }
        });
        return Ok(());
    }
    let mut shown = records.first().map(|record| record.sequence - 1);
    daemon.client().subscribe()?;
    // From what was shown to the subscription there may be more; after it, everything comes by itself.
    show(&mut daemon, &mut shown, &context.look, screen)?;
    while screen.is_heard() {
        match daemon.client().pushed(None)? {
            Pushed::Event(event) => {
                if matches!(event.kind, EventKind::AuditAppended { .. }) {
                    show(&mut daemon, &mut shown, &context.look, screen)?;
                }
            }
            Pushed::FellBehind { .. } => show(&mut daemon, &mut shown, &context.look, screen)?,
        }
    }
    Ok(())
}

/// Shows whatever came after what was shown.
fn show(
    daemon: &mut Daemon<'_>,
    shown: &mut Option<u64>,
    look: &Look,
    screen: &mut Screen,
) -> Result<(), Failure> {
    while screen.is_heard()
        && let Some(page) = pages::after(daemon, *shown)?
    {
        for record in &page {
            screen.next_answer(record, |screen| screen.line(&lines::line(record, look)));
            *shown = Some(record.sequence);
        }
    }
    Ok(())
}

fn export(format: Export, context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    let mut daemon = Daemon::connect(context)?;
    if format == Export::Csv {
        screen.raw(lines::CSV_HEAD.as_bytes());
    }
    let mut after = None;
    while screen.is_heard()
        && let Some(page) = pages::after(&mut daemon, after)?
    {
        after = page.last().map(|record| record.sequence);
        let text: String = page.iter().map(|record| exported(record, format)).collect();
        screen.raw(text.as_bytes());
    }
    Ok(())
}

fn exported(record: &AuditRecord, format: Export) -> String {
    match format {
        Export::Jsonl => format!("{}\n", serde_json::to_string(record).unwrap_or_default()),
        Export::Csv => lines::csv(record),
    }
}
