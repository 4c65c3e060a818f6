//! Which bodies are text, and what a model gets of the others.

/// Whether a type is one that people or programs read as text.
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

/// Whether bytes of which nobody said what they are look like text.
pub(super) fn looks_like_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0)
        && match std::str::from_utf8(bytes) {
            Ok(_) => true,
            // A letter that was cut in two at the end.
            Err(error) => error.error_len().is_none(),
        }
}

/// At most so many bytes as text. What is no UTF-8 is replaced, and no letter is cut in two.
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
