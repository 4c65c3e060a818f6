//! The file that calls are counted in.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::{Timestamp, Zoned};
use rusqlite::{Connection, OpenFlags, Row, Transaction, TransactionBehavior, named_params, params};

use super::amount::{Amount, Price};
use super::budget::{Budget, LimitReached};
use super::error::UsageError;
use super::report::{By, Share, Totals, Usage};
use crate::providers;

/// "Cuse" in the header of the file: whose database it is.
const APPLICATION_ID: i32 = 0x4375_7365;

const VERSION: i32 = 1;

/// Times are milliseconds since 1970; `took` is missing while a call is under way, and when it was killed.
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

const SUMS: &str = "count(*), total(failed), total(prompt_tokens), total(completion_tokens), total(estimated), \
                    total(took), total(cost)";

/// How long somebody else may hold the database, before we give up.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The accounts of one home. Several processes may use one file.
#[derive(Debug)]
pub struct Accounts {
    connection: Connection,
    path: PathBuf,
}

/// A call that is about to be made.
#[derive(Debug, Clone, Copy)]
pub struct Begun<'b> {
    /// In which conversation.
    pub conversation: &'b str,
    /// To whom.
    pub provider: &'b str,
    /// For which model.
    pub model: &'b str,
    /// How many tokens it sends, by estimate.
    pub prompt_tokens: u64,
    /// What they cost.
    pub price: Price,
}

/// How a call ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// With no answer.
    pub failed: bool,
    /// Nobody has counted the tokens.
    pub estimated: bool,
    /// What it used.
    pub usage: providers::Usage,
    /// How long it took.
    pub took: Duration,
}

/// Why a call may not be made.
pub(super) enum Refusal {
    Limit(LimitReached),
    Broken(UsageError),
}

impl Accounts {
    /// Opens them, and makes them when they are not there.
    ///
    /// # Errors
    /// When the file can't be used.
    pub fn open(path: &Path) -> Result<Self, UsageError> {
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        match made {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(UsageError::File { path: path.to_owned(), source: error });
            }
            _ => {}
        }
        let connection = connect(path).map_err(|error| broken(path, error))?;
        let accounts = Self { connection, path: path.to_owned() };
        accounts.prepare()?;
        Ok(accounts)
    }

    fn prepare(&self) -> Result<(), UsageError> {
        if self.version()? == Some(VERSION) {
            return Ok(());
        }
        let make = || {
            let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
            let empty: bool =
                transaction
                    .query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))?;
            // Another process may have been faster.
            if empty {
                transaction.execute_batch(SCHEMA)?;
                transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
                transaction.pragma_update(None, "user_version", VERSION)?;
            }
            transaction.commit()
        };
        self.connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
            .and_then(|()| make())
            .map_err(|error| broken(&self.path, error))?;
        match self.version()? {
            Some(VERSION) => Ok(()),
            _ => Err(UsageError::Foreign { path: self.path.clone() }),
        }
    }

    /// `None` of a file that is not ours, or not yet.
    fn version(&self) -> Result<Option<i32>, UsageError> {
        let number = |name| self.connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
        let both = number("application_id").and_then(|id| Ok((id, number("user_version")?)));
        let (id, version) = both.map_err(|error| broken(&self.path, error))?;
        Ok((id == APPLICATION_ID).then_some(version))
    }

    /// Writes down that a call begins, if there is something left of every limit. Returns its number.
    pub(super) fn begin(&self, call: &Begun<'_>, budget: &Budget, now: &Zoned) -> Result<i64, Refusal> {
        let fail = |error| Refusal::Broken(broken(&self.path, error));
        // What is looked at and what is written is one step, also for other processes.
        let transaction =
            Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate).map_err(fail)?;
        if budget.is_set() {
            let today = day_of(&transaction, now).map_err(fail)?;
            let conversation = of_conversation(&transaction, call.conversation).map_err(fail)?;
            budget.check(&today, &conversation, now).map_err(Refusal::Limit)?;
        }
        let usage = providers::Usage { prompt_tokens: call.prompt_tokens, completion_tokens: 0 };
        transaction
            .execute(
                "INSERT INTO call (begun, conversation, provider, model, failed, estimated, prompt_tokens, \
                 completion_tokens, cost) VALUES (?, ?, ?, ?, 1, 1, ?, 0, ?)",
                params![
                    now.timestamp().as_millisecond(),
                    call.conversation,
                    call.provider,
                    call.model,
                    column(call.prompt_tokens),
                    column(call.price.of(usage).0)
                ],
            )
            .map_err(fail)?;
        let number = transaction.last_insert_rowid();
        transaction.commit().map_err(fail)?;
        Ok(number)
    }

    /// Writes down how a call ended.
    pub(super) fn end(&self, number: i64, ended: &Ended, price: Price) -> Result<(), UsageError> {
        let took = u64::try_from(ended.took.as_millis()).unwrap_or(u64::MAX);
        self.connection
            .execute(
                "UPDATE call SET took = :took, failed = :failed, estimated = :estimated, prompt_tokens = :prompt, \
                 completion_tokens = :completion, cost = :cost WHERE id = :id",
                named_params! {
                    ":took": column(took),
                    ":failed": ended.failed,
                    ":estimated": ended.estimated,
                    ":prompt": column(ended.usage.prompt_tokens),
                    ":completion": column(ended.usage.completion_tokens),
                    ":cost": column(price.of(ended.usage).0),
                    ":id": number,
                },
            )
            .map(drop)
            .map_err(|error| broken(&self.path, error))
    }

    /// What was used since the beginning of the day of `now`.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn today(&self, now: &Zoned) -> Result<Totals, UsageError> {
        day_of(&self.connection, now).map_err(|error| broken(&self.path, error))
    }

    /// What a conversation has used.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn conversation(&self, conversation: &str) -> Result<Totals, UsageError> {
        of_conversation(&self.connection, conversation).map_err(|error| broken(&self.path, error))
    }

    /// What was used since a moment, by all or by one conversation, the latest share first.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn since(&self, since: &Zoned, conversation: Option<&str>, by: By) -> Result<Usage, UsageError> {
        self.shares(since, conversation, by).map_err(|error| broken(&self.path, error))
    }

    fn shares(&self, since: &Zoned, conversation: Option<&str>, by: By) -> rusqlite::Result<Usage> {
        let mut statement = self.connection.prepare(&format!(
            "SELECT conversation, provider, model, max(begun), {SUMS} FROM call WHERE begun >= ?1 AND \
             (?2 IS NULL OR conversation = ?2) GROUP BY begun / 900000, conversation, provider, model"
        ))?;
        let mut found = statement.query(params![since.timestamp().as_millisecond(), conversation])?;
        let mut shares: BTreeMap<String, (i64, Totals)> = BTreeMap::new();
        let mut total = Totals::default();
        while let Some(row) = found.next()? {
            let begun: i64 = row.get(3)?;
            let name = match by {
                By::Conversation => row.get(0)?,
                By::Model => format!("{} {}", row.get::<_, String>(1)?, row.get::<_, String>(2)?),
                // Days begin at a quarter of an hour, in every zone that there is.
                By::Day => {
                    let moment = Timestamp::from_millisecond(begun).unwrap_or_default();
                    moment.to_zoned(since.time_zone().clone()).date().to_string()
                }
            };
            let sum = totals(row, 4)?;
            total = total.plus(sum);
            let share = shares.entry(name).or_default();
            *share = (share.0.max(begun), share.1.plus(sum));
        }
        let mut shares: Vec<(i64, Share)> =
            shares.into_iter().map(|(name, (last, totals))| (last, Share { name, totals })).collect();
        shares.sort_by_key(|(last, _)| std::cmp::Reverse(*last));
        Ok(Usage { shares: shares.into_iter().map(|(_, share)| share).collect(), total })
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // What was committed survives the end of the process; that of the machine may cost the last calls.
    connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA cell_size_check = ON;")?;
    Ok(connection)
}

fn broken(path: &Path, error: rusqlite::Error) -> UsageError {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => UsageError::Foreign { path: path.to_owned() },
        _ => UsageError::Database { path: path.to_owned(), source: Box::new(error) },
    }
}

fn day_of(connection: &Connection, now: &Zoned) -> rusqlite::Result<Totals> {
    let midnight = now.start_of_day().unwrap_or_else(|_| now.clone());
    connection.query_row(
        &format!("SELECT {SUMS} FROM call WHERE begun >= ?"),
        [midnight.timestamp().as_millisecond()],
        |row| totals(row, 0),
    )
}

fn of_conversation(connection: &Connection, conversation: &str) -> rusqlite::Result<Totals> {
    connection.query_row(&format!("SELECT {SUMS} FROM call WHERE conversation = ?"), [conversation], |row| {
        totals(row, 0)
    })
}

fn totals(row: &Row<'_>, from: usize) -> rusqlite::Result<Totals> {
    let number = |column: usize| row.get::<_, f64>(from + column).map(counted);
    Ok(Totals {
        calls: row.get::<_, i64>(from).map(|calls| u64::try_from(calls).unwrap_or_default())?,
        failed: number(1)?,
        prompt_tokens: number(2)?,
        completion_tokens: number(3)?,
        estimated: number(4)?,
        milliseconds: number(5)?,
        cost: Amount(number(6)?),
    })
}

/// `total` adds up without an end, as a number with a fraction.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast stops at both ends, and that is what is wanted"
)]
fn counted(number: f64) -> u64 {
    number as u64
}

/// As large as a column can be.
fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
