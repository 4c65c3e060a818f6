//! Limits how many queries of one user another thread holds, so that no user delays others for long.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The number of unanswered queries of each user.
#[derive(Clone)]
pub(crate) struct UserSlots {
    most: usize,
    taken: Arc<Mutex<BTreeMap<u32, usize>>>,
}

impl UserSlots {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, taken: Arc::default() }
    }

    /// Returns false if the user already has all its slots.
    pub(crate) fn reserve(&self, uid: u32) -> bool {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let count = taken.entry(uid).or_default();
        let free = *count < self.most;
        *count += usize::from(free);
        free
    }

    pub(crate) fn release(&self, uid: u32) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&uid) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                taken.remove(&uid);
            }
        }
    }
}
