//! A text that comes bit by bit, without the secret in it.

use super::{SHORTEST_KNOWN, Secret};

/// Lets bits of a text through. A bit that may be the beginning of the secret waits for the next.
#[derive(Debug)]
pub struct Veil<'s> {
    secret: Option<&'s Secret>,
    held: String,
}

impl<'s> Veil<'s> {
    /// Over a text in which this must not be seen.
    #[must_use]
    pub fn new(secret: Option<&'s Secret>) -> Self {
        Self { secret: secret.filter(|secret| !secret.reveal().is_empty()), held: String::new() }
    }

    /// What can be shown now. All bits and the end together are what [`Secret::hidden_in`] makes of the whole text,
    /// or its beginning.
    #[must_use]
    pub fn pass(&mut self, bit: &str) -> String {
        let Some(secret) = self.secret else { return bit.to_owned() };
        if secret.reveal().len() < SHORTEST_KNOWN {
            return String::new();
        }
        self.held.push_str(bit);
        let mut shown = String::new();
        while let Some((before, after)) = self.held.split_once(secret.reveal()) {
            shown.push_str(before);
            shown.push_str("***");
            self.held = after.to_owned();
        }
        let begins = |rest: &str| secret.reveal().starts_with(rest);
        let mut starts = self.held.char_indices().map(|(start, _)| start);
        let start = starts.find(|start| self.held.get(*start..).is_some_and(begins));
        let waiting = self.held.split_off(start.unwrap_or(self.held.len()));
        shown.push_str(&std::mem::replace(&mut self.held, waiting));
        shown
    }

    /// What was held back and was no secret after all.
    #[must_use]
    pub fn end(self) -> String {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_pieces_is_hidden_as_one_in_one_piece() {
        let secret = Secret::new("aab-ü".to_owned());
        for text in ["", "hello", "aaab-ü aab-", "aab-üaab-üa", "a", "aab aab-üx", "üaab-"] {
            let whole = secret.hidden_in(text);
            for cut in text.char_indices().map(|(at, _)| at) {
                let (first, second) = text.split_at(cut);
                let mut veil = Veil::new(Some(&secret));
                let shown = [veil.pass(first), veil.pass(second), veil.end()].concat();
                assert_eq!(shown, whole, "{text} cut at {cut}");
            }
            let mut veil = Veil::new(Some(&secret));
            let mut shown: String = text.chars().map(|letter| veil.pass(&letter.to_string())).collect();
            assert!(!shown.contains(secret.reveal()));
            shown.push_str(&veil.end());
            assert_eq!(shown, whole, "{text} letter by letter");
        }
    }

    #[test]
    fn what_can_not_be_the_secret_is_not_held_back() {
        let secret = Secret::new("sk-4711".to_owned());
        let mut veil = Veil::new(Some(&secret));
        assert_eq!(veil.pass("the key is sk"), "the key is ");
        assert_eq!(veil.pass("y"), "sky");
        assert_eq!(Veil::new(None).pass("anything"), "anything");
        assert_eq!(Veil::new(Some(&Secret::new("abc".to_owned()))).pass("anything"), "");
    }
}
