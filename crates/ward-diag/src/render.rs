//! Rendering of faults for people: the place and message, the line with a caret, and the help text.

use annotate_snippets::renderer::{DEFAULT_EMPHASIS_STYLE, DEFAULT_HELP_STYLE};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use ward_terminal::{escape_char, escape_line};

use crate::span_set::SpanSet;
use crate::{ConfigFault, SourcePosition, SourceText, Span};

/// The style of a rendered report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportStyle {
    /// Plain text without escape sequences.
    Plain,
    /// Text with ANSI escape sequences for colours.
    Coloured,
}

/// The indentation of snippets.
const INDENT: &str = "   ";

/// The number of bytes of a line that are passed to the renderer on each side of a place. The renderer cuts
/// lines to the width of a terminal, but would be slow on a line of a megabyte.
const MAX_CONTEXT: usize = 300;

/// The text shown in place of a hidden value. Its length is fixed, so it doesn't reveal the length of the
/// value.
const MASK: &str = "***";

pub(crate) fn render(
    source: &SourceText,
    faults: &[ConfigFault],
    more: usize,
    hidden: &SpanSet,
    style: ReportStyle,
) -> String {
    let renderer = ReportRenderer { source, hidden, style };
    let mut text = faults.iter().map(|fault| renderer.render_fault(fault)).collect::<Vec<_>>().join("\n");
    match more {
        0 => {}
        1 => text.push_str("\nand 1 more fault\n"),
        _ => text.push_str(&format!("\nand {more} more faults\n")),
    }
    text
}

struct ReportRenderer<'r> {
    source: &'r SourceText,
    hidden: &'r SpanSet,
    style: ReportStyle,
}

/// A line of the source as it is shown, with the ranges to mark.
struct SnippetLine {
    number: usize,
    text: String,
    marks: Vec<SnippetMark>,
}

struct SnippetMark {
    start: usize,
    end: usize,
    kind: AnnotationKind,
    note: Option<String>,
}

impl ReportRenderer<'_> {
    fn render_fault(&self, fault: &ConfigFault) -> String {
        let SourcePosition { line, column } = self.source.position(fault.span.start);
        let place = format!("{}:{line}:{column}:", escape_line(self.source.name()));
        let place = self.apply_style(&place, DEFAULT_EMPHASIS_STYLE);
        let mut text = format!("{place} {}\n", escape_line(&fault.message));
        text.push_str(&self.render_snippet(fault));
        if let Some(help) = &fault.help {
            let label = self.apply_style("help:", DEFAULT_HELP_STYLE);
            text.push_str(&format!("{label} {}\n", escape_line(help)));
        }
        text
    }

    fn apply_style(&self, text: &str, style: annotate_snippets::renderer::Style) -> String {
        match self.style {
            ReportStyle::Plain => text.to_owned(),
            ReportStyle::Coloured => format!("{style}{text}{style:#}"),
        }
    }

    /// Renders the lines of a fault and its related places, without the frame that `annotate_snippets` draws.
    fn render_snippet(&self, fault: &ConfigFault) -> String {
        let lines = self.lines(fault);
        if lines.is_empty() {
            return String::new();
        }
        let renderer = match self.style {
            ReportStyle::Plain => Renderer::plain(),
            ReportStyle::Coloured => Renderer::styled(),
        };
        let width = lines.iter().map(|line| line.number).max().unwrap_or(1).to_string().len();
        let mut text = String::new();
        let mut previous = None;
        for line in &lines {
            if previous.is_some_and(|previous| previous + 1 < line.number) {
                text.push_str(&format!("{INDENT}{:width$} ...\n", ""));
            }
            previous = Some(line.number);
            text.push_str(&render_line(line, &renderer, width));
        }
        text
    }

    fn lines(&self, fault: &ConfigFault) -> Vec<SnippetLine> {
        if fault.span == Span::FILE {
            return Vec::new();
        }
        let mut places = vec![(fault.span, AnnotationKind::Primary, None)];
        let related = fault.related.iter();
        places.extend(
            related.map(|place| (place.span, AnnotationKind::Context, Some(escape_line(&place.note)))),
        );
        let places: Vec<_> =
            places.into_iter().map(|(span, kind, note)| (self.source.clamp(span), kind, note)).collect();
        let mut numbers: Vec<usize> =
            places.iter().map(|(span, ..)| self.source.line_of(span.start)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
            .into_iter()
            .map(|number| {
                let here = places.iter().filter(|(span, ..)| self.source.line_of(span.start) == number);
                self.line(number, &here.cloned().collect::<Vec<_>>())
            })
            .filter(|line| !line.text.trim().is_empty())
            .collect()
    }

    /// Returns a line cut around its first place, with hidden values masked. A place that continues on the
    /// next line is marked up to the end of this line.
    fn line(&self, number: usize, places: &[(Span, AnnotationKind, Option<String>)]) -> SnippetLine {
        let whole = self.source.line_span(number);
        let focus = places.first().map_or(whole.start, |(span, ..)| span.start);
        let cut = self.source.clamp(Span {
            start: whole.start.max(focus.saturating_sub(MAX_CONTEXT)),
            end: whole.end.min(focus.saturating_add(MAX_CONTEXT)),
        });
        let masked = MaskedText::new(self.source, cut, self.hidden);
        let start_note = if cut.start > whole.start { "…" } else { "" };
        let end_note = if cut.end < whole.end { "…" } else { "" };
        let marks = places
            .iter()
            .map(|(span, kind, note)| {
                let start = masked.map_offset(span.start.clamp(cut.start, cut.end)) + start_note.len();
                let end = masked.map_offset(span.end.clamp(cut.start, cut.end)) + start_note.len();
                SnippetMark { start, end: end.max(start), kind: *kind, note: note.clone() }
            })
            .collect();
        SnippetLine { number: number + 1, text: format!("{start_note}{}{end_note}", masked.text), marks }
    }
}

fn render_line(line: &SnippetLine, renderer: &Renderer, width: usize) -> String {
    let marks =
        line.marks.iter().map(|mark| mark.kind.span(mark.start..mark.end).label(mark.note.as_deref()));
    let snippet = Snippet::source(line.text.as_str()).line_start(line.number).annotations(marks);
    let report = renderer.render(&[Group::with_level(Level::ERROR).element(snippet)]);
    let own_width = line.number.to_string().len();
    let pad = " ".repeat(width - own_width);
    // The first line that `annotate_snippets` renders is an empty part of its frame.
    report.lines().skip(1).map(|row| format!("{INDENT}{pad}{}\n", row.trim_end())).collect()
}

/// A part of the source with masks and escapes, and a map from source offsets to offsets in the result.
struct MaskedText {
    text: String,
    /// The start of each piece in the source, and the start of its replacement in `text`.
    pieces: Vec<(usize, usize)>,
}

impl MaskedText {
    fn new(source: &SourceText, cut: Span, hidden: &SpanSet) -> Self {
        let mut masked = Self { text: String::new(), pieces: Vec::new() };
        let mut from = cut.start;
        for span in hidden.overlapping(cut) {
            let mask = source.clamp(Span { start: span.start.max(from), end: span.end.min(cut.end) });
            if mask.start < mask.end {
                masked.push_visible(source, Span { start: from, end: mask.start });
                masked.pieces.push((mask.start, masked.text.len()));
                masked.text.push_str(MASK);
                from = mask.end;
            }
        }
        masked.push_visible(source, Span { start: from, end: cut.end });
        masked.pieces.push((cut.end, masked.text.len()));
        masked
    }

    fn push_visible(&mut self, source: &SourceText, span: Span) {
        for (at, character) in source.slice(span).char_indices() {
            self.pieces.push((span.start + at, self.text.len()));
            // `annotate_snippets` replaces control characters itself, and knows the width of a tab.
            if character.is_ascii_control() {
                self.text.push(character);
            } else {
                self.text.extend(escape_char(character));
            }
        }
    }

    /// Converts a source offset into an offset of the masked text. An offset inside a piece becomes the end
    /// of the piece.
    fn map_offset(&self, offset: usize) -> usize {
        let piece = self.pieces.partition_point(|(start, _)| *start < offset);
        self.pieces.get(piece).map_or(self.text.len(), |(_, shown)| *shown)
    }
}
