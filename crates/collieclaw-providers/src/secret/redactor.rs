//! Removes a secret from text that arrives in pieces.

use super::{MIN_REDACTABLE_BYTES, Secret};

/// Redacts streamed text. An end of the text that may be the beginning of the secret is held back until more arrives.
#[derive(Debug)]
pub struct SecretRedactor<'s> {
    secret: Option<&'s Secret>,
    pending: String,
}

impl<'s> SecretRedactor<'s> {
    /// Creates a redactor; without a secret, text passes unchanged.
    #[must_use]
    pub fn new(secret: Option<&'s Secret>) -> Self {
        Self { secret: secret.filter(|secret| !secret.reveal().is_empty()), pending: String::new() }
    }

    /// Adds a piece, and returns the text that can be shown now.
    ///
    /// All returned pieces and the result of [`Self::finish`] together equal the result of [`Secret::redact_in`] for the
    /// whole text. If the secret is too short to be redacted alone, nothing is returned.
    #[must_use]
    pub fn redact_chunk(&mut self, piece: &str) -> String {
        let Some(secret) = self.secret else { return piece.to_owned() };
        if secret.reveal().len() < MIN_REDACTABLE_BYTES {
            return String::new();
        }
        self.pending.push_str(piece);
        let mut shown = String::new();
        while let Some((before, after)) = self.pending.split_once(secret.reveal()) {
            shown.push_str(before);
            shown.push_str("***");
            self.pending = after.to_owned();
        }
        let may_be_secret = |rest: &str| secret.reveal().starts_with(rest);
        let mut starts = self.pending.char_indices().map(|(start, _)| start);
        let start = starts.find(|start| self.pending.get(*start..).is_some_and(may_be_secret));
        let held_back = self.pending.split_off(start.unwrap_or(self.pending.len()));
        shown.push_str(&std::mem::replace(&mut self.pending, held_back));
        shown
    }

    /// Returns the text that was held back and turned out not to be the secret.
    #[must_use]
    pub fn finish(self) -> String {
        self.pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_split_across_pieces_is_redacted() {
        let secret = Secret::new("aab-ü".to_owned());
        for text in ["", "hello", "aaab-ü aab-", "aab-üaab-üa", "a", "aab aab-üx", "üaab-"] {
            let whole = secret.redact_in(text);
            for cut in text.char_indices().map(|(at, _)| at) {
                let (first, second) = text.split_at(cut);
                let mut redactor = SecretRedactor::new(Some(&secret));
                let shown =
                    [redactor.redact_chunk(first), redactor.redact_chunk(second), redactor.finish()].concat();
                assert_eq!(shown, whole, "{text} cut at {cut}");
            }
            let mut redactor = SecretRedactor::new(Some(&secret));
            let mut shown: String =
                text.chars().map(|letter| redactor.redact_chunk(&letter.to_string())).collect();
            assert!(!shown.contains(secret.reveal()));
            shown.push_str(&redactor.finish());
            assert_eq!(shown, whole, "{text} character by character");
        }
    }

    #[test]
    fn only_a_possible_beginning_of_the_secret_is_held_back() {
        let secret = Secret::new("sk-4711".to_owned());
        let mut redactor = SecretRedactor::new(Some(&secret));
        assert_eq!(redactor.redact_chunk("the key is sk"), "the key is ");
        assert_eq!(redactor.redact_chunk("y"), "sky");
        assert_eq!(SecretRedactor::new(None).redact_chunk("anything"), "anything");
        assert_eq!(SecretRedactor::new(Some(&Secret::new("abc".to_owned()))).redact_chunk("anything"), "");
    }
}
