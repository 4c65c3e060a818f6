//! One reading of one document: the source, its faults so far, and how complete the tree is.

use toml::de::DeTable;

use crate::source::Refusal;
use crate::{Fault, Faults, MAX_SOURCE_BYTES, Report, Source, Span, Table, code, secret, syntax};

/// What every table and value of a document shares.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    pub(crate) source: &'a Source,
    pub(crate) faults: &'a Faults,
    pub(crate) hidden: &'a [Span],
    pub(crate) incomplete: bool,
}

impl Reading<'_> {
    pub(crate) fn is_hidden(&self, span: Span) -> bool {
        let next = self.hidden.partition_point(|hidden| hidden.end <= span.start);
        self.hidden.get(next).is_some_and(|hidden| hidden.overlaps(span))
    }

    pub(crate) fn hides_anything(&self) -> bool {
        !self.source.hidden_keys().is_empty()
    }
}

/// Parses the source and gives its root table to `with`, which reads what it knows and returns the value.
/// Keys that it did not ask for are reported. The value counts only if no fault was recorded.
///
/// # Errors
/// All faults that were found, in source order.
pub fn read<T>(source: Source, with: impl FnOnce(&mut Table<'_>) -> Option<T>) -> Result<T, Report> {
    let faults = Faults::default();
    let hidden = secret::hidden_spans(&source);
    let value = match source.refusal() {
        Some(refusal) => {
            faults.push(refused(refusal));
            None
        }
        None => read_tree(&source, &faults, &hidden, with),
    };
    match value {
        Some(value) if faults.is_empty() => Ok(value),
        _ => {
            if faults.is_empty() {
                faults.push(Fault::new(
                    code::UNREADABLE,
                    Span::FILE,
                    "this file could not be read, and no reason was given",
                ));
            }
            Err(Report::new(source, faults, hidden))
        }
    }
}

fn read_tree<T>(
    source: &Source,
    faults: &Faults,
    hidden: &[Span],
    with: impl FnOnce(&mut Table<'_>) -> Option<T>,
) -> Option<T> {
    let (whole, errors) = DeTable::parse_recoverable(source.text());
    let incomplete = !errors.is_empty();
    let mended = if incomplete { syntax::mended(source, faults) } else { String::new() };
    let tree = if incomplete { DeTable::parse_recoverable(&mended).0 } else { whole };
    let understood = secret::hidden_in_tree(source, tree.get_ref());
    understood.iter().for_each(|span| faults.hide(*span));
    let hidden = secret::merged([hidden, &understood].concat());
    let reading = Reading { source, faults, hidden: &hidden, incomplete };
    let mut root = Table::root(tree.get_ref(), &reading);
    let value = with(&mut root);
    root.finish();
    value
}

fn refused(refusal: &Refusal) -> Fault {
    match refusal {
        Refusal::TooLarge { bytes } => Fault::new(
            code::TOO_LARGE,
            Span::FILE,
            format!("this file has {bytes} bytes; at most {MAX_SOURCE_BYTES} are read"),
        )
        .help("check that it is the right file"),
        Refusal::NotUtf8 { at } => Fault::new(
            code::NOT_UTF8,
            Span { start: *at, end: at + '\u{fffd}'.len_utf8() },
            "from here on this is not UTF-8 text",
        )
        .help("save the file with the encoding UTF-8"),
    }
}
