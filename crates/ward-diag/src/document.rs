//! One reading of one document: the source, its faults so far, and how complete the tree is.

use toml::de::{DeTable, Error};

use crate::secret::{self, RedactionBoundary};
use crate::source::SourceRejection;
use crate::{
    ConfigFault, FaultCollector, FaultReport, MAX_SOURCE_BYTES, SourceText, Span, TomlTable, code, syntax,
};

/// What every table and value of a document shares.
#[derive(Debug)]
pub(crate) struct DocumentContext<'a> {
    pub(crate) source: &'a SourceText,
    pub(crate) faults: &'a FaultCollector,
    pub(crate) incomplete: bool,
}

impl DocumentContext<'_> {
    pub(crate) fn is_hidden(&self, span: Span) -> bool {
        self.faults.is_hidden(span)
    }

    pub(crate) fn has_hidden_keys(&self) -> bool {
        !self.source.hidden_keys().is_empty()
    }
}

/// Parses the source and gives its root table to `with`, which reads what it knows and returns the value.
/// Keys that it did not ask for are reported. The value counts only if no fault was recorded.
///
/// # Errors
/// All faults that were found, in source order.
pub fn read<T>(
    source: SourceText,
    with: impl FnOnce(&mut TomlTable<'_>) -> Option<T>,
) -> Result<T, FaultReport> {
    let faults = FaultCollector::default();
    let value = match source.rejection() {
        Some(refusal) => {
            let fault = rejection_fault(refusal);
            let curtain = RedactionBoundary::new(&source);
            faults.hide(curtain.redacted_span());
            faults.hide(curtain.redacted_part_of_line(fault.span().start));
            faults.push(fault);
            None
        }
        None => read_tree(&source, &faults, with),
    };
    match value {
        Some(value) if faults.is_empty() => Ok(value),
        _ => {
            if faults.is_empty() {
                faults.push(
                    ConfigFault::new(
                        code::UNREADABLE,
                        Span::FILE,
                        "this file could not be read, and no reason was given",
                    )
                    .help("this is a mistake of the program: report it, with the file"),
                );
            }
            Err(FaultReport::new(source, faults))
        }
    }
}

fn read_tree<T>(
    source: &SourceText,
    faults: &FaultCollector,
    with: impl FnOnce(&mut TomlTable<'_>) -> Option<T>,
) -> Option<T> {
    let (whole, errors) = DeTable::parse_recoverable(source.text());
    let incomplete = !errors.is_empty();
    let readable = if incomplete { readable_part(source, errors, faults) } else { String::new() };
    let tree = if incomplete { DeTable::parse_recoverable(&readable).0 } else { whole };
    secret::hidden_in_tree(source, tree.get_ref()).into_iter().for_each(|span| faults.hide(span));
    let reading = DocumentContext { source, faults, incomplete };
    let mut root = TomlTable::root(tree.get_ref(), &reading);
    let value = with(&mut root);
    root.finish();
    value
}

/// What can be read of a text that doesn't parse; its faults are put on record.
fn readable_part(source: &SourceText, errors: Vec<Error>, faults: &FaultCollector) -> String {
    let curtain = RedactionBoundary::new(source);
    faults.hide(curtain.redacted_span());
    let mended = syntax::blank_syntax_errors(source, errors, &curtain, faults);
    let above = curtain.end_of_lines_above();
    if above >= mended.len() {
        return mended;
    }
    // What begins above the curtain and ends behind it is not what it was.
    let above = mended.get(..above).unwrap_or_default();
    if DeTable::parse_recoverable(above).1.is_empty() { above.to_owned() } else { String::new() }
}

fn rejection_fault(refusal: &SourceRejection) -> ConfigFault {
    match refusal {
        SourceRejection::TooLarge { bytes } => ConfigFault::new(
            code::TOO_LARGE,
            Span::FILE,
            format!("this file has {bytes} bytes; at most {MAX_SOURCE_BYTES} are read"),
        )
        .help("check that it is the right file"),
        SourceRejection::NotUtf8 { at } => ConfigFault::new(
            code::NOT_UTF8,
            Span { start: *at, end: at + '\u{fffd}'.len_utf8() },
            "from here on this is not UTF-8 text",
        )
        .help("save the file with the encoding UTF-8"),
    }
}
