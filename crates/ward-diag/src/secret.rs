//! Which parts of a text must never be shown.
//!
//! In a file that parses, the tree says what belongs to a hidden key. In a file that doesn't, nobody can say where
//! a value ends or which table a line is in. So no value is looked for there: see [`RedactionBoundary`].

use toml::de::{DeTable, DeValue};

use crate::span_set::SpanSet;
use crate::{SourceText, Span};

/// What of a file that parses stays hidden: the values of hidden keys, texts that speak of them, and all comments,
/// in which an old secret or one that is switched off may stand.
pub(crate) fn hidden_in_tree(source: &SourceText, root: &DeTable<'_>) -> Vec<Span> {
    if source.hidden_keys().is_empty() {
        return Vec::new();
    }
    let mut found =
        HiddenSpanCollector { keys: source.hidden_keys(), hidden: Vec::new(), words: SpanSet::default() };
    found.collect_table(root, KeyVisibility::Shown);
    found.hidden.extend(comment_spans(source, &found.words));
    found.hidden
}

/// All that a value holds, also where it is a table that is spread over dotted keys.
pub(crate) fn hidden_in_value(value: &toml::Spanned<DeValue<'_>>) -> Vec<Span> {
    let mut found =
        HiddenSpanCollector { keys: &[], hidden: vec![value.span().into()], words: SpanSet::default() };
    found.collect_value(value, KeyVisibility::Hidden);
    found.hidden
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyVisibility {
    Shown,
    Hidden,
}

struct HiddenSpanCollector<'k> {
    keys: &'k [String],
    hidden: Vec<Span>,
    /// Keys and plain values: where a `#` is not the start of a comment.
    words: SpanSet,
}

impl HiddenSpanCollector<'_> {
    fn collect_table(&mut self, table: &DeTable<'_>, under: KeyVisibility) {
        for (key, value) in table {
            self.words.insert(key.span().into());
            let named = self.keys.iter().any(|hidden| hidden.as_str() == key.get_ref());
            let under = if named { KeyVisibility::Hidden } else { under };
            // The span of a table with a header is its header, which says no more than the key.
            if under == KeyVisibility::Hidden && value.span().start >= key.span().end {
                self.hidden.push(value.span().into());
            }
            self.collect_value(value, under);
        }
    }

    fn collect_value(&mut self, value: &toml::Spanned<DeValue<'_>>, under: KeyVisibility) {
        match value.get_ref() {
            DeValue::Table(inner) => self.collect_table(inner, under),
            DeValue::Array(items) => items.iter().for_each(|item| self.collect_value(item, under)),
            _ => {
                self.words.insert(value.span().into());
                if under == KeyVisibility::Hidden || self.mentions_hidden_key(value.get_ref()) {
                    self.hidden.push(value.span().into());
                }
            }
        }
    }

    /// A text can be a file with secrets in it, or what a missing quote made of one; keys may be escaped in it.
    fn mentions_hidden_key(&self, value: &DeValue<'_>) -> bool {
        value.as_str().is_some_and(|text| {
            let escaped = text.contains('\n') && text.contains('\\');
            escaped || self.keys.iter().any(|key| end_of_first_mention(text, key).is_some())
        })
    }
}

fn comment_spans(source: &SourceText, words: &SpanSet) -> Vec<Span> {
    let mut comments: Vec<Span> = Vec::new();
    for (at, _) in source.text().match_indices('#') {
        let in_word = words.overlaps(Span { start: at, end: at + 1 });
        let in_comment = comments.last().is_some_and(|comment| at < comment.end);
        if !in_word && !in_comment {
            comments.push(Span { start: at, end: source.line_span(source.line_of(at)).end });
        }
    }
    comments
}

/// Falls in a file with hidden keys that doesn't parse. Everything below the first mention of a hidden key is
/// behind it, as a secret can only stand after its key: shown to nobody, and not read either, so that no message
/// can repeat it. Above, a faulty line shows its key at most, as that may be a hidden one misspelt.
pub(crate) struct RedactionBoundary<'s> {
    source: &'s SourceText,
    start: usize,
}

impl<'s> RedactionBoundary<'s> {
    pub(crate) fn new(source: &'s SourceText) -> Self {
        let text = source.text();
        // Any key can be spelt with escapes.
        let escape = text.find('\\');
        let mentions = source.hidden_keys().iter().filter_map(|key| end_of_first_mention(text, key));
        let start = match source.hidden_keys() {
            [] => text.len(),
            _ => mentions.chain(escape).min().unwrap_or(text.len()),
        };
        Self { source, start }
    }

    /// Where the lines end that are wholly above it.
    pub(crate) fn end_of_lines_above(&self) -> usize {
        let end = self.source.text().len();
        if self.start == end { end } else { self.source.line_span(self.source.line_of(self.start)).start }
    }

    pub(crate) fn redacted_span(&self) -> Span {
        Span { start: self.start, end: self.source.text().len() }
    }

    /// What a faulty line must not show.
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

    /// Whether a message may repeat what stands there.
    pub(crate) fn may_show(&self, span: Span) -> bool {
        span.end <= self.redacted_part_of_line(span.start).start
    }
}

/// Where the first mention of a key ends, with the `=` behind it.
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

/// Whether a line begins with this one key, or with a header in which it comes first.
fn is_single_key(line: &str) -> bool {
    let rest = line
        .trim_start_matches([' ', '\t', '[', '"', '\''])
        .trim_start_matches(|c: char| is_bare_key_char(c) || c == '.');
    rest.trim_start_matches(['"', '\'', ' ', '\t', '=']).is_empty()
}

/// Length of `key =` or `[name]` at the start of a line; of the blanks where there is neither.
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
