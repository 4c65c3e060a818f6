//! Finds every syntax fault of a text, and the part of the text that can still be parsed.
//!
//! The TOML parser recovers from many errors, but after an unclosed bracket it reports every following line,
//! and after a line without `=` it drops the rest of the file. So this module takes only the first error,
//! overwrites the affected lines with spaces, which keeps all offsets the same, and parses again.

mod duplicate;
mod explain;
mod lines;
mod other_notations;
mod stray_marks;

use toml::de::{DeTable, Error};

use crate::secret::RedactionBoundary;
use crate::{ConfigFault, FaultCollector, MAX_SOURCE_BYTES, SourceText, Span, code};
use explain::SyntaxRepair;
use lines::SourceLines;
pub(crate) use other_notations::boolean_word;

/// The number of syntax faults to look for. Each needs another pass over the text.
pub const MAX_SYNTAX_FAULTS: usize = 20;

/// The number of bytes to parse in all passes together. Large files get fewer passes, so that a report never
/// takes long.
const MAX_PARSED_BYTES: usize = 4 * MAX_SOURCE_BYTES;

/// The number of bytes that the parser could parse in the time that it needs to report an error.
const BYTES_PER_ERROR: usize = 32;

/// The number of bytes that may still be parsed.
struct ParseBudget {
    bytes: usize,
}

impl ParseBudget {
    /// Pays for a pass over the text that is expected to report about `errors` errors. Returns false if the
    /// budget is used up.
    fn spend(&mut self, text: &str, errors: usize) -> bool {
        let cost = errors.saturating_mul(BYTES_PER_ERROR).saturating_add(text.len());
        let left = self.bytes.checked_sub(cost);
        self.bytes = left.unwrap_or(0);
        left.is_some()
    }
}

/// Records the syntax faults of a source, and returns a text that parses: the source with the broken parts
/// overwritten by spaces. Returns an empty text if the source can't be repaired. `errors` are the parser's
/// errors for the source itself.
pub(crate) fn blank_syntax_errors(
    source: &SourceText,
    mut errors: Vec<Error>,
    boundary: &RedactionBoundary<'_>,
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
            record_fault(fault.help("fix the errors above first"), boundary, faults);
            break;
        }
        let lines = SourceLines { source, text: &text, boundary };
        let repair = explain::explain_error(&lines, error.message(), place);
        let repaired = blank_span(&text, repair.blank);
        record_fault(
            with_first_definition(repair, source, &repaired, || budget.spend(&repaired, errors.len())),
            boundary,
            faults,
        );
        if repaired == text {
            break;
        }
        text = repaired;
        errors = DeTable::parse_recoverable(&text).1;
    }
    String::new()
}

fn record_fault(fault: ConfigFault, boundary: &RedactionBoundary<'_>, faults: &FaultCollector) {
    let related = fault.related_places().iter().map(|related| related.span);
    for span in std::iter::once(fault.span()).chain(related) {
        faults.hide(boundary.redacted_part_of_line(span.start));
    }
    faults.push(fault);
}

fn with_first_definition(
    repair: SyntaxRepair,
    source: &SourceText,
    repaired: &str,
    spend_budget: impl FnOnce() -> bool,
) -> ConfigFault {
    if repair.fault.code() != code::DUPLICATE_KEY || !spend_budget() {
        return repair.fault;
    }
    match duplicate::first_definition(source, repaired, repair.fault.span()) {
        Some(first) => repair.fault.related(first, "first set here"),
        None => repair.fault,
    }
}

/// Replaces a span by spaces. Line feeds are kept, so that all offsets and line numbers stay the same.
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
            // Carriage returns go too: alone they are a syntax error, and before a line feed they aren't
            // needed.
            other => result.extend(std::iter::repeat_n(' ', other.len_utf8())),
        }
    }
    result.push_str(after);
    result
}
