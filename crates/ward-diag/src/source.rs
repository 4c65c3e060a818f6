//! A text with its name, and where in it a byte stands for a person.

use crate::Span;

/// Longest text that is read. A policy of a thousand entries has about half of it; what is longer is not a
/// configuration, and a parser's memory is a multiple of its input.
pub const MAX_SOURCE_BYTES: usize = 1024 * 1024;

/// A configuration text and the name it is reported under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    name: String,
    text: String,
    line_starts: Vec<usize>,
    hidden_keys: Vec<String>,
    rejection: Option<SourceRejection>,
}

/// Why a text can't even be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SourceRejection {
    TooLarge { bytes: usize },
    NotUtf8 { at: usize },
}

/// Line and column as editors count them: from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct SourcePosition {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl SourceText {
    /// A text under the name that people know it by, usually its path. A byte order mark is dropped.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let text = match text.strip_prefix('\u{feff}') {
            Some(rest) => rest.to_owned(),
            None => text,
        };
        let refusal =
            (text.len() > MAX_SOURCE_BYTES).then_some(SourceRejection::TooLarge { bytes: text.len() });
        // Nothing of a refused text is shown, so nothing of it is kept.
        let text = if refusal.is_some() { String::new() } else { text };
        let line_starts = line_starts(&text);
        Self { name: name.into(), text, line_starts, hidden_keys: Vec::new(), rejection: refusal }
    }

    /// Like [`new`](Self::new) for the bytes of a file; what is not UTF-8 becomes a fault with its place.
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

    /// Names of keys whose values are never shown, wherever in the file they stand. As a misspelt name may hold a
    /// secret too, the values of unknown keys are then hidden as well, and so are all comments. Of a file that
    /// doesn't parse, nothing is shown or read below the first mention of such a key; syntax faults there have
    /// their place, fault and cure, but no text.
    /// A caller who makes sentences of its own from values uses [`TomlValue::quoted`](crate::TomlValue::quoted) for them.
    #[must_use]
    pub fn hide_values_of<'k>(mut self, keys: impl IntoIterator<Item = &'k str>) -> Self {
        self.hidden_keys = keys.into_iter().map(str::to_owned).collect();
        self
    }

    /// The name given at the start.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text, without a byte order mark.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where a byte stands for a person. An offset past the end is the end; one inside a character is its start.
    #[must_use]
    pub fn position(&self, offset: usize) -> SourcePosition {
        let offset = self.floor_offset(offset);
        let line = self.line_of(offset);
        let start = self.line_starts.get(line).copied().unwrap_or(0);
        let before = self.text.get(start..offset).unwrap_or_default();
        SourcePosition { line: line + 1, column: before.chars().count() + 1 }
    }

    /// The text of a span, or nothing where it doesn't lie in the text.
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

    /// Index, from 0, of the line that an offset lies in.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// The bytes of a line without its line end.
    pub(crate) fn line_span(&self, line: usize) -> Span {
        let start = self.line_starts.get(line).copied().unwrap_or(self.text.len());
        let next = self.line_starts.get(line + 1).copied().unwrap_or(self.text.len());
        let content = self.slice(Span { start, end: next });
        let content = content.strip_suffix('\n').unwrap_or(content);
        let content = content.strip_suffix('\r').unwrap_or(content);
        Span { start, end: start + content.len() }
    }

    /// A span that lies in the text and on character boundaries, whatever was given.
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
