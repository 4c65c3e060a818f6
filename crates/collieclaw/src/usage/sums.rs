//! Adding up.

use std::collections::BTreeMap;

use jiff::{Timestamp, Zoned};
use rusqlite::{Connection, Row, params};

use super::amount::Amount;
use super::report::{By, Share, Totals, Usage};

const SUMS: &str = "count(*), total(failed), total(prompt_tokens), total(completion_tokens), total(estimated), \
                    total(took), total(cost)";

pub(super) fn shares(
    connection: &Connection,
    since: &Zoned,
    conversation: Option<&str>,
    by: By,
) -> rusqlite::Result<Usage> {
    let mut statement = connection.prepare(&format!(
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

pub(super) fn day_of(connection: &Connection, now: &Zoned) -> rusqlite::Result<Totals> {
    let midnight = now.start_of_day().unwrap_or_else(|_| now.clone());
    connection.query_row(
        &format!("SELECT {SUMS} FROM call WHERE begun >= ?"),
        [midnight.timestamp().as_millisecond()],
        |row| totals(row, 0),
    )
}

pub(super) fn of_conversation(connection: &Connection, conversation: &str) -> rusqlite::Result<Totals> {
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
