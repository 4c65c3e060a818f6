//! A text that comes bit by bit, without the secret in it.

use super::{MIN_REDACTABLE_BYTES, Secret};

/// Lets bits of a text through. A bit that may be the beginning of the secret waits for the next.
#[derive(Debug)]
pub struct SecretRedactor<'s> {
    secret: Option<&'s Secret>,
    pending: String,
}

impl<'s> SecretRedactor<'s> {
    /// Over a text in which this must not be seen.
    #[must_use]
    pub fn new(secret: Option<&'s Secret>) -> Self {
        Self { secret: secret.filter(|secret| !secret.reveal().is_empty()), pending: String::new() }
    }

    /// What can be shown now. All bits and the end together are what [`Secret::redact_in`] makes of the whole text,
    /// or its beginning.
    #[must_use]
    pub fn redact_chunk(&mut self, bit: &str) -> String {
        let Some(secret) = self.secret else { return bit.to_owned() };
        if secret.reveal().len() < MIN_REDACTABLE_BYTES {
            return String::new();
        }
        self.pending.push_str(bit);
        let mut shown = String::new();
        while let Some((before, after)) = self.pending.split_once(secret.reveal()) {
            shown.push_str(before);
            shown.push_str("***");
            self.pending = after.to_owned();
        }
        let begins = |rest: &str| secret.reveal().starts_with(rest);
        let mut starts = self.pending.char_indices().map(|(start, _)| start);
        let start = starts.find(|start| self.pending.get(*start..).is_some_and(begins));
        let waiting = self.pending.split_off(start.unwrap_or(self.pending.len()));
        shown.push_str(&std::mem::replace(&mut self.pending, waiting));
        shown
    }

    /// What was held back and was no secret after all.
    #[must_use]
    pub fn finish(self) -> String {
        self.pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_pieces_is_hidden_as_one_in_one_piece() {
        let secret = Secret::new("aab-ü".to_owned());
        for text in ["", "hello", "aaab-ü aab-", "aab-üaab-üa", "a", "aab aab-üx", "üaab-"] {
            let whole = secret.redact_in(text);
            for cut in text.char_indices().map(|(at, _)| at) {
                let (first, second) = text.split_at(cut);
                let mut veil = SecretRedactor::new(Some(&secret));
                let shown = [veil.redact_chunk(first), veil.redact_chunk(second), veil.finish()].concat();
                assert_eq!(shown, whole, "{text} cut at {cut}");
            }
            let mut veil = SecretRedactor::new(Some(&secret));
            let mut shown: String =
                text.chars().map(|letter| veil.redact_chunk(&letter.to_string())).collect();
            assert!(!shown.contains(secret.reveal()));
            shown.push_str(&veil.finish());
            assert_eq!(shown, whole, "{text} letter by letter");
        }
    }

    #[test]
    fn what_can_not_be_the_secret_is_not_held_back() {
        let secret = Secret::new("sk-4711".to_owned());
        let mut veil = SecretRedactor::new(Some(&secret));
        assert_eq!(veil.redact_chunk("the key is sk"), "the key is ");
        assert_eq!(veil.redact_chunk("y"), "sky");
        assert_eq!(SecretRedactor::new(None).redact_chunk("anything"), "anything");
        assert_eq!(SecretRedactor::new(Some(&Secret::new("abc".to_owned()))).redact_chunk("anything"), "");
    }
}
