//! The interface of a store (S8.1).

use std::time::Duration;

use shepherd_api::{AuditEvent, AuditRecord};
use shepherd_core::policy::Day;
use shepherd_core::{EngineSnapshot, PauseEnd, StoreWrite, StoredState, UsageCounter, UsageKey};
use shepherd_util::{EntryId, ProfileId};

use crate::error::StoreError;

/// The largest size, in bytes, of the records that one call of [`Store::read_audit`] returns, unless a single record is
/// longer: a request for a million records is answered in pieces.
pub const AUDIT_PAGE_BYTES: usize = 256 << 10;

/// The data that outlives the daemon. A store may be used on another thread than the one that opened it.
pub trait Store: Send {
    /// Reads everything that the engine needs, at once. That includes all usage: one row a day for each counter, some
    /// 20,000 a year in a large household.
    ///
    /// # Errors
    /// The data can't be read as a whole. An error never means "nothing used yet" (S8.4b).
    fn load(&self) -> Result<StoredState, StoreError>;

    /// Makes a batch durable: all of it when this returns, none of it on an error.
    ///
    /// After a disk failure during the write, the batch may still be found as a whole when the store is opened again;
    /// the store refuses every batch until then.
    ///
    /// # Errors
    /// A write can't be carried out. Usage that would overflow and events that don't fit the audit log are refused
    /// beforehand.
    fn apply(&mut self, writes: &[StoreWrite]) -> Result<(), StoreError>;

    /// Returns how much of a counter a profile used on a day.
    ///
    /// # Errors
    /// The data can't be read.
    fn get_usage(
        &self,
        profile: &ProfileId,
        counter: &UsageCounter,
        day: Day,
    ) -> Result<Duration, StoreError>;

    /// Returns the end of an entry's cooldown for a profile; `None` if the entry has not run yet.
    ///
    /// # Errors
    /// The data can't be read.
    fn get_cooldown_until(
        &self,
        profile: &ProfileId,
        entry_id: &EntryId,
    ) -> Result<Option<PauseEnd>, StoreError>;

    /// Reads the snapshot, which is stored as one value.
    ///
    /// # Errors
    /// The data can't be read.
    fn load_snapshot(&self) -> Result<EngineSnapshot, StoreError>;

    /// Returns the number of batches ever written. A caller that doesn't know whether a failed batch was written opens
    /// the store again and compares this number.
    fn generation(&self) -> u64;

    /// Returns the number of the last audit record; 0 if there is none yet.
    ///
    /// After [`apply`](Self::apply) the events of the batch are the last records, in order. If the end has moved by
    /// another number, the ledger added a record of its own or could not be written at once;
    /// [`read_audit`](Self::read_audit) returns it then.
    fn audit_end(&self) -> u64;

    /// Reads audit records, oldest first: those after this number, at most `limit`, and at most [`AUDIT_PAGE_BYTES`].
    /// An empty result means that there are no more. The cost depends only on what is returned, wherever it is in the
    /// log. Each record is checked against its own hash and the record before it.
    ///
    /// # Errors
    /// The log can't be read, or a record is damaged.
    fn read_audit(&self, after: Option<u64>, limit: u32) -> Result<Vec<AuditRecord>, StoreError>;

    /// Adds an event to the audit log.
    ///
    /// # Errors
    /// The same as for [`apply`](Self::apply).
    fn append_audit(&mut self, event: AuditEvent) -> Result<(), StoreError> {
        self.apply(&[StoreWrite::AppendAudit(Box::new(event))])
    }

    /// Adds to the usage of a day, in microseconds, rounded up.
    ///
    /// # Errors
    /// The same as for [`apply`](Self::apply).
    fn add_usage(
        &mut self,
        profile: &ProfileId,
        counter: &UsageCounter,
        day: Day,
        amount: Duration,
    ) -> Result<(), StoreError> {
        let key = UsageKey { profile: profile.clone(), counter: counter.clone(), day };
        self.apply(&[StoreWrite::AddUsage { key, amount }])
    }

    /// Sets the end of an entry's cooldown for a profile.
    ///
    /// # Errors
    /// The same as for [`apply`](Self::apply).
    fn set_cooldown_until(
        &mut self,
        profile: &ProfileId,
        entry_id: &EntryId,
        until: PauseEnd,
    ) -> Result<(), StoreError> {
        let (profile, entry_id) = (profile.clone(), entry_id.clone());
        self.apply(&[StoreWrite::SetCooldown { profile, entry_id, until }])
    }

    /// Replaces the snapshot.
    ///
    /// # Errors
    /// The same as for [`apply`](Self::apply).
    fn save_snapshot(&mut self, snapshot: EngineSnapshot) -> Result<(), StoreError> {
        self.apply(&[StoreWrite::SaveSnapshot(Box::new(snapshot))])
    }
}

/// Returns whole microseconds, rounded up, so that the count is never less than the usage.
///
/// Returns `None` if the number doesn't fit the database.
pub(crate) fn to_micros_rounded_up(amount: Duration) -> Option<i64> {
    i64::try_from(amount.as_nanos().div_ceil(1000)).ok()
}

/// Returns the sum if it fits the database.
pub(crate) fn add_usage_micros(key: &UsageKey, used_us: i64, amount: Duration) -> Result<i64, StoreError> {
    to_micros_rounded_up(amount)
        .and_then(|amount| used_us.checked_add(amount))
        .ok_or_else(|| StoreError::Overflow { key: Box::new(key.clone()) })
}

/// Returns the duration of a number that [`add_usage_micros`] made.
pub(crate) fn duration_from_micros(used_us: i64) -> Duration {
    Duration::from_micros(used_us.unsigned_abs())
}
