//! English plurals for messages.

/// Returns the ending of a regular noun after a number: empty for 1, and `s` otherwise.
pub(crate) fn plural_suffix(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Returns the number with the noun, as in `1 record` and `2 records`.
pub(crate) fn record_count(count: u64) -> String {
    format!("{count} record{}", plural_suffix(count))
}
