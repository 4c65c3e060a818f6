//! The source text with its name, and the conversion of byte offsets into lines and columns.

use crate::Span;

/// The longest text that is read, in bytes. A policy of a thousand entries has about half as many. The limit
/// matters because a parser needs a multiple of its input in memory.
pub const MAX_SOURCE_BYTES: usize = 1024 * 1024;

/// A configuration text and the name that reports use for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    name: String,
    text: String,
    line_starts: Vec<usize>,
    hidden_keys: Vec<String>,
    rejection: Option<SourceRejection>,
}

/// The reason for rejecting a text before parsing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SourceRejection {
    TooLarge { bytes: usize },
    NotUtf8 { at: usize },
}

/// A line and column as editors count them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct SourcePosition {
    /// The line number, starting at 1.
    pub line: usize,
    /// The column in characters, starting at 1.
    pub column: usize,
}

impl SourceText {
    /// Creates a source from a text and the name that people know it by, usually its path. A byte order mark
    /// is dropped.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let text = match text.strip_prefix('\u{feff}') {
            Some(rest) => rest.to_owned(),
            None => text,
        };
        let rejection =
            (text.len() > MAX_SOURCE_BYTES).then_some(SourceRejection::TooLarge { bytes: text.len() });
        // A report shows nothing of a text that is too large, so the text isn't kept.
        let text = if rejection.is_some() { String::new() } else { text };
        let line_starts = line_starts(&text);
        Self { name: name.into(), text, line_starts, hidden_keys: Vec::new(), rejection }
    }

    /// Creates a source from the bytes of a file. Bytes that are not UTF-8 become a fault with its place.
    pub fn from_bytes(name: impl Into<String>, bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::new(name, text),
            Err(_) if bytes.len() > MAX_SOURCE_BYTES => {
                let mut source = Self::new(name, "");
                source.rejection = Some(SourceRejection::TooLarge { bytes: bytes.len() });
                source
            }
            Err(error) => {
                let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
                let mut source = Self::new(name, String::from_utf8_lossy(bytes));
                let dropped_mark = if bytes.starts_with("\u{feff}".as_bytes()) { 3 } else { 0 };
                source.rejection = Some(SourceRejection::NotUtf8 { at: valid.len() - dropped_mark });
                source
            }
        }
    }

    /// Hides the values of these keys in reports, wherever in the file the keys occur.
    ///
    /// The values of unknown keys are then hidden as well, since a misspelt key may hold a secret, and so are
    /// all comments. If the file doesn't parse, nothing after the first mention of a hidden key is shown or
    /// read; syntax faults there have a place, a message and a help text, but no snippet.
    ///
    /// Callers that put values into their own messages must use
    /// [`TomlValue::quoted`](crate::TomlValue::quoted).
    #[must_use]
    pub fn hide_values_of<'k>(mut self, keys: impl IntoIterator<Item = &'k str>) -> Self {
        self.hidden_keys = keys.into_iter().map(str::to_owned).collect();
        self
    }

    /// Returns the name that reports use, usually a path.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text, without a byte order mark.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the line and column of a byte offset. An offset past the end counts as the end, and an offset
    /// inside a character as the start of that character.
    #[must_use]
    pub fn position(&self, offset: usize) -> SourcePosition {
        let offset = self.floor_offset(offset);
        let line = self.line_of(offset);
        let start = self.line_starts.get(line).copied().unwrap_or(0);
        let before = self.text.get(start..offset).unwrap_or_default();
        SourcePosition { line: line + 1, column: before.chars().count() + 1 }
    }

    /// Returns the text of a span, or an empty string if the span doesn't lie within the text.
    #[must_use]
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    pub(crate) fn hidden_keys(&self) -> &[String] {
        &self.hidden_keys
    }

    pub(crate) fn rejection(&self) -> Option<&SourceRejection> {
        self.rejection.as_ref()
    }

    /// Returns the index, starting at 0, of the line that contains an offset.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// Returns the span of a line without its line end.
    pub(crate) fn line_span(&self, line: usize) -> Span {
        let start = self.line_starts.get(line).copied().unwrap_or(self.text.len());
        let next = self.line_starts.get(line + 1).copied().unwrap_or(self.text.len());
        let content = self.slice(Span { start, end: next });
        let content = content.strip_suffix('\n').unwrap_or(content);
        let content = content.strip_suffix('\r').unwrap_or(content);
        Span { start, end: start + content.len() }
    }

    /// Moves a span into the text and onto character boundaries.
    pub(crate) fn clamp(&self, span: Span) -> Span {
        let start = self.floor_offset(span.start);
        Span { start, end: self.floor_offset(span.end).max(start) }
    }

    fn floor_offset(&self, offset: usize) -> usize {
        self.text.floor_char_boundary(offset.min(self.text.len()))
    }
}

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}
