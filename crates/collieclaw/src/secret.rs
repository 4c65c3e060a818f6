//! A value that is used and never shown.

use std::fmt;

use zeroize::Zeroizing;

/// A credential. It prints as `***`, and is wiped when dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

/// Shorter texts are too common to be taken out of what is shown.
const SHORTEST_HIDDEN: usize = 6;

impl Secret {
    /// Takes it over.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// For the one place that sends it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// A text of someone else, without the secret in it: servers like to repeat what they were sent.
    #[must_use]
    pub fn hidden_in(&self, text: &str) -> String {
        if self.0.len() < SHORTEST_HIDDEN { text.to_owned() } else { text.replace(self.reveal(), "***") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
