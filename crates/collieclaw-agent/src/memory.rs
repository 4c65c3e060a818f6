//! What was said, kept in SQLite and found again.
//!
//! An [`ConversationExchange`] is written in one transaction and is on disk when [`ConversationMemory::persist`] returns: it is there whole,
//! or not at all. Several processes may use one file.

mod clear;
mod error;
mod excerpt;
mod fold;
mod index_query;
mod query;
mod rank;
mod recent;
mod rows;
mod sample;
mod schema;
mod search;
mod turn;
mod words;

use std::path::{Path, PathBuf};

use rusqlite::{Connection, TransactionBehavior};

pub use clear::ClearedCounts;
pub use error::MemoryError;
pub use rows::ConversationSummary;
pub use turn::{ConversationExchange, ConversationTurn, FoundTurn, StoredToolResult};

use error::MemoryFault;

/// The memory of one home.
#[derive(Debug)]
pub struct ConversationMemory {
    connection: Connection,
    path: PathBuf,
}

impl ConversationMemory {
    /// Opens it, and makes it when it is not there. Its folder must exist.
    ///
    /// # Errors
    /// When the file can't be used: it is a link, not ours, of a later version, damaged or not writable.
    pub fn open(path: &Path) -> Result<Self, MemoryError> {
        let connection = schema::open(path)?;
        Ok(Self { connection, path: path.to_owned() })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps an exchange. It is on disk when this returns.
    ///
    /// # Errors
    /// When it can't be written, or is not one exchange of one conversation. Nothing of it is kept then.
    pub fn persist(&self, exchange: &ConversationExchange) -> Result<(), MemoryError> {
        self.with_connection("write to", |connection| {
            let transaction =
                rusqlite::Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
            rows::insert_exchange(&transaction, exchange)?;
            transaction.commit()?;
            Ok(())
        })
    }

    /// The last turns of a conversation, oldest first, as a model is shown them: the last exchange whole, and those before
    /// it while they fit in `limit` turns and 256 KiB, so that nobody sees a result without its call. Where the last
    /// exchange alone is more than that, what its tools returned is cut, and says so. A limit of 0 is nothing at all.
    ///
    /// # Errors
    /// When they can't be read.
    pub fn recent(&self, conversation_id: &str, limit: usize) -> Result<Vec<ConversationTurn>, MemoryError> {
        self.with_connection("read", |connection| recent::recent_turns(connection, conversation_id, limit))
    }

    /// All turns of a conversation, oldest first; none when there is no such conversation.
    ///
    /// # Errors
    /// When they can't be read.
    pub fn conversation(&self, conversation_id: &str) -> Result<Vec<ConversationTurn>, MemoryError> {
        self.with_connection("read", |connection| rows::read_conversation(connection, conversation_id))
    }

    /// The conversations, the one that was last spoken in first.
    ///
    /// # Errors
    /// When they can't be read.
    pub fn conversations(&self, limit: usize) -> Result<Vec<ConversationSummary>, MemoryError> {
        self.with_connection("read", |connection| rows::list_conversations(connection, limit))
    }

    /// The conversation that was last spoken in.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn latest_conversation(&self) -> Result<Option<String>, MemoryError> {
        self.with_connection("read", rows::latest_conversation)
    }

    /// How many turns there are.
    ///
    /// # Errors
    /// When they can't be counted.
    pub fn turn_count(&self) -> Result<u64, MemoryError> {
        self.with_connection("read", rows::turn_count)
    }

    /// The turns that fit best to what a person or a model typed, best first. Nothing in `query` is an operator.
    ///
    /// All of its words must occur in a turn, be it within other words; when there is no such turn, any of them.
    ///
    /// # Errors
    /// When the database can't be read.
    pub fn search(&self, query: &str, limit: usize) -> Result<Vec<FoundTurn>, MemoryError> {
        self.with_connection("search", |connection| search::search(connection, query, limit))
    }

    /// Forgets everything, so that it is not in the file any more either.
    ///
    /// # Errors
    /// When it can't be removed, or not from every place because another program is reading it just then.
    pub fn clear(&self) -> Result<ClearedCounts, MemoryError> {
        self.with_connection("clear", clear::clear)
    }

    fn with_connection<T>(
        &self,
        step: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, MemoryFault>,
    ) -> Result<T, MemoryError> {
        work(&self.connection).map_err(|trouble| trouble.into_error(step, &self.path))
    }
}
