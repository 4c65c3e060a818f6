//! An entry as the daemon lists it, with the labels of the others.

use jiff::Zoned;
use shepherd_api::EntryView;
use shepherd_text::{ClosedEntry, SentenceCatalogue};
use shepherd_util::EntryId;

/// An entry of a child, with all entries that the daemon lists for this child.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListedEntry<'l> {
    pub(crate) view: &'l EntryView,
    all: &'l [EntryView],
}

impl<'l> ListedEntry<'l> {
    /// Finds an entry in a listing.
    pub(crate) fn find(all: &'l [EntryView], entry_id: &EntryId) -> Option<Self> {
        let view = all.iter().find(|entry| entry.entry_id == *entry_id)?;
        Some(Self { view, all })
    }

    /// Finds what keeps the entry closed in spite of extra time, seen from this moment.
    pub(crate) fn closed(&self, catalogue: &SentenceCatalogue, now: &Zoned) -> Option<ClosedEntry> {
        let label_of = |entry_id: &EntryId| {
            let first = Self::find(self.all, entry_id);
            first.map_or_else(|| entry_id.to_string(), |first| first.view.label.clone())
        };
        catalogue.closed_entry(&self.view.reasons, |at| catalogue.time(at, now), label_of)
    }
}
