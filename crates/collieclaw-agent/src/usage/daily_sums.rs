//! Old calls become sums of their days: the file grows by some lines a day, however many calls there are.

use std::collections::BTreeMap;

use jiff::{ToSpan, Zoned};
use rusqlite::{Connection, OptionalExtension, params};

use super::report::UsageTotals;
use super::totals::{self, SUMS};

/// For so long each call is known by itself, with its conversation.
pub(super) const DETAILED_DAYS: i64 = 400;

/// Sums of days whose calls are gone. `last` is when the last of them began. A traveller may have two of a day.
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

/// Folds what is older than the days in detail, if `now` is the first call of its day. To be called in a transaction.
pub(super) fn fold_old_calls(connection: &Connection, now: &Zoned) -> rusqlite::Result<()> {
    let moment = now.timestamp().as_millisecond();
    // A clock that was ahead once has left calls of days that are still to come.
    let last: Option<i64> = connection
        .query_row("SELECT begun FROM call WHERE begun <= ? ORDER BY begun DESC LIMIT 1", [moment], |row| {
            row.get(0)
        })
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

    fn call(accounts: &UsageDatabase, conversation: &str, model: &str, now: &Zoned) {
        let price = TokenPrice::default();
        let begun = ProviderCallStart { conversation, provider: "local", model, prompt_tokens: 10, price };
        let number = accounts
            .record_start(&begun, &UsageBudget::default(), now)
            .unwrap_or_else(|_| panic!("it is not limited"));
        let usage = TokenUsage { prompt_tokens: 10, completion_tokens: 5 };
        let ended =
            ProviderCallEnd { failed: false, estimated: false, usage, took: Duration::from_millis(7) };
        accounts.record_end(number, &ended, price).unwrap();
    }

    fn rows(path: &Path, table: &str) -> i64 {
        let connection = Connection::open(path).unwrap();
        connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn calls_of_old_days_become_sums_when_a_day_begins_and_nothing_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usage.db");
        let accounts = UsageDatabase::open(&path).unwrap();
        let start: Zoned = "2024-03-01T23:50:00+01:00[Europe/Berlin]".parse().unwrap();
        let later = |days: i64| start.checked_add(days.days()).unwrap();
        for model in ["small", "small", "large"] {
            call(&accounts, "old", model, &start);
        }
        // Twenty minutes on it is another day, here and nowhere else.
        call(&accounts, "old", "small", &start.checked_add(20.minutes()).unwrap());
        call(&accounts, "new", "small", &later(300));
        assert_eq!((rows(&path, "call"), rows(&path, "day")), (5, 0));

        call(&accounts, "new", "small", &later(401));
        assert_eq!((rows(&path, "call"), rows(&path, "day")), (3, 2), "the day after is in reach");
        call(&accounts, "new", "small", &later(402));
        call(&accounts, "new", "small", &later(402));
        assert_eq!((rows(&path, "call"), rows(&path, "day")), (4, 3));

        let of = |by, conversation| {
            let usage = accounts.usage_since(&start.start_of_day().unwrap(), conversation, by).unwrap();
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
    fn a_clock_that_leaps_and_comes_back_gives_no_more_than_a_day_has() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usage.db");
        let accounts = UsageDatabase::open(&path).unwrap();
        let now: Zoned = "2024-03-01T12:00:00+01:00[Europe/Berlin]".parse().unwrap();
        let later = |days: i64| now.checked_add(days.days()).unwrap();
        call(&accounts, "a", "small", &now);
        call(&accounts, "a", "large", &now);
        call(&accounts, "a", "small", &later(402));
        assert_eq!((rows(&path, "call"), rows(&path, "day")), (1, 2), "the day's calls are sums");
        assert_eq!(accounts.today_totals(&now).unwrap().calls, 2, "and count for it");
        assert_eq!(accounts.today_totals(&now).unwrap().tokens(), 30);
        assert_eq!(
            accounts.today_totals(&later(1)).unwrap().calls,
            0,
            "what is to come counts for no day before"
        );
        // However far it leaps, days go on beginning.
        for days in [1000, 1, 402] {
            call(&accounts, "a", "small", &later(days));
        }
        assert_eq!((rows(&path, "call"), rows(&path, "day")), (2, 4));
    }

    #[test]
    fn a_file_of_the_first_version_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usage.db");
        drop(UsageDatabase::open(&path).unwrap());
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("DROP TABLE day; PRAGMA user_version = 1;").unwrap();
        let now = Zoned::now();
        for _ in 0..2 {
            let accounts = UsageDatabase::open(&path).unwrap();
            call(&accounts, "a", "small", &now);
        }
        assert_eq!((rows(&path, "call"), rows(&path, "day")), (2, 0));
    }
}
