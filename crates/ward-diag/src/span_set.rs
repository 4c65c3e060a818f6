//! A set of byte ranges.

use std::collections::BTreeMap;

use crate::Span;

/// An ordered set of disjoint spans. Spans that overlap or touch are merged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SpanSet {
    end_by_start: BTreeMap<usize, usize>,
}

impl SpanSet {
    pub(crate) fn insert(&mut self, mut span: Span) {
        if span.start >= span.end {
            return;
        }
        while let Some((&start, &end)) = self.end_by_start.range(..=span.end).next_back()
            && end >= span.start
        {
            self.end_by_start.remove(&start);
            span = Span { start: start.min(span.start), end: end.max(span.end) };
        }
        self.end_by_start.insert(span.start, span.end);
    }

    pub(crate) fn overlaps(&self, span: Span) -> bool {
        self.end_by_start.range(..span.end).next_back().is_some_and(|(_, end)| span.start < *end)
    }

    /// Returns the spans of the set that have a byte in common with `span`, in order.
    pub(crate) fn overlapping(&self, span: Span) -> impl Iterator<Item = Span> {
        let first = self.end_by_start.range(..span.start).next_back().map_or(span.start, |(start, _)| *start);
        let candidates = self.end_by_start.range(first..span.end.max(first));
        candidates
            .map(|(start, end)| Span { start: *start, end: *end })
            .filter(move |near| near.overlaps(span))
    }
}

impl FromIterator<Span> for SpanSet {
    fn from_iter<I: IntoIterator<Item = Span>>(spans: I) -> Self {
        let mut set = Self::default();
        spans.into_iter().for_each(|span| set.insert(span));
        set
    }
}
