//! Text to tree, with every syntax fault and as much of the tree as can be had.
//!
//! The parser recovers from many faults, but one unclosed bracket makes it complain about every line that
//! follows, and a line without `=` makes it drop the rest of the file. So one fault is taken at a time, the
//! first; what it stands on is blanked with spaces (places stay the same) and the text is parsed again.

mod duplicate;
mod explain;
mod lines;

use toml::de::{DeTable, Error};

use crate::secret::RedactionBoundary;
use crate::{ConfigFault, FaultCollector, MAX_SOURCE_BYTES, SourceText, Span, code};
use explain::SyntaxRepair;
use lines::SourceLines;

/// How many syntax faults are looked for. Each costs a pass over the text.
pub const MAX_SYNTAX_FAULTS: usize = 20;

/// How much text is parsed in all, so that the largest files get the fewest passes: mending one must not take
/// longer than somebody waits.
const MAX_PARSED_BYTES: usize = 4 * MAX_SOURCE_BYTES;

/// How many bytes could be parsed in the time that one complaint takes the parser.
const BYTES_PER_ERROR: usize = 32;

/// What may still be parsed.
struct ParseBudget {
    bytes: usize,
}

impl ParseBudget {
    /// Pays for a pass that is expected to end in about so many complaints.
    fn spend(&mut self, text: &str, errors: usize) -> bool {
        let cost = errors.saturating_mul(BYTES_PER_ERROR).saturating_add(text.len());
        let left = self.bytes.checked_sub(cost);
        self.bytes = left.unwrap_or(0);
        left.is_some()
    }
}

/// A text that parses: the source without what is broken, each part of which is put on record. Where that can't
/// be had the result is empty. It begins with what the parser found wrong with the source itself.
pub(crate) fn blank_syntax_errors(
    source: &SourceText,
    mut errors: Vec<Error>,
    curtain: &RedactionBoundary<'_>,
    faults: &FaultCollector,
) -> String {
    let mut budget = ParseBudget { bytes: MAX_PARSED_BYTES };
    let mut text = source.text().to_owned();
    budget.spend(&text, errors.len());
    for found in 0.. {
        let first = errors.iter().min_by_key(|error| error.span().map_or(0, |span| span.start));
        let Some(error) = first else { return text };
        let place = source.clamp(error.span().map_or(Span::FILE, Span::from));
        if found == MAX_SYNTAX_FAULTS || !budget.spend(&text, errors.len()) {
            let fault = ConfigFault::new(code::SYNTAX, place, "there are more syntax errors from here on");
            record_fault(fault.help("mend those above first"), curtain, faults);
            break;
        }
        let lines = SourceLines { source, text: &text, curtain };
        let broken = explain::explain_error(&lines, error.message(), place);
        let without = blank_span(&text, broken.blank);
        record_fault(
            with_first_definition(broken, source, &without, || budget.spend(&without, errors.len())),
            curtain,
            faults,
        );
        if without == text {
            break;
        }
        text = without;
        errors = DeTable::parse_recoverable(&text).1;
    }
    String::new()
}

fn record_fault(fault: ConfigFault, curtain: &RedactionBoundary<'_>, faults: &FaultCollector) {
    let related = fault.related_places().iter().map(|related| related.span);
    for span in std::iter::once(fault.span()).chain(related) {
        faults.hide(curtain.redacted_part_of_line(span.start));
    }
    faults.push(fault);
}

fn with_first_definition(
    broken: SyntaxRepair,
    source: &SourceText,
    mended: &str,
    affordable: impl FnOnce() -> bool,
) -> ConfigFault {
    if broken.fault.code() != code::DUPLICATE_KEY || !affordable() {
        return broken.fault;
    }
    match duplicate::first_definition(source, mended, broken.fault.span()) {
        Some(first) => broken.fault.related(first, "first set here"),
        None => broken.fault,
    }
}

/// The text with a span replaced by spaces; line ends stay, so that every place stays.
fn blank_span(text: &str, span: Span) -> String {
    let (Some(before), Some(inside), Some(after)) =
        (text.get(..span.start), text.get(span.start..span.end), text.get(span.end..))
    else {
        return text.to_owned();
    };
    let mut result = String::with_capacity(text.len());
    result.push_str(before);
    for character in inside.chars() {
        match character {
            '\n' => result.push('\n'),
            // A lone carriage return is itself a fault, and one before a line feed is not missed.
            other => result.extend(std::iter::repeat_n(' ', other.len_utf8())),
        }
    }
    result.push_str(after);
    result
}
