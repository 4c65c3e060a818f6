//! The outcome of [`Effect::Persist`](super::Effect::Persist): a provisional grant becomes real when its record is
//! durable, and is undone when the record can't be written (S8.2).

use shepherd_api::EndReason;
use shepherd_util::{ClockReading, GrantId, SessionId};

use super::{CoreEngine, CoreEvent, Effects, NextChange, POLICY_ACTOR, ProvisionalGrant};
use crate::session::{SessionRecord, SessionStage};
use crate::state::ClockRecord;

impl CoreEngine {
    /// Handles the report that the record of a provisional grant is durable. An approved launch starts its program now,
    /// unless the session was stopped meanwhile.
    pub fn persist_succeeded(&mut self, granted: ProvisionalGrant, now: ClockReading) -> Effects {
        match granted {
            ProvisionalGrant::Launch(plan) if self.is_launching(&plan.session_id) => {
                self.effects.spawn(plan);
            }
            ProvisionalGrant::Launch(plan) => {
                self.end_failed_launch(
                    &plan.session_id,
                    "it was stopped before it was started".to_owned(),
                    now,
                );
            }
            ProvisionalGrant::Adoption(_)
            | ProvisionalGrant::Grant(_)
            | ProvisionalGrant::RequestAnswer { .. }
            | ProvisionalGrant::Mode { .. }
            | ProvisionalGrant::Clock { .. } => {}
        }
        self.take_effects()
    }

    /// Takes back a provisional grant whose record could not be written. If several fail together, the daemon reports
    /// the latest first, because a later change may build on an earlier one.
    pub fn persist_failed(&mut self, granted: &ProvisionalGrant, detail: &str, now: ClockReading) -> Effects {
        match granted {
            ProvisionalGrant::Launch(plan) => {
                self.end_failed_launch(&plan.session_id, format!("it could not be recorded: {detail}"), now);
            }
            ProvisionalGrant::Adoption(session_id) => self.withdraw_adoption(session_id, now),
            ProvisionalGrant::Grant(grant_id) => {
                self.revoke_unrecorded(grant_id, now);
                self.announce_grant(grant_id);
            }
            ProvisionalGrant::RequestAnswer { request_id, before, grant_id } => {
                self.revoke_unrecorded(grant_id, now);
                self.set_request_state(request_id, before.clone(), "open again", POLICY_ACTOR, now);
                if let Some(request) = self.find_request(request_id) {
                    self.announce_request(&request);
                }
                self.announce_grant(grant_id);
            }
            ProvisionalGrant::Mode { before } => self.set_mode(before.clone(), POLICY_ACTOR, now),
            ProvisionalGrant::Clock { before } => self.restore_clock(before, now),
        }
        self.take_effects()
    }

    /// Ends a session whose program has not come up, for this reason.
    pub(super) fn end_failed_launch(&mut self, session_id: &SessionId, detail: String, now: ClockReading) {
        self.observe(now);
        let awaits_program = |session: &SessionRecord| !session.stage.has_program();
        if self.sessions.get(session_id).is_some_and(awaits_program) {
            self.end_session(session_id, EndReason::LaunchFailed { detail }, now);
        }
    }

    fn is_launching(&self, session_id: &SessionId) -> bool {
        self.sessions.get(session_id).is_some_and(|session| session.stage == SessionStage::Launching)
    }

    fn revoke_unrecorded(&mut self, grant_id: &GrantId, now: ClockReading) {
        // The grant may have been revoked already.
        self.take_grant_back(grant_id, POLICY_ACTOR, now).ok();
    }

    fn announce_grant(&mut self, grant_id: &GrantId) {
        if let Some(grant) = self.find_grant(grant_id) {
            self.announce(CoreEvent::GrantChanged { grant: Box::new(grant) });
        }
    }

    fn restore_clock(&mut self, before: &ClockRecord, now: ClockReading) {
        let clock = &mut self.snapshot.clock;
        clock.latest_seen = clock.latest_seen.max(before.latest_seen);
        clock.accounting_day = clock.accounting_day.max(before.accounting_day);
        self.anchor = None;
        self.next_change = NextChange::Unknown;
        self.observe(now);
        self.save_snapshot();
        self.announce(CoreEvent::EntryAvailabilityChanged);
    }
}
