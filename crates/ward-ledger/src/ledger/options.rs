//! The options for opening a log.

use crate::chain::LedgerFormat;
use crate::key::LedgerKey;

/// The default size of a segment. Any editor can open such a file, and it holds about 150,000 records.
const DEFAULT_SEGMENT_BYTES: u64 = 64 << 20;

/// The options for writing a log.
#[derive(Clone, Debug)]
pub struct LedgerOptions {
    pub(super) format: LedgerFormat,
    pub(super) key: Option<LedgerKey>,
    pub(super) max_segment_bytes: u64,
    pub(super) adoption: AdoptionOptions,
}

/// Permissions to continue a log whose existing records can't be checked completely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AdoptionOptions {
    pub(super) unsigned: bool,
    pub(super) without_head: bool,
}

impl LedgerOptions {
    /// Creates options for a log of this format, without a key, in segments of 64 MiB.
    #[must_use]
    pub fn new(format: LedgerFormat) -> Self {
        Self {
            format,
            key: None,
            max_segment_bytes: DEFAULT_SEGMENT_BYTES,
            adoption: AdoptionOptions::default(),
        }
    }

    /// Signs every record and the head with a key. A signed log can't be continued without its key, and an
    /// unsigned log can be continued with a key only after [`LedgerOptions::adopt_unsigned`].
    #[must_use]
    pub fn with_key(self, key: LedgerKey) -> Self {
        Self { key: Some(key), ..self }
    }

    /// Starts a new segment before the current segment would exceed this size. Recovery records are an
    /// exception: they are always written to the segment that they are about.
    #[must_use]
    pub fn with_segment_bytes(self, max_segment_bytes: u64) -> Self {
        Self { max_segment_bytes, ..self }
    }

    /// Allows [`Ledger::open`](crate::Ledger::open) to continue unsigned records with a key.
    ///
    /// Anybody who can write the file may have written those records, and the signatures that follow will
    /// vouch for them. Use this only once, after somebody has looked at the log and decided to adopt it, and
    /// never by default. The ledger records the adoption.
    #[must_use]
    pub fn adopt_unsigned(self) -> Self {
        Self { adoption: AdoptionOptions { unsigned: true, ..self.adoption }, ..self }
    }

    /// Allows [`Ledger::open`](crate::Ledger::open) to continue records whose head is missing or damaged.
    ///
    /// Without a head, nothing shows whether the log had more records. Use this only once, after somebody has
    /// looked at the log and decided to adopt it, and never by default. The ledger records the adoption.
    #[must_use]
    pub fn adopt_without_head(self) -> Self {
        Self { adoption: AdoptionOptions { without_head: true, ..self.adoption }, ..self }
    }
}
