//! Forgetting.

use rusqlite::{Connection, Transaction, TransactionBehavior};
use serde::Serialize;

use super::error::MemoryFault;

/// What was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ClearedCounts {
    /// Turns.
    pub turns: u64,
    /// Conversations.
    pub conversations: u64,
}

/// Removes all rows, what they were found by, and what is left of them in free pages and in the log.
///
/// Whoever was interrupted after the rows were gone clears again; that is why nothing is skipped when there are none.
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
    // The zeros have to reach the file before it is made shorter.
    truncate_log(connection)?;
    connection.execute_batch("VACUUM")?;
    truncate_log(connection)?;
    Ok(ClearedCounts { turns: turns as u64, conversations: conversations as u64 })
}

fn truncate_log(connection: &Connection) -> Result<(), MemoryFault> {
    let busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if busy { Err(MemoryFault::TracesRemain) } else { Ok(()) }
}
