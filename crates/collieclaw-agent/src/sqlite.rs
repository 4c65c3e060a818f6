//! The setting that all SQLite databases of CollieClaw share.

use std::time::Duration;

/// The longest time to wait for a lock that another process holds.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
