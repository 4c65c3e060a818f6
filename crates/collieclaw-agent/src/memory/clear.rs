//! Deletion of all turns without traces in the file.

use rusqlite::{Connection, Transaction, TransactionBehavior};
use serde::Serialize;

use super::error::MemoryFault;

/// The numbers of deleted items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ClearedCounts {
    pub turns: u64,
    pub conversations: u64,
}

/// Removes all rows, their index entries, and their remains in free pages and in the log.
///
/// The function does all steps even if no rows are left, because an earlier run may have been interrupted
/// after it deleted the rows.
pub(super) fn clear(connection: &Connection) -> Result<ClearedCounts, MemoryFault> {
    connection.execute_batch("PRAGMA secure_delete = ON")?;
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let turns = transaction.execute("DELETE FROM turn", [])?;
    let conversations = transaction.execute("DELETE FROM conversation", [])?;
    transaction.execute_batch(
        "INSERT INTO turn_words (turn_words) VALUES ('delete-all');
         INSERT INTO turn_grams (turn_grams) VALUES ('delete-all');",
    )?;
    transaction.commit()?;
    // The zeros have to be written to the file before the file is truncated.
    truncate_log(connection)?;
    connection.execute_batch("VACUUM")?;
    truncate_log(connection)?;
    Ok(ClearedCounts { turns: turns as u64, conversations: conversations as u64 })
}

fn truncate_log(connection: &Connection) -> Result<(), MemoryFault> {
    let busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if busy { Err(MemoryFault::TracesRemain) } else { Ok(()) }
}
