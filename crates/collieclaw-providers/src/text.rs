//! Shortening of text for messages.

/// Returns `text`, or its first `most` bytes and an ellipsis if it is longer.
#[must_use]
pub fn truncate_text(text: &str, most: usize) -> String {
    match text.get(..text.floor_char_boundary(most)) {
        Some(beginning) if beginning.len() < text.len() => format!("{beginning}…"),
        _ => text.to_owned(),
    }
}
