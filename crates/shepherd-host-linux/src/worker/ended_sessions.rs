//! Remembers sessions that have ended. A stop request can cross the last event of its session, and must not be answered
//! with another event.

use std::collections::{BTreeSet, VecDeque};

use shepherd_util::SessionId;

/// Requests cross events within moments, and a thousand sessions take days.
const MAX_REMEMBERED: usize = 1_024;

#[derive(Debug, Default)]
pub(super) struct EndedSessions {
    known: BTreeSet<SessionId>,
    in_order: VecDeque<SessionId>,
}

impl EndedSessions {
    pub(super) fn insert(&mut self, session_id: SessionId) {
        if !self.known.insert(session_id.clone()) {
            return;
        }
        self.in_order.push_back(session_id);
        if self.in_order.len() > MAX_REMEMBERED
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    pub(super) fn contains(&self, session_id: &SessionId) -> bool {
        self.known.contains(session_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_remembered_and_no_more() {
        let mut remembered = EndedSessions::default();
        let id = |number: usize| SessionId::from_random(number as u128);
        (0..=MAX_REMEMBERED).for_each(|number| remembered.insert(id(number)));
        remembered.insert(id(MAX_REMEMBERED));
        assert!(!remembered.contains(&id(0)));
        assert!(remembered.contains(&id(1)));
        assert_eq!(remembered.in_order.len(), MAX_REMEMBERED);
    }
}
