//! What a store can do (S8.1).

use std::time::Duration;

use shepherd_api::{AuditEvent, AuditRecord};
use shepherd_core::policy::Day;
use shepherd_core::{EngineSnapshot, PauseEnd, StoreWrite, StoredState, UsageCounter, UsageKey};
use shepherd_util::{EntryId, ProfileId};

use crate::error::StoreError;

/// How much of the audit log, in bytes, one call of [`Store::read_audit`] returns at most, unless a single line is
/// longer: whoever asks for a million lines gets them in pieces.
pub const AUDIT_PAGE_BYTES: usize = 256 << 10;

/// What outlives the daemon. It may be used on another thread than the one that opened it.
pub trait Store: Send {
    /// Everything that the engine needs, at once. Of usage that is all there ever was: a row a day for each counter
    /// that was used on it, some 20,000 a year in a large household.
    ///
    /// # Errors
    /// When it can't be read whole. That means "not now, and here is why", never "nothing used yet" (S8.4b).
    fn load(&self) -> Result<StoredState, StoreError>;

    /// Makes a batch durable: all of it when this returns, on an error none.
    ///
    /// After a failure of the disk in the very moment of writing, the batch may yet be found, as a whole, by whoever
    /// opens the store again; the store itself refuses every batch until then.
    ///
    /// # Errors
    /// When a write can't be carried out. Usage that would overflow and events that don't fit the audit log are
    /// refused beforehand.
    fn apply(&mut self, writes: &[StoreWrite]) -> Result<(), StoreError>;

    /// How much of a counter a profile used on a day.
    ///
    /// # Errors
    /// When it can't be read.
    fn get_usage(
        &self,
        profile: &ProfileId,
        counter: &UsageCounter,
        day: Day,
    ) -> Result<Duration, StoreError>;

    /// Until when an entry is closed to a profile after a run; `None` if it has not run yet.
    ///
    /// # Errors
    /// When it can't be read.
    fn get_cooldown_until(
        &self,
        profile: &ProfileId,
        entry_id: &EntryId,
    ) -> Result<Option<PauseEnd>, StoreError>;

    /// The part that is written as a whole.
    ///
    /// # Errors
    /// When it can't be read.
    fn load_snapshot(&self) -> Result<EngineSnapshot, StoreError>;

    /// How many batches it holds, of all there ever were. Whoever is not sure whether a batch that failed was written
    /// opens the store again and compares this with what it was before.
    fn generation(&self) -> u64;

    /// The number of the last line of the audit log; 0 if there is none yet.
    ///
    /// After [`apply`](Self::apply) the events of the batch are the last lines, in their order. If the end has moved
    /// by another number, the log had an account of its own to give, or could not be written at once:
    /// [`read_audit`](Self::read_audit) tells then.
    fn audit_end(&self) -> u64;

    /// Lines of the audit log, the oldest first: those after this number, at most so many, and no more than
    /// [`AUDIT_PAGE_BYTES`]. None means that there are no more. The price is that of what is returned, wherever in the
    /// log it stands. Each line is compared with its own hash and with the line before.
    ///
    /// # Errors
    /// When the log can't be read, or a line is not what was written.
    fn read_audit(&self, after: Option<u64>, limit: u32) -> Result<Vec<AuditRecord>, StoreError>;

    /// Adds a line to the audit log.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    fn append_audit(&mut self, event: AuditEvent) -> Result<(), StoreError> {
        self.apply(&[StoreWrite::AppendAudit(Box::new(event))])
    }

    /// Adds to the usage of a day, in microseconds; a fraction of one is a whole one.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
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

    /// Closes an entry to a profile for a while.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    fn set_cooldown_until(
        &mut self,
        profile: &ProfileId,
        entry_id: &EntryId,
        until: PauseEnd,
    ) -> Result<(), StoreError> {
        let (profile, entry_id) = (profile.clone(), entry_id.clone());
        self.apply(&[StoreWrite::SetCooldown { profile, entry_id, until }])
    }

    /// Replaces the part that is written as a whole.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    fn save_snapshot(&mut self, snapshot: EngineSnapshot) -> Result<(), StoreError> {
        self.apply(&[StoreWrite::SaveSnapshot(Box::new(snapshot))])
    }
}

/// Whole microseconds, rounded up: what is counted is never less than what was used.
///
/// `None` if it does not fit a number of the database.
pub(crate) fn to_micros_rounded_up(amount: Duration) -> Option<i64> {
    i64::try_from(amount.as_nanos().div_ceil(1000)).ok()
}

/// The sum, if it still fits a number of the database.
pub(crate) fn add_usage_micros(key: &UsageKey, used_us: i64, amount: Duration) -> Result<i64, StoreError> {
    to_micros_rounded_up(amount)
        .and_then(|amount| used_us.checked_add(amount))
        .ok_or_else(|| StoreError::Overflow { key: Box::new(key.clone()) })
}

/// The length of time of a number that [`add_usage_micros`] made.
pub(crate) fn duration_from_micros(used_us: i64) -> Duration {
    Duration::from_micros(used_us.unsigned_abs())
}
