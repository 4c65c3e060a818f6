//! Log-ins: whether somebody may log in now (S19.2).

use jiff::Timestamp;
use shepherd_api::ReasonCode;
use shepherd_util::{ClockReading, EntryId, ProfileId};

use super::CoreEngine;
use super::listing::evaluate_entry;

/// Whether a profile may log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginCheck {
    /// The entry that stands for being logged in.
    pub entry_id: EntryId,
    /// All reasons against it; empty if the log-in is allowed.
    pub reasons: Vec<ReasonCode>,
    /// The next moment at which nothing is against it, if that can be known.
    pub opens: Option<Timestamp>,
}

impl CoreEngine {
    /// Returns whether a profile may log in now; `None` if the policy doesn't limit its logins. An answer changes nothing.
    #[must_use]
    pub fn check_login(&self, profile: &ProfileId, now: ClockReading) -> Option<LoginCheck> {
        let entry = self.policy.login_entry(profile)?;
        let at = self.evaluation_time(now);
        // Without an account, a login that exists already is no reason against another one.
        let view = evaluate_entry(&self.evaluation_context(at), profile, entry, at);
        Some(LoginCheck { entry_id: view.entry_id, reasons: view.reasons, opens: view.next_available })
    }
}
