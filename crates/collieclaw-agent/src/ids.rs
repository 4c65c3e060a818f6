//! Names that nobody has had.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// `PREFIX-` and 32 hex digits of chance. Nothing rests on their being secret.
#[must_use]
pub fn random_id(prefix: &str) -> String {
    let mut chance = [0; 16];
    if getrandom::fill(&mut chance).is_err() {
        // Without chance, a moment, a process and a count are no name that was had before.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let moment = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let process = u128::from(std::process::id()) << 96;
        let count = u128::from(COUNT.fetch_add(1, Ordering::Relaxed)) << 80;
        chance = (moment ^ process ^ count).to_be_bytes();
    }
    format!("{prefix}-{}", data_encoding::HEXLOWER.encode(&chance))
}
