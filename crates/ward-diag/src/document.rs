//! The entry point [`read`], and the state that is shared while a document is read.

use toml::de::{DeTable, Error};

use crate::secret::{self, RedactionBoundary};
use crate::source::SourceRejection;
use crate::{
    ConfigFault, FaultCollector, FaultReport, MAX_SOURCE_BYTES, SourceText, Span, TomlTable, code, syntax,
};

/// The state that all tables and values of a document share.
#[derive(Debug)]
pub(crate) struct DocumentContext<'a> {
    pub(crate) source: &'a SourceText,
    pub(crate) faults: &'a FaultCollector,
    /// True if parts of the file could not be parsed.
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

/// Parses the source and passes its root table to `read_root`, which reads the keys it knows and returns the
/// value. Keys that `read_root` doesn't ask for are reported as faults.
///
/// # Errors
/// Returns all faults in source order. If there is any fault, the value is dropped.
pub fn read<T>(
    source: SourceText,
    read_root: impl FnOnce(&mut TomlTable<'_>) -> Option<T>,
) -> Result<T, FaultReport> {
    read_with_warnings(source, read_root).map(|(value, _)| value)
}

/// Reads like [`read()`], and also returns the warnings about a source without faults.
///
/// # Errors
/// Fails like [`read()`]. Warnings about a source with faults are dropped.
pub fn read_with_warnings<T>(
    source: SourceText,
    read_root: impl FnOnce(&mut TomlTable<'_>) -> Option<T>,
) -> Result<(T, FaultReport), FaultReport> {
    let faults = FaultCollector::default();
    let value = match source.rejection() {
        Some(rejection) => {
            let fault = rejection_fault(rejection);
            let boundary = RedactionBoundary::new(&source);
            faults.hide(boundary.redacted_span());
            faults.hide(boundary.redacted_part_of_line(fault.span().start));
            faults.push(fault);
            None
        }
        None => read_tree(&source, &faults, read_root),
    };
    match value {
        Some(value) if faults.is_empty() => Ok((value, FaultReport::new(source, faults.into_warnings()))),
        _ => {
            if faults.is_empty() {
                faults.push(
                    ConfigFault::new(
                        code::UNREADABLE,
                        Span::FILE,
                        "could not read this file, for an unknown reason",
                    )
                    .help("this is a bug in the program: report it, and include the file"),
                );
            }
            Err(FaultReport::new(source, faults))
        }
    }
}

fn read_tree<T>(
    source: &SourceText,
    faults: &FaultCollector,
    read_root: impl FnOnce(&mut TomlTable<'_>) -> Option<T>,
) -> Option<T> {
    let (whole, errors) = DeTable::parse_recoverable(source.text());
    let incomplete = !errors.is_empty();
    if incomplete {
        faults.mark_incomplete();
    }
    let readable = if incomplete { readable_part(source, errors, faults) } else { String::new() };
    let tree = if incomplete { DeTable::parse_recoverable(&readable).0 } else { whole };
    secret::hidden_in_tree(source, tree.get_ref()).into_iter().for_each(|span| faults.hide(span));
    let context = DocumentContext { source, faults, incomplete };
    let mut root = TomlTable::root(tree.get_ref(), &context);
    let value = read_root(&mut root);
    root.finish();
    value
}

/// Records the syntax faults of a text that doesn't parse, and returns the part of the text that can be read.
fn readable_part(source: &SourceText, errors: Vec<Error>, faults: &FaultCollector) -> String {
    let boundary = RedactionBoundary::new(source);
    faults.hide(boundary.redacted_span());
    let repaired = syntax::blank_syntax_errors(source, errors, &boundary, faults);
    let above = boundary.end_of_lines_above();
    if above >= repaired.len() {
        return repaired;
    }
    // A value that starts above the boundary and ends below it would be cut, so the part above must parse by
    // itself.
    let above = repaired.get(..above).unwrap_or_default();
    if DeTable::parse_recoverable(above).1.is_empty() { above.to_owned() } else { String::new() }
}

fn rejection_fault(rejection: &SourceRejection) -> ConfigFault {
    match rejection {
        SourceRejection::TooLarge { bytes } => ConfigFault::new(
            code::TOO_LARGE,
            Span::FILE,
            format!("this file has {bytes} bytes, but the limit is {MAX_SOURCE_BYTES}"),
        )
        .help("check that it is the right file"),
        SourceRejection::NotUtf8 { at } => ConfigFault::new(
            code::NOT_UTF8,
            Span { start: *at, end: at + '\u{fffd}'.len_utf8() },
            "the file is not valid UTF-8 from here on",
        )
        .help("save the file as UTF-8"),
    }
}
