//! A set of places.

use std::collections::BTreeMap;

use crate::Span;

/// Places in order and apart from each other; those that overlap or touch are one.
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

    /// Those that have a byte in common with a span, in order.
    pub(crate) fn overlapping(&self, span: Span) -> impl Iterator<Item = Span> {
        let reaches_in =
            self.end_by_start.range(..span.start).next_back().map_or(span.start, |(start, _)| *start);
        let near = self.end_by_start.range(reaches_in..span.end.max(reaches_in));
        near.map(|(start, end)| Span { start: *start, end: *end }).filter(move |near| near.overlaps(span))
    }
}

impl FromIterator<Span> for SpanSet {
    fn from_iter<I: IntoIterator<Item = Span>>(spans: I) -> Self {
        let mut places = Self::default();
        spans.into_iter().for_each(|span| places.insert(span));
        places
    }
}
