//! Unique ids for conversations, calls and receipts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns `PREFIX-` followed by 32 random hex digits. The digits are not a secret.
#[must_use]
pub fn random_id(prefix: &str) -> String {
    let mut random = [0; 16];
    if getrandom::fill(&mut random).is_err() {
        // Without a random source, the time, the process id and a counter make the id unique.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let process = u128::from(std::process::id()) << 96;
        let count = u128::from(COUNT.fetch_add(1, Ordering::Relaxed)) << 80;
        random = (nanoseconds ^ process ^ count).to_be_bytes();
    }
    format!("{prefix}-{}", data_encoding::HEXLOWER.encode(&random))
}
