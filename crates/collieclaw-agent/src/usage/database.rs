//! The SQLite file with the records of model requests.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use collieclaw_providers::TokenUsage;
use jiff::Zoned;
use rusqlite::{Connection, Transaction, TransactionBehavior, named_params, params};
use ward_sqlite::{
    ConnectionSettings, DatabaseHeader, SqliteErrorKind, SyncMode, enable_wal, is_empty_database,
};

use super::amount::TokenPrice;
use super::budget::{LimitReached, UsageBudget};
use super::daily_sums;
use super::error::UsageError;
use super::report::{UsageGrouping, UsageReport, UsageTotals};
use super::totals::{self, column_value};
use crate::sqlite::BUSY_TIMEOUT;

/// The header of the file: the application id "Cuse", which marks the database as ours, and the version.
const HEADER: DatabaseHeader = DatabaseHeader { application_id: 0x4375_7365, version: 2 };

/// The header before daily sums were added.
const HEADER_WITHOUT_SUMS: DatabaseHeader = DatabaseHeader { version: 1, ..HEADER };

/// Times are milliseconds since 1970. `took` is NULL while a request runs, and stays NULL if its process was
/// killed.
const SCHEMA: &str = "
CREATE TABLE call (
    id INTEGER PRIMARY KEY,
    begun INTEGER NOT NULL,
    conversation TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    took INTEGER,
    failed INTEGER NOT NULL,
    estimated INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL
) STRICT;
CREATE INDEX call_begun ON call (begun);
CREATE INDEX call_of_conversation ON call (conversation);
";

/// The records of one home. Several processes may use the same file.
#[derive(Debug)]
pub struct UsageDatabase {
    connection: Connection,
    path: PathBuf,
}

/// A request that is about to be sent.
#[derive(Debug, Clone, Copy)]
pub struct ProviderCallStart<'b> {
    pub conversation: &'b str,
    pub provider: &'b str,
    pub model: &'b str,
    /// The estimated number of tokens that are sent.
    pub prompt_tokens: u64,
    pub price: TokenPrice,
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy)]
pub struct ProviderCallEnd {
    pub failed: bool,
    /// True if the numbers of tokens are estimates.
    pub estimated: bool,
    pub usage: TokenUsage,
    pub took: Duration,
}

/// The reason why a request may not be sent.
pub(super) enum CallRefusal {
    Limit(LimitReached),
    Unusable(UsageError),
}

impl UsageDatabase {
    /// Opens the records, or creates them.
    ///
    /// # Errors
    /// Fails if the file can't be used.
    pub fn open(path: &Path) -> Result<Self, UsageError> {
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        match created {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(UsageError::File { path: path.to_owned(), source: error });
            }
            _ => {}
        }
        let connection = connect(path).map_err(|error| database_error(path, error))?;
        let database = Self { connection, path: path.to_owned() };
        database.prepare()?;
        Ok(database)
    }

    fn prepare(&self) -> Result<(), UsageError> {
        if self.read_header()? == HEADER {
            return Ok(());
        }
        let migrate = || {
            let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
            // Another process may have migrated the database in the meantime.
            let empty = is_empty_database(&transaction)?;
            if empty {
                transaction.execute_batch(SCHEMA)?;
            }
            if empty || DatabaseHeader::read(&transaction)? == HEADER_WITHOUT_SUMS {
                transaction.execute_batch(daily_sums::SCHEMA)?;
                HEADER.write(&transaction)?;
            }
            transaction.commit()
        };
        enable_wal(&self.connection)
            .and_then(|()| migrate())
            .map_err(|error| database_error(&self.path, error))?;
        match self.read_header()? {
            HEADER => Ok(()),
            _ => Err(UsageError::Foreign { path: self.path.clone() }),
        }
    }

    fn read_header(&self) -> Result<DatabaseHeader, UsageError> {
        DatabaseHeader::read(&self.connection).map_err(|error| database_error(&self.path, error))
    }

    /// Records the start of a request if it is within all limits, and returns its number.
    pub(super) fn record_start(
        &self,
        call: &ProviderCallStart<'_>,
        budget: &UsageBudget,
        now: &Zoned,
    ) -> Result<i64, CallRefusal> {
        let fail = |error| CallRefusal::Unusable(database_error(&self.path, error));
        // One transaction, so that no other process can record a request between the check and the insertion.
        let transaction =
            Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate).map_err(fail)?;
        daily_sums::fold_old_calls(&transaction, now).map_err(fail)?;
        if budget.is_set() {
            let today = totals::day_totals(&transaction, now).map_err(fail)?;
            let conversation = totals::conversation_totals(&transaction, call.conversation).map_err(fail)?;
            budget.check(&today, &conversation, now).map_err(CallRefusal::Limit)?;
        }
        let usage = TokenUsage { prompt_tokens: call.prompt_tokens, completion_tokens: 0 };
        transaction
            .execute(
                "INSERT INTO call (begun, conversation, provider, model, failed, estimated, prompt_tokens, \
                 completion_tokens, cost) VALUES (?, ?, ?, ?, 1, 1, ?, 0, ?)",
                params![
                    now.timestamp().as_millisecond(),
                    call.conversation,
                    call.provider,
                    call.model,
                    column_value(call.prompt_tokens),
                    column_value(call.price.cost_of(usage).0)
                ],
            )
            .map_err(fail)?;
        let number = transaction.last_insert_rowid();
        transaction.commit().map_err(fail)?;
        Ok(number)
    }

    /// Records the outcome of a request.
    pub(super) fn record_end(
        &self,
        number: i64,
        ended: &ProviderCallEnd,
        price: TokenPrice,
    ) -> Result<(), UsageError> {
        let took = u64::try_from(ended.took.as_millis()).unwrap_or(u64::MAX);
        self.connection
            .execute(
                "UPDATE call SET took = :took, failed = :failed, estimated = :estimated, prompt_tokens = :prompt, \
                 completion_tokens = :completion, cost = :cost WHERE id = :id",
                named_params! {
                    ":took": column_value(took),
                    ":failed": ended.failed,
                    ":estimated": ended.estimated,
                    ":prompt": column_value(ended.usage.prompt_tokens),
                    ":completion": column_value(ended.usage.completion_tokens),
                    ":cost": column_value(price.cost_of(ended.usage).0),
                    ":id": number,
                },
            )
            .map(drop)
            .map_err(|error| database_error(&self.path, error))
    }

    /// Returns the usage since the start of the day of `now`.
    ///
    /// # Errors
    /// Fails if the records can't be read.
    pub fn today_totals(&self, now: &Zoned) -> Result<UsageTotals, UsageError> {
        totals::day_totals(&self.connection, now).map_err(|error| database_error(&self.path, error))
    }

    /// Returns the usage of a conversation.
    ///
    /// # Errors
    /// Fails if the records can't be read.
    pub fn conversation_totals(&self, conversation: &str) -> Result<UsageTotals, UsageError> {
        totals::conversation_totals(&self.connection, conversation)
            .map_err(|error| database_error(&self.path, error))
    }

    /// Returns the usage since a point in time, of all conversations or of one, with the latest share first.
    ///
    /// # Errors
    /// Fails if the records can't be read.
    pub fn usage_since(
        &self,
        since: &Zoned,
        conversation: Option<&str>,
        by: UsageGrouping,
    ) -> Result<UsageReport, UsageError> {
        totals::usage_shares(&self.connection, since, conversation, by)
            .map_err(|error| database_error(&self.path, error))
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let settings = ConnectionSettings { busy_timeout: BUSY_TIMEOUT, sync: SyncMode::Normal };
    let connection = settings.connect(path)?;
    connection.execute_batch("PRAGMA wal_autocheckpoint = 256;")?;
    Ok(connection)
}

fn database_error(path: &Path, error: rusqlite::Error) -> UsageError {
    match SqliteErrorKind::of(&error) {
        SqliteErrorKind::NotADatabase => UsageError::Foreign { path: path.to_owned() },
        _ => UsageError::Database { path: path.to_owned(), source: Box::new(error) },
    }
}
