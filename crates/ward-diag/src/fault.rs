//! One fault, and the collection of all of them in source order.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::escape::escape_and_truncate;
use crate::span_set::SpanSet;
use crate::{Span, Spanned, closest};

/// How many faults are kept. Whoever has more mends these first; the rest is counted.
pub const MAX_FAULTS: usize = 100;

/// Stable names of the faults that this library finds by itself. Callers add their own.
pub mod code {
    /// A key that nothing reads.
    pub const UNKNOWN_KEY: &str = "unknown-key";
    /// A key that must be there and is not.
    pub const MISSING_KEY: &str = "missing-key";
    /// Text where a number is wanted, and the like.
    pub const WRONG_TYPE: &str = "wrong-type";
    /// A number outside its limits.
    pub const OUT_OF_RANGE: &str = "out-of-range";
    /// A word that is not one of the allowed ones.
    pub const NOT_ALLOWED: &str = "not-allowed";
    /// A text, list or table that must not be empty.
    pub const EMPTY: &str = "empty";
    /// A value that its own parser refused.
    pub const INVALID: &str = "invalid-value";
    /// The same name twice.
    pub const DUPLICATE: &str = "duplicate";
    /// A reference to something that is not defined.
    pub const UNKNOWN_NAME: &str = "unknown-name";
    /// The text is not TOML.
    pub const SYNTAX: &str = "syntax";
    /// The same key twice in one table.
    pub const DUPLICATE_KEY: &str = "duplicate-key";
    /// More levels of nesting than are read.
    pub const TOO_DEEP: &str = "too-deep";
    /// The text is longer than is read.
    pub const TOO_LARGE: &str = "too-large";
    /// The bytes are not UTF-8.
    pub const NOT_UTF8: &str = "not-utf8";
    /// No value came out although nothing was found wrong: a mistake of the program.
    pub const UNREADABLE: &str = "unreadable";
}

/// What is wrong, where, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    pub(crate) code: &'static str,
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    pub(crate) related: Vec<RelatedPlace>,
}

/// A second place that belongs to a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelatedPlace {
    /// Where it is.
    pub span: Span,
    /// What it has to do with the fault, such as `first defined here`.
    pub note: String,
}

impl ConfigFault {
    /// A fault at a place. The code is stable and kebab-case; the message starts lower-case, without a full stop.
    pub fn new(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self { code, span, message: message.into(), help: None, related: Vec::new() }
    }

    /// Says how to mend it.
    #[must_use]
    pub fn help(mut self, cure: impl Into<String>) -> Self {
        self.help = Some(cure.into());
        self
    }

    /// Points at a second place. One that stands nowhere (a default) is left out.
    #[must_use]
    pub fn related(mut self, span: Span, note: impl Into<String>) -> Self {
        if span != Span::FILE {
            self.related.push(RelatedPlace { span, note: note.into() });
        }
        self
    }

    /// The stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Where it is.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }

    /// What is wrong.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How to mend it.
    #[must_use]
    pub fn help_text(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The second places.
    #[must_use]
    pub fn related_places(&self) -> &[RelatedPlace] {
        &self.related
    }
}

/// Why a parser refuses a text: what a function gives back that knows nothing of files and spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidValue {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    pub(crate) at: Option<Range<usize>>,
}

impl InvalidValue {
    /// A refusal, to be pointed at the whole value.
    pub fn new(message: impl Into<String>) -> Self {
        Self { code: code::INVALID, message: message.into(), help: None, at: None }
    }

    /// Gives it a code of its own.
    #[must_use]
    pub fn code(mut self, code: &'static str) -> Self {
        self.code = code;
        self
    }

    /// Says how to mend it.
    #[must_use]
    pub fn help(mut self, cure: impl Into<String>) -> Self {
        self.help = Some(cure.into());
        self
    }

    /// Narrows the place to bytes of the text that was parsed.
    #[must_use]
    pub fn at(mut self, bytes: Range<usize>) -> Self {
        self.at = Some(bytes);
        self
    }
}

/// All faults found so far. Shared by everything that reads one document.
#[derive(Debug, Default)]
pub struct FaultCollector {
    kept: RefCell<CollectedFaults>,
}

#[derive(Debug, Default)]
struct CollectedFaults {
    // Keyed by place, then by order of discovery: sorted at all times, and the last one is the one to drop.
    by_place: BTreeMap<(usize, usize), ConfigFault>,
    found: usize,
    hidden: SpanSet,
}

impl FaultCollector {
    /// Records a fault. Beyond [`MAX_FAULTS`] those furthest down are only counted.
    pub fn push(&self, fault: ConfigFault) {
        let mut kept = self.kept.borrow_mut();
        let key = (fault.span.start, kept.found);
        kept.found += 1;
        kept.by_place.insert(key, fault);
        if kept.by_place.len() > MAX_FAULTS {
            kept.by_place.pop_last();
        }
    }

    /// How many faults were found.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.borrow().found
    }

    /// Whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Never shows the text of this place in a snippet.
    pub fn hide(&self, span: Span) {
        self.kept.borrow_mut().hidden.insert(span);
    }

    pub(crate) fn is_hidden(&self, span: Span) -> bool {
        self.kept.borrow().hidden.overlaps(span)
    }

    /// A name for a message, or `***` where it must not be shown.
    fn display_name(&self, name: &str, span: Span) -> String {
        if self.is_hidden(span) { "***".to_owned() } else { escape_and_truncate(name) }
    }

    /// Records a fault for each name that was there before, pointing at the first of its kind.
    pub fn report_duplicates<'n, N: Ord + std::fmt::Display + 'n>(
        &self,
        what: &str,
        names: impl IntoIterator<Item = &'n Spanned<N>>,
    ) {
        let mut first: BTreeMap<&N, Span> = BTreeMap::new();
        for name in names {
            match first.get(&name.value) {
                None => {
                    first.insert(&name.value, name.span);
                }
                Some(before) => self.push(
                    ConfigFault::new(
                        code::DUPLICATE,
                        name.span,
                        format!(
                            "{what} `{}` is used twice",
                            self.display_name(&name.value.to_string(), name.span)
                        ),
                    )
                    .related(*before, "first used here")
                    .help(format!("give each its own {what}")),
                ),
            }
        }
    }

    /// Records that a name refers to nothing, with the nearest of those that exist.
    pub fn report_unknown_name<'c>(
        &self,
        what: &str,
        name: Spanned<&str>,
        known: impl IntoIterator<Item = &'c str>,
    ) {
        let known: Vec<&str> = known.into_iter().collect();
        let help = match closest(name.value, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => format!("no {what} is defined in this file"),
            None => format!("there is {}", join_names(&known, "and")),
        };
        self.push(
            ConfigFault::new(
                code::UNKNOWN_NAME,
                name.span,
                format!("there is no {what} `{}`", self.display_name(name.value, name.span)),
            )
            .help(help),
        );
    }

    pub(crate) fn into_parts(self) -> (Vec<ConfigFault>, usize, SpanSet) {
        let kept = self.kept.into_inner();
        let more = kept.found - kept.by_place.len();
        (kept.by_place.into_values().collect(), more, kept.hidden)
    }
}

/// How many names a sentence can carry before it stops being one.
const MAX_LISTED: usize = 12;

/// "`a`, `b` or `c`".
pub(crate) fn join_names(names: &[&str], last: &str) -> String {
    let shown: Vec<String> =
        names.iter().take(MAX_LISTED).map(|name| format!("`{}`", escape_and_truncate(name))).collect();
    let more = names.len() - shown.len();
    match shown.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        many if more > 0 => format!("{} {last} {more} more", many.join(", ")),
        [most @ .., end] => format!("{} {last} {end}", most.join(", ")),
    }
}
