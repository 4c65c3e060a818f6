//! The sessions that exist, and which of them the store doesn't have yet.

use std::collections::{BTreeMap, BTreeSet};

use shepherd_api::SessionSlot;
use shepherd_util::{EntryId, ProfileId, SessionId};

use crate::session::SessionRecord;
use crate::state::StoreWrite;

/// The sessions, by id. Each change is written to the store with the change of the engine that caused it.
#[derive(Clone, Debug, Default)]
pub struct SessionTable {
    records: BTreeMap<SessionId, SessionRecord>,
    changed: BTreeSet<SessionId>,
}

impl SessionTable {
    pub(crate) fn new(records: BTreeMap<SessionId, SessionRecord>) -> Self {
        Self { records, changed: BTreeSet::new() }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    #[must_use]
    pub fn get(&self, session_id: &SessionId) -> Option<&SessionRecord> {
        self.records.get(session_id)
    }

    /// Returns the sessions in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &SessionRecord> {
        self.records.values()
    }

    /// Returns the session if there is exactly one.
    #[must_use]
    pub fn only(&self) -> Option<&SessionRecord> {
        let mut sessions = self.iter();
        sessions.next().filter(|_| sessions.next().is_none())
    }

    /// Returns the sessions of a profile.
    pub fn of_profile(&self, profile: &ProfileId) -> impl Iterator<Item = &SessionRecord> {
        self.iter().filter(move |session| session.profile == *profile)
    }

    /// Returns the session that takes the place of another one of this entry and profile.
    pub(crate) fn occupant(
        &self,
        slot: &SessionSlot,
        profile: &ProfileId,
        entry_id: &EntryId,
    ) -> Option<&SessionRecord> {
        self.iter().filter(|session| session.slot == *slot).find(|session| match slot {
            SessionSlot::Foreground => session.profile == *profile,
            SessionSlot::Background => session.profile == *profile && session.entry_id == *entry_id,
            SessionSlot::Login { .. } => true,
        })
    }

    pub(crate) fn records(&self) -> &BTreeMap<SessionId, SessionRecord> {
        &self.records
    }

    pub(crate) fn insert(&mut self, session: SessionRecord) {
        self.changed.insert(session.session_id.clone());
        self.records.insert(session.session_id.clone(), session);
    }

    pub(crate) fn remove(&mut self, session_id: &SessionId) -> Option<SessionRecord> {
        let session = self.records.remove(session_id)?;
        self.changed.insert(session_id.clone());
        Some(session)
    }

    /// Returns a session that is about to change.
    pub(crate) fn get_mut(&mut self, session_id: &SessionId) -> Option<&mut SessionRecord> {
        let session = self.records.get_mut(session_id)?;
        if !self.changed.contains(session_id) {
            self.changed.insert(session_id.clone());
        }
        Some(session)
    }

    /// Returns a session for a change that isn't worth a write of its own.
    pub(crate) fn get_mut_unsaved(&mut self, session_id: &SessionId) -> Option<&mut SessionRecord> {
        self.records.get_mut(session_id)
    }

    /// Returns the writes that bring the store up to date.
    pub(crate) fn take_writes(&mut self) -> impl Iterator<Item = StoreWrite> {
        std::mem::take(&mut self.changed).into_iter().map(|session_id| match self.records.get(&session_id) {
            Some(session) => StoreWrite::SaveSession(Box::new(session.clone())),
            None => StoreWrite::DeleteSession(session_id),
        })
    }
}
