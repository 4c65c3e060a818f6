//! The row that describes all others: the generation of the database, the checksum of its content, and the end of the
//! audit log.

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use ward_ledger::Sha256Hash;

use super::digest::{RowHasher, RowSetDigest};
use super::fault::SqliteFault;
use super::head::StoreHeadContent;
use crate::audit::AuditAnchor;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DatabaseState {
    /// The generation, which every batch raises.
    pub(super) generation: i64,
    /// The last record that is known to be in the audit log.
    pub(super) audit: AuditAnchor,
    pub(super) digest: RowSetDigest,
}

impl DatabaseState {
    /// Returns the head of a database in this state.
    pub(super) fn head_content(&self) -> StoreHeadContent {
        StoreHeadContent { generation: self.generation, checksum: self.checksum() }
    }

    fn checksum(&self) -> Sha256Hash {
        let digest = self.digest.to_bytes();
        let values = [
            ValueRef::Integer(self.generation),
            ValueRef::Integer(self.audit.sequence.cast_signed()),
            ValueRef::Blob(self.audit.hash.as_bytes()),
            ValueRef::Blob(&digest),
        ];
        RowHasher::default().hash("state", values)
    }
}

pub(super) fn read_state(connection: &Connection) -> Result<DatabaseState, SqliteFault> {
    let sql =
        "SELECT generation, audit_sequence, audit_hash, content_digest, checksum FROM state WHERE id = 1";
    let mut statement = connection.prepare_cached(sql)?;
    let (generation, sequence, hash, digest, checksum) = statement.query_row([], |row| {
        let sequence: i64 = row.get(1)?;
        Ok((
            row.get(0)?,
            sequence,
            row.get::<_, String>(2)?,
            row.get::<_, Vec<u8>>(3)?,
            row.get::<_, String>(4)?,
        ))
    })?;
    let damaged = || SqliteFault::Damage("the checksum of its state is wrong".to_owned());
    let sequence = u64::try_from(sequence).map_err(|_| damaged())?;
    let hash = Sha256Hash::from_hex(hash.as_bytes()).ok_or_else(damaged)?;
    let digest = RowSetDigest::from_bytes(&digest).ok_or_else(damaged)?;
    let state = DatabaseState { generation, audit: AuditAnchor { sequence, hash }, digest };
    if state.checksum().to_string() == checksum { Ok(state) } else { Err(damaged()) }
}

pub(super) fn write_state(connection: &Connection, state: &DatabaseState) -> Result<(), SqliteFault> {
    let sql = "INSERT OR REPLACE INTO state VALUES (1, ?1, ?2, ?3, ?4, ?5)";
    connection.prepare_cached(sql)?.execute((
        state.generation,
        state.audit.sequence.cast_signed(),
        state.audit.hash.to_string(),
        state.digest.to_bytes(),
        state.checksum().to_string(),
    ))?;
    Ok(())
}
