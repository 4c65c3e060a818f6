use crate::chain::LedgerFormat;
use crate::key::LedgerKey;

/// A segment of this size opens in any editor and holds some 150,000 records.
const DEFAULT_SEGMENT_BYTES: u64 = 64 << 20;

/// How a log is written.
#[derive(Clone, Debug)]
pub struct LedgerOptions {
    pub(super) format: LedgerFormat,
    pub(super) key: Option<LedgerKey>,
    pub(super) max_segment_bytes: u64,
    pub(super) adoption: AdoptionOptions,
}

/// What somebody has decided to continue although the ledger can't vouch for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AdoptionOptions {
    pub(super) unsigned: bool,
    pub(super) without_head: bool,
}

impl LedgerOptions {
    /// A log of this format, without a key, in segments of 64 MiB.
    #[must_use]
    pub fn new(format: LedgerFormat) -> Self {
        Self {
            format,
            key: None,
            max_segment_bytes: DEFAULT_SEGMENT_BYTES,
            adoption: AdoptionOptions::default(),
        }
    }

    /// Signs every record and the head. A log that was signed once can't be continued without,
    /// and one that was begun without needs [`LedgerOptions::adopt_unsigned`].
    #[must_use]
    pub fn with_key(self, key: LedgerKey) -> Self {
        Self { key: Some(key), ..self }
    }

    /// Begins a new segment before the present one grows over this size. Only the ledger's own
    /// record of a recovery stays in the segment that it is about.
    #[must_use]
    pub fn with_segment_bytes(self, max_segment_bytes: u64) -> Self {
        Self { max_segment_bytes, ..self }
    }

    /// Lets [`Ledger::open`](crate::Ledger::open) continue, with a key, records that nobody signed.
    ///
    /// Anybody who can write the file may have written them, and the signatures that follow vouch
    /// for them. So use it once, when somebody has looked at the log and said so, never as a
    /// matter of course. The ledger records that it was done.
    #[must_use]
    pub fn adopt_unsigned(self) -> Self {
        Self { adoption: AdoptionOptions { unsigned: true, ..self.adoption }, ..self }
    }

    /// Lets [`Ledger::open`](crate::Ledger::open) continue records whose head is gone or damaged.
    ///
    /// Nothing shows whether more records followed them. So use it once, when somebody has looked
    /// at the log and said so, never as a matter of course. The ledger records that it was done.
    #[must_use]
    pub fn adopt_without_head(self) -> Self {
        Self { adoption: AdoptionOptions { without_head: true, ..self.adoption }, ..self }
    }
}
