//! Log-ins: whether somebody may log in now (S19.2).

use jiff::Timestamp;
use shepherd_api::{EntryKind, ReasonCode};
use shepherd_util::{ClockReading, EntryId, ProfileId};

use super::listing::evaluate_entry;
use super::{CoreEngine, CoreEvent, Effects};

/// Whether the host is told when somebody logs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginSupport {
    Present,
    Absent,
}

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
    /// Handles the news that the host is told when somebody logs in, or no longer is.
    pub fn set_login_support(&mut self, support: LoginSupport) -> Effects {
        let kinds = &mut self.capabilities.spawn_kinds_supported;
        let changed = match support {
            LoginSupport::Present => kinds.insert(EntryKind::LOGIN_TYPE.to_owned()),
            LoginSupport::Absent => kinds.remove(EntryKind::LOGIN_TYPE),
        };
        if changed { Self::announcement(CoreEvent::EntryAvailabilityChanged) } else { Effects::default() }
    }

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
