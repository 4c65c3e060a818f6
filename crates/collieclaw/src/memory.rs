//! What was said, kept in SQLite and found again.

mod turn;

use std::path::Path;

use rusqlite::Connection;

pub use turn::{Exchange, Found, ToolOutcome, Turn};

/// The memory.
pub struct Memory {
    connection: Connection,
}

impl Memory {
    /// Opens it, and makes it when it is not there.
    ///
    /// # Errors
    /// When the file can't be used.
    pub fn open(path: &Path) -> Result<Self, rusqlite::Error> {
        Ok(Self { connection: Connection::open(path)? })
    }
}
