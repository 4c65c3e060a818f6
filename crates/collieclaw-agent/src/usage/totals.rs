//! Queries that sum up recorded usage.

use std::collections::BTreeMap;

use jiff::{Timestamp, Zoned};
use rusqlite::{Connection, Row, params};

use super::amount::CostAmount;
use super::report::{UsageGrouping, UsageReport, UsageShare, UsageTotals};

pub(super) const SUMS: &str = "count(*), total(failed), total(prompt_tokens), total(completion_tokens), total(estimated), \
                    total(took), total(cost)";

/// A quarter of an hour in milliseconds. In every time zone, days start at a multiple of it.
pub(super) const QUARTER_HOUR_MILLISECONDS: i64 = 15 * 60 * 1_000;

/// The name for requests whose conversations are no longer recorded.
pub(super) const NO_DETAIL: &str = "(older)";

/// Returns the usage since the start of a day.
pub(super) fn usage_shares(
    connection: &Connection,
    since: &Zoned,
    conversation: Option<&str>,
    by: UsageGrouping,
) -> rusqlite::Result<UsageReport> {
    let mut statement = connection.prepare(&format!(
        "SELECT conversation, provider, model, max(begun), {SUMS} FROM call WHERE begun >= ?1 AND \
         (?2 IS NULL OR conversation = ?2) GROUP BY begun / {QUARTER_HOUR_MILLISECONDS}, conversation, provider, model"
    ))?;
    let mut found = statement.query(params![since.timestamp().as_millisecond(), conversation])?;
    let mut shares: BTreeMap<String, (i64, UsageTotals)> = BTreeMap::new();
    let mut total = UsageTotals::default();
    let mut add = |name: String, last: i64, sum: UsageTotals| {
        total = total.plus(sum);
        let share = shares.entry(name).or_default();
        *share = (share.0.max(last), share.1.plus(sum));
    };
    while let Some(row) = found.next()? {
        let begun: i64 = row.get(3)?;
        let name = match by {
            UsageGrouping::Conversation => row.get(0)?,
            UsageGrouping::Model => format!("{} {}", row.get::<_, String>(1)?, row.get::<_, String>(2)?),
            UsageGrouping::Day => local_date(begun, since),
        };
        add(name, begun, read_totals(row, 4)?);
    }
    // Daily sums have no conversations.
    if conversation.is_none() {
        let mut statement = connection.prepare(
            "SELECT date, provider, model, last, calls, failed, prompt_tokens, completion_tokens, estimated, took, cost \
             FROM day WHERE date >= ?",
        )?;
        let mut found = statement.query([since.date().to_string()])?;
        while let Some(row) = found.next()? {
            let name = match by {
                UsageGrouping::Conversation => NO_DETAIL.to_owned(),
                UsageGrouping::Model => format!("{} {}", row.get::<_, String>(1)?, row.get::<_, String>(2)?),
                UsageGrouping::Day => row.get(0)?,
            };
            add(name, row.get(3)?, read_totals(row, 4)?);
        }
    }
    let mut shares: Vec<(i64, UsageShare)> =
        shares.into_iter().map(|(name, (last, totals))| (last, UsageShare { name, totals })).collect();
    shares.sort_by_key(|(last, _)| std::cmp::Reverse(*last));
    Ok(UsageReport { shares: shares.into_iter().map(|(_, share)| share).collect(), total })
}

/// Returns the usage on the day of `now`. If the clock was wrong for a while, requests of this day may have
/// been summed up already, and there may be requests with a time in the future.
pub(super) fn day_totals(connection: &Connection, now: &Zoned) -> rusqlite::Result<UsageTotals> {
    let midnight = now.start_of_day().unwrap_or_else(|_| now.clone());
    let next = now.tomorrow().and_then(|tomorrow| tomorrow.start_of_day());
    let next = next.map_or(i64::MAX, |next| next.timestamp().as_millisecond());
    let detailed = connection.query_row(
        &format!("SELECT {SUMS} FROM call WHERE begun >= ? AND begun < ?"),
        [midnight.timestamp().as_millisecond(), next],
        |row| read_totals(row, 0),
    )?;
    let summed = connection.query_row(
        "SELECT CAST(total(calls) AS INTEGER), total(failed), total(prompt_tokens), total(completion_tokens), \
         total(estimated), total(took), total(cost) FROM day WHERE date = ?",
        [now.date().to_string()],
        |row| read_totals(row, 0),
    )?;
    Ok(detailed.plus(summed))
}

pub(super) fn conversation_totals(
    connection: &Connection,
    conversation: &str,
) -> rusqlite::Result<UsageTotals> {
    connection.query_row(&format!("SELECT {SUMS} FROM call WHERE conversation = ?"), [conversation], |row| {
        read_totals(row, 0)
    })
}

/// Returns the local date of a timestamp.
pub(super) fn local_date(milliseconds: i64, zone: &Zoned) -> String {
    let timestamp = Timestamp::from_millisecond(milliseconds).unwrap_or_default();
    timestamp.to_zoned(zone.time_zone().clone()).date().to_string()
}

pub(super) fn read_totals(row: &Row<'_>, from: usize) -> rusqlite::Result<UsageTotals> {
    let number = |column: usize| row.get::<_, f64>(from + column).map(saturating_u64);
    Ok(UsageTotals {
        calls: row.get::<_, i64>(from).map(|calls| u64::try_from(calls).unwrap_or_default())?,
        failed: number(1)?,
        prompt_tokens: number(2)?,
        completion_tokens: number(3)?,
        estimated: number(4)?,
        milliseconds: number(5)?,
        cost: CostAmount(number(6)?),
    })
}

/// Converts the result of SQLite's `total`, which is a floating-point number without overflow.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturation is intended")]
fn saturating_u64(number: f64) -> u64 {
    number as u64
}

/// Limits a number to the range of a column.
pub(super) fn column_value(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
