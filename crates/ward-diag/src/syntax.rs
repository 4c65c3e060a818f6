//! Text to tree, with every syntax fault and as much of the tree as can be had.
//!
//! The parser recovers from many faults, but one unclosed bracket makes it complain about every line that
//! follows, and a line without `=` makes it drop the rest of the file. So one fault is taken at a time, the
//! first; what it stands on is blanked with spaces (places stay the same) and the text is parsed again.

mod duplicate;
mod explain;
mod lines;

use toml::de::DeTable;

use crate::{Fault, Faults, Source, Span, code};
use explain::Broken;

/// How many syntax faults are looked for. Each costs a pass over the text.
pub const MAX_SYNTAX_FAULTS: usize = 20;

/// A text that parses: the source without what is broken, each part of which is put on record. Where that can't
/// be had the result is empty.
pub(crate) fn mended(source: &Source, faults: &Faults) -> String {
    let mut text = source.text().to_owned();
    for found in 0.. {
        let (_, errors) = DeTable::parse_recoverable(&text);
        let first = errors.iter().min_by_key(|error| error.span().map_or(0, |span| span.start));
        let Some(error) = first else { return text };
        let place = source.clamp(error.span().map_or(Span::FILE, Span::from));
        if found == MAX_SYNTAX_FAULTS {
            faults.push(Fault::new(code::SYNTAX, place, "there are more syntax errors from here on"));
            break;
        }
        let broken = explain::explain(source, &text, error.message(), place);
        let without = blanked(&text, broken.blank);
        faults.push(with_first_definition(broken, source, &without));
        if without == text {
            break;
        }
        text = without;
    }
    String::new()
}

fn with_first_definition(broken: Broken, source: &Source, mended: &str) -> Fault {
    if broken.fault.code() != code::DUPLICATE_KEY {
        return broken.fault;
    }
    match duplicate::first_definition(source, mended, broken.fault.span()) {
        Some(first) => broken.fault.related(first, "first set here"),
        None => broken.fault,
    }
}

/// The text with a span replaced by spaces; line ends stay, so that every place stays.
fn blanked(text: &str, span: Span) -> String {
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
