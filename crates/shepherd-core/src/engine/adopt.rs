//! Sessions that Shepherd didn't launch: a login begins by itself, and is adopted (S19.2).

use std::sync::Arc;

use shepherd_api::{AuditKind, EndReason, ReasonCode, SessionSlot, StopRequester};
use shepherd_util::{ClockReading, EntryId, ProfileId, SessionId};

use super::{CoreEngine, CoreEvent, EngineReply, POLICY_ACTOR, ProvisionalGrant};
use crate::evaluation::{EntryFinding, EvaluationContext, NoObserver};
use crate::policy::EntrySlot;
use crate::session::SessionPlan;

/// A request to adopt a session that runs already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptionRequest {
    /// The entry that stands for the session; one of [`EntrySlot::Login`].
    pub entry_id: EntryId,
    /// The profile whose time it costs.
    pub profile: ProfileId,
    /// The account that is logged in.
    pub account: String,
    /// The id of the session if the adoption is approved. The engine makes up no ids.
    pub session_id: SessionId,
    /// The text by which a later daemon finds the session again.
    pub host_session_handle: String,
    /// The source of the request, for the audit log.
    pub actor: String,
}

/// The answer to an adoption.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum AdoptionDecision {
    /// The session is adopted on these terms, and runs from now on.
    Adopted(Arc<SessionPlan>),
    /// The session is denied, for all of these reasons. The caller ends it.
    Denied { reasons: Vec<ReasonCode> },
}

impl CoreEngine {
    /// Adopts a session that Shepherd didn't launch: a launch and a start in one step, by the same rules. Its time counts
    /// at once. If the adoption can't be recorded, the engine orders the session to stop.
    pub fn adopt_session(
        &mut self,
        request: &AdoptionRequest,
        now: ClockReading,
    ) -> EngineReply<AdoptionDecision> {
        self.observe(now);
        self.charge_profile(&request.profile, now);
        let finding = self.evaluate_adoption(&request.entry_id, &request.profile, &request.account, now);
        let entry = self.policy.entry(&request.entry_id).filter(|_| finding.reasons.is_empty()).cloned();
        let Some(entry) = entry else {
            let (entry_id, reasons) = (request.entry_id.clone(), finding.reasons.clone());
            let denied = AuditKind::LaunchDenied { entry_id, profile: request.profile.clone(), reasons };
            self.append_audit(now, &request.actor, denied);
            self.save_snapshot();
            return self.answer(AdoptionDecision::Denied { reasons: finding.reasons });
        };
        let session_id = request.session_id.clone();
        let slot = SessionSlot::Login { account: request.account.clone() };
        let mut session = self.new_session(&session_id, &entry, request.profile.clone(), slot, &finding, now);
        session.stage.program_started(request.host_session_handle.clone(), now.mono);
        let approved = AuditKind::LaunchApproved {
            session_id: session_id.clone(),
            entry_id: session.entry_id.clone(),
            profile: session.profile.clone(),
            max_run: finding.longest_run(self.evaluation_time(now).wall).map(Into::into),
        };
        self.append_audit(now, &request.actor, approved);
        let started = AuditKind::SessionStarted { session_id: session_id.clone() };
        self.append_audit(now, POLICY_ACTOR, started);
        let plan = Arc::new(self.plan_session(None, &session, entry, now));
        self.announce(CoreEvent::SessionStarted {
            session_id: session_id.clone(),
            entry_id: session.entry_id.clone(),
            deadline: session.expected_end(now.mono),
        });
        self.sessions.insert(session);
        self.save_snapshot();
        self.effects.grant_provisionally(ProvisionalGrant::Adoption(session_id));
        self.answer(AdoptionDecision::Adopted(plan))
    }

    /// Returns the reasons against an adoption now; none if it would be allowed. Nothing changes, so this also answers a
    /// login that hasn't begun. The caller counts usage first ([`CoreEngine::count_profile_usage_until`]).
    #[must_use]
    pub fn adoption_reasons(
        &self,
        entry_id: &EntryId,
        profile: &ProfileId,
        account: &str,
        now: ClockReading,
    ) -> Vec<ReasonCode> {
        self.evaluate_adoption(entry_id, profile, account, now).reasons
    }

    fn evaluate_adoption(
        &self,
        entry_id: &EntryId,
        profile: &ProfileId,
        account: &str,
        now: ClockReading,
    ) -> EntryFinding {
        let at = self.evaluation_time(now);
        // Programs are launched, and have no account of their own.
        let entry = self.policy.entry(entry_id).filter(|entry| entry.slot == EntrySlot::Login);
        match entry {
            Some(entry) => {
                let facts = EvaluationContext { account: Some(account), ..self.evaluation_context(at) };
                facts.evaluate(profile, entry, at, &mut NoObserver)
            }
            None => EntryFinding {
                reasons: vec![ReasonCode::UnknownEntry { entry_id: entry_id.clone() }],
                ..EntryFinding::default()
            },
        }
    }

    /// Ends an adopted session whose record could not be written.
    pub(super) fn withdraw_adoption(&mut self, session_id: &SessionId, now: ClockReading) {
        self.observe(now);
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        if session.stage.end_reason().is_none() {
            session.stage.expire(EndReason::Stopped { by: StopRequester::Policy }, now.mono);
            self.order_expiry(session_id, now);
            self.save_snapshot();
        }
    }
}
