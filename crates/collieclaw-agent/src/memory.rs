//! The memory: stores conversations in SQLite and searches them.
//!
//! [`ConversationMemory::persist`] writes a [`ConversationExchange`] in one transaction. The exchange is on
//! disk when `persist` returns; after a failure nothing of it is stored. Several processes may use the same
//! file.

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

#[derive(Debug)]
pub struct ConversationMemory {
    connection: Connection,
    path: PathBuf,
    scope: MemoryScope,
}

/// The conversations that are seen: those of one workspace, or all (C16).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryScope {
    /// Only conversations of this workspace; an empty text means the workspace of the configuration.
    Workspace(String),
    All,
}

impl MemoryScope {
    fn workspace(&self) -> Option<&str> {
        match self {
            Self::Workspace(workspace) => Some(workspace),
            Self::All => None,
        }
    }
}

impl ConversationMemory {
    /// Opens the memory. Creates the file if it doesn't exist; its folder must exist.
    ///
    /// # Errors
    /// Fails if the file can't be used: it is a symlink, belongs to another program, has a later version, is
    /// damaged, or can't be written to.
    pub fn open(path: &Path) -> Result<Self, MemoryError> {
        Self::open_scoped(path, MemoryScope::All)
    }

    /// Opens the memory like [`Self::open`], with only a part of its conversations. New conversations belong to the
    /// workspace of the scope.
    ///
    /// # Errors
    /// Fails like [`Self::open`].
    pub fn open_scoped(path: &Path, scope: MemoryScope) -> Result<Self, MemoryError> {
        let connection = schema::open(path)?;
        Ok(Self { connection, path: path.to_owned(), scope })
    }

    #[must_use]
    pub fn scope(&self) -> &MemoryScope {
        &self.scope
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stores an exchange. It is on disk when this function returns.
    ///
    /// # Errors
    /// Fails if the exchange can't be written, is empty, or mixes several conversations. In that case nothing
    /// of it is stored.
    pub fn persist(&self, exchange: &ConversationExchange) -> Result<(), MemoryError> {
        self.with_connection("write to", |connection| {
            let transaction =
                rusqlite::Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
            if let Some(first) = exchange.turns.first() {
                self.check_scope(&transaction, &first.conversation_id)?;
            }
            rows::insert_exchange(&transaction, exchange, self.scope.workspace().unwrap_or_default())?;
            transaction.commit()?;
            Ok(())
        })
    }

    /// Returns the last turns of a conversation for the model, oldest first. The result consists of whole
    /// exchanges, so that no tool result appears without its call: the last exchange in any case, and earlier
    /// ones while all of them fit in `limit` turns and 256 KiB. If the last exchange alone is larger, its
    /// tool results are truncated with a note. A limit of 0 returns no turns.
    ///
    /// # Errors
    /// Fails if the turns can't be read, or if the conversation belongs to another workspace.
    pub fn recent(&self, conversation_id: &str, limit: usize) -> Result<Vec<ConversationTurn>, MemoryError> {
        self.with_connection("read", |connection| {
            self.check_scope(connection, conversation_id)?;
            recent::recent_turns(connection, conversation_id, limit)
        })
    }

    /// Returns all turns of a conversation, oldest first. The list is empty if the conversation doesn't
    /// exist.
    ///
    /// # Errors
    /// Fails if the turns can't be read.
    pub fn conversation(&self, conversation_id: &str) -> Result<Vec<ConversationTurn>, MemoryError> {
        self.with_connection("read", |connection| rows::read_conversation(connection, conversation_id))
    }

    /// Returns the conversations, the most recently used first.
    ///
    /// # Errors
    /// Fails if they can't be read.
    pub fn conversations(&self, limit: usize) -> Result<Vec<ConversationSummary>, MemoryError> {
        self.with_connection("read", |connection| {
            rows::list_conversations(connection, self.scope.workspace(), limit)
        })
    }

    /// Returns the id of the conversation that was used last.
    ///
    /// # Errors
    /// Fails if the database can't be read.
    pub fn latest_conversation(&self) -> Result<Option<String>, MemoryError> {
        self.with_connection("read", |connection| {
            rows::latest_conversation(connection, self.scope.workspace())
        })
    }

    /// Returns the number of turns in all conversations.
    ///
    /// # Errors
    /// Fails if the database can't be read.
    pub fn turn_count(&self) -> Result<u64, MemoryError> {
        self.with_connection("read", rows::turn_count)
    }

    /// Returns the turns that match a text typed by a person or a model, best first. The text has no
    /// operators.
    ///
    /// A match contains all words of the query, also as parts of other words. If no turn contains all words,
    /// turns that contain some of them match.
    ///
    /// # Errors
    /// Fails if the database can't be read.
    pub fn search(&self, query: &str, limit: usize) -> Result<Vec<FoundTurn>, MemoryError> {
        self.with_connection("search", |connection| {
            search::search(connection, self.scope.workspace(), query, limit)
        })
    }

    /// Deletes all turns, and overwrites their remains in the file.
    ///
    /// # Errors
    /// Fails if the turns can't be deleted, or if another program reads the file at the same time so that
    /// traces remain.
    pub fn clear(&self) -> Result<ClearedCounts, MemoryError> {
        self.with_connection("clear", clear::clear)
    }

    /// Rejects a conversation of another workspace.
    fn check_scope(&self, connection: &Connection, conversation_id: &str) -> Result<(), MemoryFault> {
        let Some(own) = self.scope.workspace() else { return Ok(()) };
        match rows::workspace_of(connection, conversation_id)? {
            Some(workspace) if workspace != own => Err(MemoryFault::OtherWorkspace(workspace)),
            _ => Ok(()),
        }
    }

    fn with_connection<T>(
        &self,
        step: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, MemoryFault>,
    ) -> Result<T, MemoryError> {
        work(&self.connection).map_err(|fault| fault.into_error(step, &self.path))
    }
}
