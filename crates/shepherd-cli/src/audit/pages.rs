//! Reads the log from the daemon in pages.

use shepherd_api::{AuditRecord, Command, CommandReply};

use crate::daemon::DaemonConnection;
use crate::error::ShepherdCliError;

/// Records requested at once. The daemon may send fewer.
const PAGE_SIZE: u32 = 500;

/// Reads the page after a sequence number, or the first page without one. Returns `None` at the end of the log.
pub(super) fn page_after(
    daemon: &mut DaemonConnection<'_>,
    after: Option<u64>,
) -> Result<Option<Vec<AuditRecord>>, ShepherdCliError> {
    let records = read_page(daemon, after, PAGE_SIZE)?;
    Ok(if records.is_empty() { None } else { Some(records) })
}

/// Reads the last records. The protocol only reads forwards, so the end is found first by a search: about forty short
/// requests for a log of a million records.
pub(super) fn last_records(
    daemon: &mut DaemonConnection<'_>,
    count: u32,
) -> Result<Vec<AuditRecord>, ShepherdCliError> {
    let Some(first) = read_page(daemon, None, 1)?.first().map(|record| record.sequence) else {
        return Ok(Vec::new());
    };
    let end = find_last_sequence(first, |after| {
        Ok::<_, ShepherdCliError>(!read_page(daemon, Some(after), 1)?.is_empty())
    })?;
    let mut from = Some(end.saturating_sub(u64::from(count))).filter(|after| *after >= first);
    let mut records = Vec::new();
    while records.len() < usize::try_from(count).unwrap_or(usize::MAX) {
        let Some(page) = page_after(daemon, from)? else { break };
        from = page.last().map(|record| record.sequence);
        records.extend(page);
    }
    records.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    Ok(records)
}

/// Returns the greatest sequence number in the log, given one that exists.
fn find_last_sequence<E>(first: u64, mut more_after: impl FnMut(u64) -> Result<bool, E>) -> Result<u64, E> {
    let (mut has, mut step) = (first, 1_u64);
    while more_after(has.saturating_add(step - 1))? {
        has = has.saturating_add(step);
        step = step.saturating_mul(2);
    }
    // The log has a record with the number `has`, but no record with the number `beyond`.
    let mut beyond = has.saturating_add(step);
    while beyond - has > 1 {
        let middle = has + (beyond - has) / 2;
        if more_after(middle - 1)? {
            has = middle;
        } else {
            beyond = middle;
        }
    }
    Ok(has)
}

fn read_page(
    daemon: &mut DaemonConnection<'_>,
    after: Option<u64>,
    limit: u32,
) -> Result<Vec<AuditRecord>, ShepherdCliError> {
    match daemon.send_command(&Command::ReadAudit { after, limit })? {
        CommandReply::Audit { records } => Ok(records),
        _ => Err(ShepherdCliError::UnexpectedReply),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_with_few_requests() {
        for last in (1..200).chain([1_000_000, u64::from(u32::MAX)]) {
            let mut requests = 0;
            let found = find_last_sequence::<()>(1, |after| {
                requests += 1;
                Ok(after < last)
            });
            assert_eq!(found, Ok(last));
            assert!(requests < 80, "{last}: {requests}");
        }
        assert_eq!(find_last_sequence::<()>(7, |after| Ok(after < 9)), Ok(9));
    }
}
