//! Log-ins: whether somebody may log in now (S19.2).

use jiff::Timestamp;
use shepherd_api::{EntryKind, ReasonCode, SessionSlot};
use shepherd_util::{ClockReading, EntryId, ProfileId};

use super::listing::evaluate_entry;
use super::{CoreEngine, CoreEvent, Effects};
use crate::session::SessionRecord;

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

    /// Returns the session that stands for an account's being logged in.
    #[must_use]
    pub fn login_session(&self, account: &str) -> Option<&SessionRecord> {
        let is_meant = |session: &&SessionRecord| matches!(&session.slot, SessionSlot::Login { account: own } if own == account);
        self.sessions.iter().find(is_meant)
    }

    /// Returns whether an account of a profile may log in now; `None` if the policy doesn't limit its logins. It may while
    /// it is logged in and the login isn't being ended. An answer changes nothing.
    #[must_use]
    pub fn check_login(&self, profile: &ProfileId, account: &str, now: ClockReading) -> Option<LoginCheck> {
        let entry = self.policy.login_entry(profile)?;
        let session = self.login_session(account);
        if session.is_some_and(|session| session.stage.end_reason().is_none()) {
            let entry_id = entry.entry_id.clone();
            return Some(LoginCheck { entry_id, reasons: Vec::new(), opens: None });
        }
        let at = self.evaluation_time(now);
        let view = evaluate_entry(&self.evaluation_context(at), profile, entry, at);
        Some(LoginCheck { entry_id: view.entry_id, reasons: view.reasons, opens: view.next_available })
    }
}
