//! Faults: the problems found in a configuration file, and the collector that keeps them in source order.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;

use crate::escape::escape_and_truncate;
use crate::span_set::SpanSet;
use crate::{Span, Spanned, closest};

/// The number of faults that a report lists. Further faults are only counted.
pub const MAX_FAULTS: usize = 100;

/// The stable codes of the faults that this crate reports. Callers add their own codes.
pub mod code {
    /// The file has a key that no reader asked for.
    pub const UNKNOWN_KEY: &str = "unknown-key";
    /// A required key is missing.
    pub const MISSING_KEY: &str = "missing-key";
    /// A value has the wrong type, such as text in place of a number.
    pub const WRONG_TYPE: &str = "wrong-type";
    /// A number is outside its limits.
    pub const OUT_OF_RANGE: &str = "out-of-range";
    /// A text is not one of the allowed words.
    pub const NOT_ALLOWED: &str = "not-allowed";
    /// A text or list is empty, but must not be.
    pub const EMPTY: &str = "empty";
    /// The parser of a value rejected it.
    pub const INVALID: &str = "invalid-value";
    /// A name that must be unique is used twice.
    pub const DUPLICATE: &str = "duplicate";
    /// A value refers to a name that is not defined.
    pub const UNKNOWN_NAME: &str = "unknown-name";
    /// The text is not TOML.
    pub const SYNTAX: &str = "syntax";
    /// A table has the same key twice.
    pub const DUPLICATE_KEY: &str = "duplicate-key";
    /// The text is nested more deeply than the parser allows.
    pub const TOO_DEEP: &str = "too-deep";
    /// The text is longer than [`MAX_SOURCE_BYTES`](crate::MAX_SOURCE_BYTES).
    pub const TOO_LARGE: &str = "too-large";
    /// The bytes are not UTF-8.
    pub const NOT_UTF8: &str = "not-utf8";
    /// The reader returned no value and recorded no fault, which is a bug in the program.
    pub const UNREADABLE: &str = "unreadable";
}

/// A problem in a configuration file: its place, a message, and optionally a help text and related places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    pub(crate) code: &'static str,
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    pub(crate) related: Vec<RelatedPlace>,
}

/// A second place that helps to explain a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelatedPlace {
    /// The place in the source.
    pub span: Span,
    /// The label shown at the place, such as `first defined here`.
    pub note: String,
}

impl ConfigFault {
    /// Creates a fault. The code is stable and in kebab case. The message starts in lower case and has no
    /// full stop.
    pub fn new(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self { code, span, message: message.into(), help: None, related: Vec::new() }
    }

    /// Adds advice on how to fix the fault.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Adds a related place. [`Span::FILE`], the span of defaults, is left out.
    #[must_use]
    pub fn related(mut self, span: Span, note: impl Into<String>) -> Self {
        if span != Span::FILE {
            self.related.push(RelatedPlace { span, note: note.into() });
        }
        self
    }

    /// Returns the stable code, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Returns the place of the fault.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }

    /// Returns the message, without the help text.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the advice on how to fix the fault.
    #[must_use]
    pub fn help_text(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Returns the related places, in the order they were added.
    #[must_use]
    pub fn related_places(&self) -> &[RelatedPlace] {
        &self.related
    }
}

/// The error of a function that parses a single value and knows nothing about files and spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidValue {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    pub(crate) at: Option<Range<usize>>,
}

impl InvalidValue {
    /// Creates an error about the whole value.
    pub fn new(message: impl Into<String>) -> Self {
        Self { code: code::INVALID, message: message.into(), help: None, at: None }
    }

    /// Replaces the code [`code::INVALID`].
    #[must_use]
    pub fn code(mut self, code: &'static str) -> Self {
        self.code = code;
        self
    }

    /// Adds advice on how to fix the value.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Narrows the place to a range of bytes within the parsed text.
    #[must_use]
    pub fn at(mut self, bytes: Range<usize>) -> Self {
        self.at = Some(bytes);
        self
    }
}

/// The faults found so far in a document, shared by everything that reads it.
#[derive(Debug, Default)]
pub struct FaultCollector {
    kept: RefCell<CollectedFaults>,
    warnings: RefCell<CollectedFaults>,
    /// True if parts of the file could not be parsed.
    incomplete: Cell<bool>,
}

#[derive(Debug, Default)]
struct CollectedFaults {
    // Keyed by offset, then by order of discovery, so that faults are always sorted and the last is the next
    // to drop.
    by_place: BTreeMap<(usize, usize), ConfigFault>,
    found: usize,
    hidden: SpanSet,
}

impl CollectedFaults {
    fn push(&mut self, fault: ConfigFault) {
        let key = (fault.span.start, self.found);
        self.found += 1;
        self.by_place.insert(key, fault);
        if self.by_place.len() > MAX_FAULTS {
            self.by_place.pop_last();
        }
    }
}

impl FaultCollector {
    /// Records a fault. If there are more than [`MAX_FAULTS`], the faults furthest down the file are only
    /// counted.
    pub fn push(&self, fault: ConfigFault) {
        self.kept.borrow_mut().push(fault);
    }

    /// Records a warning: the value is valid, but probably not meant. See
    /// [`read_with_warnings`](crate::read_with_warnings).
    pub fn warn(&self, warning: ConfigFault) {
        self.warnings.borrow_mut().push(warning);
    }

    /// Returns the number of faults found, including those that are only counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.borrow().found
    }

    /// Returns true if no fault was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn mark_incomplete(&self) {
        self.incomplete.set(true);
    }

    pub(crate) fn is_incomplete(&self) -> bool {
        self.incomplete.get()
    }

    /// Masks the text of this span in every snippet.
    pub fn hide(&self, span: Span) {
        self.kept.borrow_mut().hidden.insert(span);
    }

    pub(crate) fn is_hidden(&self, span: Span) -> bool {
        self.kept.borrow().hidden.overlaps(span)
    }

    /// Returns a name for use in a message, or `***` if the span is hidden.
    fn display_name(&self, name: &str, span: Span) -> String {
        if self.is_hidden(span) { "***".to_owned() } else { escape_and_truncate(name) }
    }

    /// Records a fault for each name that occurs more than once, pointing at its first occurrence.
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
                    .help(format!("give each a different {what}")),
                ),
            }
        }
    }

    /// Records a reference to an unknown name, and suggests the most similar known name.
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
            None => format!("use {}", join_names(&known, "or")),
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

    /// Returns a collector with the warnings in place of the faults.
    pub(crate) fn into_warnings(self) -> Self {
        let mut warnings = self.warnings.into_inner();
        warnings.hidden = self.kept.into_inner().hidden;
        Self { kept: RefCell::new(warnings), ..Self::default() }
    }

    pub(crate) fn into_parts(self) -> (Vec<ConfigFault>, usize, SpanSet) {
        let kept = self.kept.into_inner();
        let more = kept.found - kept.by_place.len();
        (kept.by_place.into_values().collect(), more, kept.hidden)
    }
}

/// The number of names that a message lists before it cuts the list short.
const MAX_LISTED: usize = 16;

/// Joins names as in "`a`, `b` or `c`", where `last` is the conjunction.
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
