//! Byte ranges in a source text, and values that carry the range they were read from.

use std::ops::Range;

/// A range of bytes in the text of a [`SourceText`](crate::SourceText).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
}

impl Span {
    /// The file as a whole, for faults that belong to no line, such as a missing key.
    pub const FILE: Self = Self { start: 0, end: 0 };

    /// Returns true if the two spans have a byte in common.
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

/// A value with the span it was read from, so that later checks can point at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spanned<T> {
    /// The value that was read.
    pub value: T,
    /// The place of the value in the source.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// Creates a value that was read at `span`.
    pub const fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }

    /// Creates a value that doesn't occur in the text, such as a default.
    pub const fn without_span(value: T) -> Self {
        Self { value, span: Span::FILE }
    }

    /// Converts the value and keeps its span.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Spanned<U> {
        Spanned { value: change(self.value), span: self.span }
    }
}
