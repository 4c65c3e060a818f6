//! Finds the parts of a source that must never be shown, because they may hold the value of a hidden key.
//!
//! If the file parses, the parsed tree shows which values belong to a hidden key. If it doesn't parse, there
//! is no reliable way to tell where a value ends or which table a line is in, so everything after the first
//! mention of a hidden key is hidden: see [`RedactionBoundary`].

use toml::de::{DeTable, DeValue};

use crate::span_set::SpanSet;
use crate::{SourceText, Span};

/// Returns the hidden spans of a file that parses: the values of hidden keys, strings that mention a hidden
/// key, and all comments, since a comment may hold an old or disabled secret.
pub(crate) fn hidden_in_tree(source: &SourceText, root: &DeTable<'_>) -> Vec<Span> {
    if source.hidden_keys().is_empty() {
        return Vec::new();
    }
    let mut collector =
        HiddenSpanCollector { keys: source.hidden_keys(), hidden: Vec::new(), tokens: SpanSet::default() };
    collector.collect_table(root, KeyVisibility::Shown);
    collector.hidden.extend(comment_spans(source, &collector.tokens));
    collector.hidden
}

/// Returns the spans of everything within a value, even if the value is a table spread over dotted keys.
pub(crate) fn hidden_in_value(value: &toml::Spanned<DeValue<'_>>) -> Vec<Span> {
    let mut collector =
        HiddenSpanCollector { keys: &[], hidden: vec![value.span().into()], tokens: SpanSet::default() };
    collector.collect_value(value, KeyVisibility::Hidden);
    collector.hidden
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyVisibility {
    Shown,
    Hidden,
}

struct HiddenSpanCollector<'k> {
    keys: &'k [String],
    hidden: Vec<Span>,
    /// The spans of keys and scalar values, in which a `#` doesn't start a comment.
    tokens: SpanSet,
}

impl HiddenSpanCollector<'_> {
    fn collect_table(&mut self, table: &DeTable<'_>, visibility: KeyVisibility) {
        for (key, value) in table {
            self.tokens.insert(key.span().into());
            let is_hidden_key = self.keys.iter().any(|hidden| hidden.as_str() == key.get_ref());
            let visibility = if is_hidden_key { KeyVisibility::Hidden } else { visibility };
            // The span of a table with a header is the header itself, which reveals no more than the key.
            if visibility == KeyVisibility::Hidden && value.span().start >= key.span().end {
                self.hidden.push(value.span().into());
            }
            self.collect_value(value, visibility);
        }
    }

    fn collect_value(&mut self, value: &toml::Spanned<DeValue<'_>>, visibility: KeyVisibility) {
        match value.get_ref() {
            DeValue::Table(inner) => self.collect_table(inner, visibility),
            DeValue::Array(items) => items.iter().for_each(|item| self.collect_value(item, visibility)),
            _ => {
                self.tokens.insert(value.span().into());
                if visibility == KeyVisibility::Hidden || self.mentions_hidden_key(value.get_ref()) {
                    self.hidden.push(value.span().into());
                }
            }
        }
    }

    /// Returns true if a string may contain a hidden key and its value. The string can be an embedded file,
    /// or several lines that a missing quote turned into a string, and keys in it may be written with
    /// escapes.
    fn mentions_hidden_key(&self, value: &DeValue<'_>) -> bool {
        value.as_str().is_some_and(|text| {
            let escaped = text.contains('\n') && text.contains('\\');
            escaped || self.keys.iter().any(|key| end_of_first_mention(text, key).is_some())
        })
    }
}

fn comment_spans(source: &SourceText, tokens: &SpanSet) -> Vec<Span> {
    let mut comments: Vec<Span> = Vec::new();
    for (at, _) in source.text().match_indices('#') {
        let in_token = tokens.overlaps(Span { start: at, end: at + 1 });
        let in_comment = comments.last().is_some_and(|comment| at < comment.end);
        if !in_token && !in_comment {
            comments.push(Span { start: at, end: source.line_span(source.line_of(at)).end });
        }
    }
    comments
}

/// The place where redaction starts in a file that doesn't parse: the first mention of a hidden key.
///
/// A secret can only follow its key, so the text after the boundary is neither shown nor read, and no message
/// can quote it. Faulty lines before the boundary show only their key, since the key may be a misspelt hidden
/// key.
pub(crate) struct RedactionBoundary<'s> {
    source: &'s SourceText,
    start: usize,
}

impl<'s> RedactionBoundary<'s> {
    pub(crate) fn new(source: &'s SourceText) -> Self {
        let text = source.text();
        // A key can be written with escapes, so the first backslash counts as a mention too.
        let escape = text.find('\\');
        let mentions = source.hidden_keys().iter().filter_map(|key| end_of_first_mention(text, key));
        let start = match source.hidden_keys() {
            [] => text.len(),
            _ => mentions.chain(escape).min().unwrap_or(text.len()),
        };
        Self { source, start }
    }

    /// Returns the end of the lines that lie completely before the boundary.
    pub(crate) fn end_of_lines_above(&self) -> usize {
        let end = self.source.text().len();
        if self.start == end { end } else { self.source.line_span(self.source.line_of(self.start)).start }
    }

    pub(crate) fn redacted_span(&self) -> Span {
        Span { start: self.start, end: self.source.text().len() }
    }

    /// Returns the part of a faulty line that must not be shown.
    pub(crate) fn redacted_part_of_line(&self, offset: usize) -> Span {
        let line = self.source.line_span(self.source.line_of(offset));
        if self.source.hidden_keys().is_empty() {
            return Span { start: line.end, end: line.end };
        }
        let before = self.source.slice(Span { start: line.start, end: self.start.min(line.end) });
        let mention_comes_first = self.start <= line.end && is_single_key(before);
        let shown = if mention_comes_first { before.len() } else { statement_length(before) };
        Span { start: line.start + shown, end: line.end }
    }

    /// Returns true if a message may quote the text of a span.
    pub(crate) fn may_show(&self, span: Span) -> bool {
        span.end <= self.redacted_part_of_line(span.start).start
    }
}

/// Returns the end of the first mention of a key, including the `=` after it.
fn end_of_first_mention(text: &str, key: &str) -> Option<usize> {
    if key.is_empty() {
        return Some(0);
    }
    let (at, _) = text.match_indices(key).find(|(at, _)| is_whole_word(text, *at, at + key.len()))?;
    let before = text.get(..at)?.chars().next_back();
    let mut rest = text.get(at + key.len()..)?;
    if let Some(quote) = before.filter(|before| matches!(before, '"' | '\'')) {
        rest = rest.strip_prefix(quote).unwrap_or(rest);
    }
    rest = rest.trim_start_matches(BLANKS);
    rest = rest.strip_prefix('=').unwrap_or(rest);
    Some(text.len() - rest.trim_start_matches(BLANKS).len())
}

const BLANKS: [char; 2] = [' ', '\t'];

fn is_whole_word(text: &str, start: usize, end: usize) -> bool {
    let before = text.get(..start).and_then(|head| head.chars().next_back());
    let after = text.get(end..).and_then(|tail| tail.chars().next());
    !before.is_some_and(is_bare_key_char) && !after.is_some_and(is_bare_key_char)
}

fn is_bare_key_char(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '-'
}

/// Returns true if a line consists of a single key, possibly dotted, with or without an opening bracket and
/// `=`.
fn is_single_key(line: &str) -> bool {
    let rest = line
        .trim_start_matches([' ', '\t', '[', '"', '\''])
        .trim_start_matches(|c: char| is_bare_key_char(c) || c == '.');
    rest.trim_start_matches(['"', '\'', ' ', '\t', '=']).is_empty()
}

/// Returns the length of the `key =` or `[name]` that a line starts with, or else the length of its leading
/// blanks.
fn statement_length(line: &str) -> usize {
    let blanks = line.len() - line.trim_start_matches(BLANKS).len();
    let rest = line.trim_start_matches(BLANKS).trim_start_matches(|c: char| is_bare_key_char(c) || c == '.');
    if let Some(value) = rest.trim_start_matches(BLANKS).strip_prefix('=') {
        return line.len() - value.trim_start_matches(BLANKS).len();
    }
    let is_header = line.trim_start_matches(BLANKS).starts_with('[');
    let rest =
        line.trim_start_matches(|c: char| is_bare_key_char(c) || matches!(c, ' ' | '\t' | '.' | '[' | ']'));
    if is_header { line.len() - rest.len() } else { blanks }
}
