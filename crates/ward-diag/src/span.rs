//! Places in a text, and values that remember theirs.

use std::ops::Range;

/// A range of bytes in the text of a [`SourceText`](crate::Source).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
}

impl Span {
    /// The file as a whole: a fault that no line of the text is to blame for, such as a missing key.
    pub const FILE: Self = Self { start: 0, end: 0 };

    /// Whether the two have a byte in common.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self { start: range.start, end: range.end }
    }
}

/// A value with the place it was read from, so that a later check can point at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spanned<T> {
    /// What was read.
    pub value: T,
    /// Where it stands.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// A value read at a place.
    pub const fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }

    /// A value that stands nowhere in the text: a default.
    pub const fn without_span(value: T) -> Self {
        Self { value, span: Span::FILE }
    }

    /// The same place with another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Spanned<U> {
        Spanned { value: change(self.value), span: self.span }
    }
}
