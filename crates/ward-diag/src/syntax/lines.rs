//! The line structure of a broken text: which lines belong to a list, a section or a statement.

use crate::escape::escape_and_truncate;
use crate::secret::RedactionBoundary;
use crate::{SourceText, Span};

/// A text that is being repaired, by lines. Parts of `text` may be blanked already; offsets are the same as
/// in `source`.
pub(super) struct SourceLines<'t> {
    pub(super) source: &'t SourceText,
    pub(super) text: &'t str,
    pub(super) boundary: &'t RedactionBoundary<'t>,
}

impl SourceLines<'_> {
    fn line(&self, line: usize) -> &str {
        let span = self.source.line_span(line);
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    /// Returns the span of all lines that `span` touches.
    pub(super) fn whole_lines(&self, span: Span) -> Span {
        let first = self.source.line_of(span.start);
        let last = self.source.line_of(span.end.saturating_sub(1).max(span.start));
        Span { start: self.source.line_span(first).start, end: self.source.line_span(last).end }
    }

    /// Returns the lines to blank for an error at `place`. If those lines are empty, the parser pointed
    /// behind the line with the error, so the last line before them that isn't empty is returned.
    pub(super) fn affected_lines(&self, place: Span) -> Span {
        let whole = self.whole_lines(place);
        let empty = self.text.get(whole.start..whole.end).is_some_and(|text| text.trim().is_empty());
        if !empty {
            return whole;
        }
        let line = self.source.line_of(place.start);
        let previous = (0..line).rev().find(|line| !self.line(*line).trim().is_empty());
        previous.map_or(Span { start: whole.start, end: self.text.len() }, |line| self.source.line_span(line))
    }

    /// Returns the line of a place, without surrounding blanks.
    pub(super) fn trimmed_line(&self, place: Span) -> Span {
        let whole = self.source.line_span(self.source.line_of(place.start));
        let line = self.source.slice(whole);
        let start = whole.start + line.len() - line.trim_start().len();
        Span { start, end: start + line.trim().len() }
    }

    /// Returns the start of the first line of a list that looks like a statement rather than like elements.
    pub(super) fn first_statement_in(&self, list: Span) -> Option<usize> {
        let first = self.source.line_of(list.start);
        let last = self.source.line_of(list.end.saturating_sub(1).max(list.start));
        let swallowed = (first + 1..=last).find(|line| self.starts_statement(*line))?;
        Some(self.source.line_span(swallowed).start)
    }

    pub(super) fn is_header(&self, offset: usize) -> bool {
        self.line(self.source.line_of(offset)).trim_start().starts_with('[')
    }

    /// Returns the span of a header and everything up to the next header. Without their header, the keys in
    /// between would end up in the wrong table.
    pub(super) fn section(&self, place: Span) -> Span {
        let first = self.source.line_of(place.start);
        let start = self.source.line_span(first).start;
        let mut last = first;
        while last < self.source.line_of(self.text.len())
            && !self.line(last + 1).trim_start().starts_with('[')
        {
            last += 1;
        }
        Span { start, end: self.source.line_span(last).end }
    }

    /// Returns the header `[[name]]` of the section that a statement belongs to, if the statement begins at a place and the
    /// header may be shown.
    pub(super) fn repeated_header_of(&self, place: Span) -> Option<String> {
        let line = self.source.line_of(place.start);
        if self.trimmed_line(place).start != place.start {
            return None;
        }
        let header = (0..line).rev().find(|line| self.is_header(self.source.line_span(*line).start))?;
        let span = self.trimmed_line(self.source.line_span(header));
        let text = self.source.slice(span);
        let name = text.strip_prefix("[[")?.strip_suffix("]]")?;
        let is_shown = self.boundary.may_show(span) && !name.contains(['[', ']', ',']);
        is_shown.then(|| escape_and_truncate(text))
    }

    /// Returns true if a line looks like `key = …` or `[name]` rather than like elements of a list.
    fn starts_statement(&self, line: usize) -> bool {
        let line = self.line(line).trim();
        let is_bare_key = |name: &str| {
            let name = name.trim();
            !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        };
        let header = line.strip_prefix('[').and_then(|rest| rest.trim_start_matches('[').split(']').next());
        let looks_like_header = header.is_some_and(|name| {
            is_bare_key(name) && name.chars().any(|c| c.is_ascii_alphabetic()) && line.ends_with(']')
        });
        looks_like_header || line.split_once('=').is_some_and(|(key, _)| is_bare_key(key))
    }

    /// Returns the key of the statement that contains a place, if the key may be shown.
    pub(super) fn key_before(&self, place: Span) -> Option<String> {
        let line = self.source.line_span(self.source.line_of(place.start));
        let before = self.text.get(line.start..place.start)?;
        let (before, _) = before.rsplit_once('=')?;
        let key = before.rsplit(['{', ',', '=']).next()?;
        let end = line.start + before.len();
        let shown = self.boundary.may_show(Span { start: end - key.len(), end });
        (shown && !key.trim().is_empty()).then(|| escape_and_truncate(key.trim()))
    }

    /// Returns the list that contains a place, from its opening bracket to its end. A list that is never
    /// closed ends with the text.
    pub(super) fn list_around(&self, place: Span) -> Option<Span> {
        let last = self.source.line_of(place.start);
        let start = (0..=last).rev().find_map(|line| {
            let (key, value) = self.line(line).split_once('=')?;
            let blanks = value.len() - value.trim_start().len();
            let start = self.source.line_span(line).start + key.len() + 1 + blanks;
            let opens = self.starts_statement(line) && value.trim_start().starts_with('[');
            (opens && start < place.start).then_some(start)
        })?;
        let length = bracketed_length(self.text.get(start..)?);
        (place.start <= start + length).then_some(Span { start, end: start + length })
    }
}

/// Returns the length of the bracketed part that a text starts with, or of the whole text if the brackets
/// never close.
fn bracketed_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut escaped = false;
    let mut comment = false;
    for (at, character) in text.char_indices() {
        if comment {
            comment = character != '\n';
            continue;
        }
        match (quote, character) {
            (None, '#') => comment = true,
            (Some('"'), '\\') if !escaped => {
                escaped = true;
                continue;
            }
            (Some(open), _) if character == open && !escaped => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        escaped = false;
        if depth == 0 {
            return at + character.len_utf8();
        }
    }
    text.len()
}
