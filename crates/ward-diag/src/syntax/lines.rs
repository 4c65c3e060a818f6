//! The text by lines, as far as repair needs it.

use crate::escape::escape_and_truncate;
use crate::secret::RedactionBoundary;
use crate::{SourceText, Span};

/// The text by lines, as far as repair needs it. Places are those of the source; the text may have blanks in it.
pub(super) struct SourceLines<'t> {
    pub(super) source: &'t SourceText,
    pub(super) text: &'t str,
    pub(super) curtain: &'t RedactionBoundary<'t>,
}

impl SourceLines<'_> {
    fn line(&self, line: usize) -> &str {
        let span = self.source.line_span(line);
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    /// All lines that a span touches. Where the parser points just behind a line end, the line before is meant.
    pub(super) fn whole_lines(&self, span: Span) -> Span {
        let first = self.source.line_of(span.start);
        let last = self.source.line_of(span.end.saturating_sub(1).max(span.start));
        Span { start: self.source.line_span(first).start, end: self.source.line_span(last).end }
    }

    pub(super) fn affected_lines(&self, place: Span) -> Span {
        let whole = self.whole_lines(place);
        let empty = self.text.get(whole.start..whole.end).is_some_and(|text| text.trim().is_empty());
        if !empty {
            return whole;
        }
        let line = self.source.line_of(place.start);
        let filled = (0..line).rev().find(|line| !self.line(*line).trim().is_empty());
        filled.map_or(Span { start: whole.start, end: self.text.len() }, |line| self.source.line_span(line))
    }

    /// The line of a place without the blanks around it.
    pub(super) fn trimmed_line(&self, place: Span) -> Span {
        let whole = self.source.line_span(self.source.line_of(place.start));
        let line = self.source.slice(whole);
        let start = whole.start + line.len() - line.trim_start().len();
        Span { start, end: start + line.trim().len() }
    }

    /// Where the first line of a list begins that looks like a statement rather than like elements.
    pub(super) fn first_statement_in(&self, list: Span) -> Option<usize> {
        let first = self.source.line_of(list.start);
        let last = self.source.line_of(list.end.saturating_sub(1).max(list.start));
        let swallowed = (first + 1..=last).find(|line| self.starts_statement(*line))?;
        Some(self.source.line_span(swallowed).start)
    }

    pub(super) fn is_header(&self, offset: usize) -> bool {
        self.line(self.source.line_of(offset)).trim_start().starts_with('[')
    }

    /// A header with everything up to the next one: without its header it would land in the wrong table.
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

    /// Whether a line looks like `key = …` or `[name]` rather than like elements of a list.
    fn starts_statement(&self, line: usize) -> bool {
        let line = self.line(line).trim();
        let named = |name: &str| {
            let name = name.trim();
            !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        };
        let header = line.strip_prefix('[').and_then(|rest| rest.trim_start_matches('[').split(']').next());
        let looks_like_header = header.is_some_and(|name| {
            named(name) && name.chars().any(|c| c.is_ascii_alphabetic()) && line.ends_with(']')
        });
        looks_like_header || line.split_once('=').is_some_and(|(key, _)| named(key))
    }

    /// The key of the statement that a place stands in, if it may be repeated.
    pub(super) fn key_before(&self, place: Span) -> Option<String> {
        let line = self.source.line_span(self.source.line_of(place.start));
        let before = self.text.get(line.start..place.start)?;
        let (before, _) = before.rsplit_once('=')?;
        let key = before.rsplit(['{', ',', '=']).next()?;
        let end = line.start + before.len();
        let shown = self.curtain.may_show(Span { start: end - key.len(), end });
        (shown && !key.trim().is_empty()).then(|| escape_and_truncate(key.trim()))
    }

    /// The list that a place stands in: from its bracket to the end, which is that of the text if it never closes.
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

/// Length of the brackets at the start of a text, with all that is in them; of all the text if they never close.
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
