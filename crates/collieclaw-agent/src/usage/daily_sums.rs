//! Summaries of old days, so that the file grows by a few rows a day, however many requests there are.

use std::collections::BTreeMap;

use jiff::{ToSpan, Zoned};
use rusqlite::{Connection, OptionalExtension, params};

use super::report::UsageTotals;
use super::totals::{self, SUMS};

/// The number of days for which each request is kept with its conversation.
pub(super) const DETAILED_DAYS: i64 = 400;

/// The sums of days whose requests were deleted. `last` is the start of the latest request. After a change of
/// the time zone, a day may have two sums.
pub(super) const SCHEMA: &str = "
CREATE TABLE day (
    date TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    last INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    estimated INTEGER NOT NULL,
    took INTEGER NOT NULL,
    cost INTEGER NOT NULL
) STRICT;
";

/// Replaces requests older than [`DETAILED_DAYS`] by sums if `now` is the first request of its day. Must be
/// called in a transaction.
pub(super) fn fold_old_calls(connection: &Connection, now: &Zoned) -> rusqlite::Result<()> {
    let milliseconds = now.timestamp().as_millisecond();
    // If the clock was ahead for a while, there may be requests with a time in the future.
    let last: Option<i64> = connection
        .query_row(
            "SELECT begun FROM call WHERE begun <= ? ORDER BY begun DESC LIMIT 1",
            [milliseconds],
            |row| row.get(0),
        )
        .optional()?;
    let Ok(today) = now.start_of_day() else { return Ok(()) };
    match today.checked_sub(DETAILED_DAYS.days()) {
        Ok(first) if last.is_some_and(|last| last < today.timestamp().as_millisecond()) => {
            fold_calls_before(connection, &first)
        }
        _ => Ok(()),
    }
}

fn fold_calls_before(connection: &Connection, first: &Zoned) -> rusqlite::Result<()> {
    let first_kept = first.timestamp().as_millisecond();
    let mut days: BTreeMap<(String, String, String), (i64, UsageTotals)> = BTreeMap::new();
    let mut statement = connection.prepare(&format!(
        "SELECT provider, model, max(begun), {SUMS} FROM call WHERE begun < ? GROUP BY begun / {}, provider, model",
        totals::QUARTER_HOUR_MILLISECONDS
    ))?;
    let mut found = statement.query([first_kept])?;
    while let Some(row) = found.next()? {
        let last: i64 = row.get(2)?;
        let sum = days.entry((totals::local_date(last, first), row.get(0)?, row.get(1)?)).or_default();
        *sum = (sum.0.max(last), sum.1.plus(totals::read_totals(row, 3)?));
    }
    let mut add = connection.prepare("INSERT INTO day VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?;
    for ((date, provider, model), (last, sum)) in days {
        let [calls, failed, read, written] =
            [sum.calls, sum.failed, sum.prompt_tokens, sum.completion_tokens].map(totals::column_value);
        let [estimated, took, cost] = [sum.estimated, sum.milliseconds, sum.cost.0].map(totals::column_value);
        add.execute(params![
            date, provider, model, last, calls, failed, read, written, estimated, took, cost
        ])?;
    }
    connection.execute("DELETE FROM call WHERE begun < ?", [first_kept]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::amount::TokenPrice;
    use super::super::budget::UsageBudget;
    use super::super::database::{ProviderCallEnd, ProviderCallStart, UsageDatabase};
    use super::super::report::UsageGrouping;
    use super::*;
    use collieclaw_providers::TokenUsage;
    use std::path::Path;
    use std::time::Duration;

    fn call(database: &UsageDatabase, conversation: &str, model: &str, now: &Zoned) {
        let price = TokenPrice::default();
        let begun = ProviderCallStart { conversation, provider: "local", model, prompt_tokens: 10, price };
        let number = database
            .record_start(&begun, &UsageBudget::default(), now)
            .unwrap_or_else(|_| panic!("it is not limited"));
        let usage = TokenUsage { prompt_tokens: 10, completion_tokens: 5 };
        let ended =
            ProviderCallEnd { failed: false, estimated: false, usage, took: Duration::from_millis(7) };
        database.record_end(number, &ended, price).unwrap();
    }

    fn rows(path: &Path, table: &str) -> i64 {
        let connection = Connection::open(path).unwrap();
        connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn old_calls_are_summed_up_on_a_new_day_without_loss() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usage.db");
        let database = UsageDatabase::open(&path).unwrap();
        let start: Zoned = "2024-03-01T23:50:00+01:00[Europe/Berlin]".parse().unwrap();
        let later = |days: i64| start.checked_add(days.days()).unwrap();
        for model in ["small", "small", "large"] {
            call(&database, "old", model, &start);
        }
        // Twenty minutes later is the next day, but only in this time zone.
        call(&database, "old", "small", &start.checked_add(20.minutes()).unwrap());
        call(&database, "new", "small", &later(300));
        assert_eq!((rows(&path, "call"), rows(&path, "day")), (5, 0));

        call(&database, "new", "small", &later(401));
        assert_eq!((rows(&path, "call"), rows(&path, "day")), (3, 2), "the day after is in reach");
        call(&database, "new", "small", &later(402));
        call(&database, "new", "small", &later(402));
        assert_eq!((rows(&path, "call"), rows(&path, "day")), (4, 3));

        let of = |by, conversation| {
            let usage = database.usage_since(&start.start_of_day().unwrap(), conversation, by).unwrap();
            let share = |share: &super::super::report::UsageShare| (share.name.clone(), share.totals.calls);
            (usage.shares.iter().map(share).collect::<Vec<_>>(), usage.total.calls, usage.total.tokens())
        };
        let named = |shares: &[(&str, u64)]| {
            shares.iter().map(|(name, calls)| ((*name).to_owned(), *calls)).collect::<Vec<_>>()
        };
        let days = named(&[
            ("2025-04-07", 2),
            ("2025-04-06", 1),
            ("2024-12-26", 1),
            ("2024-03-02", 1),
            ("2024-03-01", 3),
        ]);
        assert_eq!(of(UsageGrouping::Day, None), (days, 8, 120));
        assert_eq!(of(UsageGrouping::Model, None).0, named(&[("local small", 7), ("local large", 1)]));
        assert_eq!(of(UsageGrouping::Conversation, None).0, named(&[("new", 4), (totals::NO_DETAIL, 4)]));
        assert_eq!(of(UsageGrouping::Day, Some("old")).1, 0, "whose they were is not known any more");
    }

    #[test]
    fn a_clock_that_jumps_ahead_and_back_does_not_reset_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usage.db");
        let database = UsageDatabase::open(&path).unwrap();
        let now: Zoned = "2024-03-01T12:00:00+01:00[Europe/Berlin]".parse().unwrap();
        let later = |days: i64| now.checked_add(days.days()).unwrap();
        call(&database, "a", "small", &now);
        call(&database, "a", "large", &now);
        call(&database, "a", "small", &later(402));
        assert_eq!((rows(&path, "call"), rows(&path, "day")), (1, 2), "the day's calls are sums");
        assert_eq!(database.today_totals(&now).unwrap().calls, 2, "and count for it");
        assert_eq!(database.today_totals(&now).unwrap().tokens(), 30);
        assert_eq!(
            database.today_totals(&later(1)).unwrap().calls,
            0,
            "what is to come counts for no day before"
        );
        // Old requests are summed up on each new day, however far the clock jumps.
        for days in [1000, 1, 402] {
            call(&database, "a", "small", &later(days));
        }
        assert_eq!((rows(&path, "call"), rows(&path, "day")), (2, 4));
    }

    #[test]
    fn a_file_of_the_first_version_is_migrated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usage.db");
        drop(UsageDatabase::open(&path).unwrap());
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("DROP TABLE day; PRAGMA user_version = 1;").unwrap();
        let now = Zoned::now();
        for _ in 0..2 {
            let database = UsageDatabase::open(&path).unwrap();
            call(&database, "a", "small", &now);
        }
        assert_eq!((rows(&path, "call"), rows(&path, "day")), (2, 0));
    }
}
