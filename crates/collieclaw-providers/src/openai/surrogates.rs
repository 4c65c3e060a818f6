//! Repairs surrogate pairs: some servers send the two halves of a character as escapes in two events, and
//! neither half alone is valid JSON.

/// Joins surrogate halves across events.
#[derive(Debug, Default)]
pub(super) struct SurrogateJoiner {
    first: Option<[u8; ESCAPE_LENGTH]>,
}

/// The length of `\ud83d`.
const ESCAPE_LENGTH: usize = 6;

/// The replacement for a half whose other half never arrives.
const REPLACEMENT_ESCAPE: &[u8] = b"\\ufffd";

impl SurrogateJoiner {
    /// Returns the same JSON without lone halves. A first half at the end of a string is kept and inserted
    /// before the second half in the next event.
    pub(super) fn join(&mut self, json: &[u8]) -> Vec<u8> {
        let mut joined = Vec::with_capacity(json.len() + ESCAPE_LENGTH);
        let mut rest = json;
        while let Some((&byte, tail)) = rest.split_first() {
            let length = match (
                leading_surrogate(rest),
                leading_surrogate(rest.get(ESCAPE_LENGTH..).unwrap_or_default()),
            ) {
                (Some(SurrogateHalf::First(_)), Some(SurrogateHalf::Second)) => {
                    joined.extend(rest.iter().take(2 * ESCAPE_LENGTH));
                    2 * ESCAPE_LENGTH
                }
                (Some(SurrogateHalf::First(escape)), _) => {
                    if rest.get(ESCAPE_LENGTH) == Some(&b'"') {
                        self.first = Some(escape);
                    } else {
                        joined.extend(REPLACEMENT_ESCAPE);
                    }
                    ESCAPE_LENGTH
                }
                (Some(SurrogateHalf::Second), _) => {
                    match self.first.take() {
                        Some(first) => {
                            joined.extend(first);
                            joined.extend(rest.iter().take(ESCAPE_LENGTH));
                        }
                        None => joined.extend(REPLACEMENT_ESCAPE),
                    }
                    ESCAPE_LENGTH
                }
                // The second backslash of an escaped backslash starts no other escape.
                (None, _) if byte == b'\\' && !tail.is_empty() => {
                    joined.extend(rest.iter().take(2));
                    2
                }
                (None, _) => {
                    joined.push(byte);
                    1
                }
            };
            rest = rest.get(length..).unwrap_or_default();
        }
        joined
    }
}

enum SurrogateHalf {
    First([u8; ESCAPE_LENGTH]),
    Second,
}

/// Returns the surrogate half that a text starts with, if any.
fn leading_surrogate(text: &[u8]) -> Option<SurrogateHalf> {
    let escape: [u8; ESCAPE_LENGTH] = text.get(..ESCAPE_LENGTH)?.try_into().ok()?;
    let [b'\\', b'u', b'd' | b'D', kind, third, fourth] = escape else { return None };
    if !third.is_ascii_hexdigit() || !fourth.is_ascii_hexdigit() {
        return None;
    }
    match kind {
        b'8' | b'9' | b'a' | b'b' | b'A' | b'B' => Some(SurrogateHalf::First(escape)),
        b'c'..=b'f' | b'C'..=b'F' => Some(SurrogateHalf::Second),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_in_two_events_become_one_letter() {
        let mut halves = SurrogateJoiner::default();
        let mut check = |sent: &str, read: &str| {
            let joined = halves.join(sent.as_bytes());
            assert_eq!(serde_json::from_slice::<String>(&joined).unwrap(), read, "{sent}");
        };
        check(r#""a\ud83d""#, "a");
        check(r#""\udc11b""#, "🐑b");
        check(r#""\ud83d\udc11\uD83D""#, "🐑");
        check(r#""none""#, "none");
        check(r#""\uDC11""#, "🐑");
        check(r#""\udc11 \ud83d!""#, "\u{fffd} \u{fffd}!");
        check(r#""\\ud83d \" \u00fc""#, "\\ud83d \" ü");
    }
}
