//! Distinguishes text from binary bodies, and converts bytes to valid text.

/// Returns true if people or programs read this media type as text.
pub(super) fn is_text(content_type: &str) -> bool {
    let Some((kind, form)) = content_type.split_once('/') else { return false };
    kind == "text"
        || form.ends_with("+json")
        || form.ends_with("+xml")
        || (kind == "application"
            && matches!(
                form,
                "json"
                    | "x-ndjson"
                    | "jsonl"
                    | "ld+json"
                    | "xml"
                    | "javascript"
                    | "x-javascript"
                    | "yaml"
                    | "x-yaml"
                    | "toml"
                    | "sql"
                    | "x-sh"
                    | "x-www-form-urlencoded"
            ))
}

/// Returns true if bytes without a media type look like text.
pub(super) fn looks_like_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0)
        && match std::str::from_utf8(bytes) {
            Ok(_) => true,
            // An incomplete character at the end was cut off by the read limit.
            Err(error) => error.error_len().is_none(),
        }
}

/// Returns at most `most` bytes as text. Invalid UTF-8 is replaced, and no character is cut in two.
pub(super) fn truncate_lossy(mut bytes: Vec<u8>, most: usize) -> String {
    if bytes.len() > most {
        bytes.truncate(most);
        if let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            bytes.truncate(error.valid_up_to());
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
