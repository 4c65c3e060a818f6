//! Numbers with their nouns.

use std::fmt::Display;

/// Formats a number with its noun, such as "1 entry" or "2 entries".
#[must_use]
pub fn format_count<N: Copy + Display + PartialEq + From<u8>>(
    number: N,
    singular: &str,
    plural: &str,
) -> String {
    let noun = if number == N::from(1) { singular } else { plural };
    format!("{number} {noun}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_thing_is_singular() {
        let shown = [0_u64, 1, 2].map(|number| format_count(number, "entry", "entries"));
        assert_eq!(shown, ["0 entries", "1 entry", "2 entries"]);
    }
}
