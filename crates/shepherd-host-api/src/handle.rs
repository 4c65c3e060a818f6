//! The handle by which a host finds a program again.

use serde::{Deserialize, Serialize};

/// The information that a host needs to reattach a program after a restart of the daemon (S5.2). Only the host that
/// made a handle can read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostSessionHandle(String);

impl HostSessionHandle {
    /// Makes a handle from the text that a host encoded.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// Returns the text, for the store and for the host that made it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
