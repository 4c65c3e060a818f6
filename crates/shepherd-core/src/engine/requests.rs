//! Time requests of children, and the answers to them (S2.7).

use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{AuditKind, EntryScope, GrantKind, GrantView, TimeRequestState, TimeRequestView};
use shepherd_util::{ClockReading, EntryId, GrantId, ProfileId, RequestId};

use super::errors::GrantError;
use super::grants::{MovedDeadlines, NewGrant};
use super::{CoreEngine, CoreEvent, EngineReply, NextChange, POLICY_ACTOR, ProvisionalGrant};

/// The time for which an answered request or a lapsed grant is kept, so that a parent can look back at the week.
const RETENTION: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// The number of open requests of one profile, so that a parent isn't flooded.
const MAX_OPEN_REQUESTS: usize = 5;

/// The most time that a child can ask for. More than a day is a mistake.
const MAX_REQUESTED_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The time for which a request waits for an answer.
const REQUEST_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// A request of a child for time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTimeRequest {
    pub request_id: RequestId,
    pub profile: ProfileId,
    pub entry_id: EntryId,
    pub amount: Duration,
    pub note: Option<String>,
    /// The client, for the audit log.
    pub actor: String,
}

/// A request that was answered with a grant.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantedRequest {
    pub request: TimeRequestView,
    pub grant: GrantView,
}

impl CoreEngine {
    /// Records a child's request for time. The answer is an error if there is no such entry or profile, the time is too
    /// long, or too many requests of this profile are open.
    pub fn request_time(
        &mut self,
        new: NewTimeRequest,
        now: ClockReading,
    ) -> EngineReply<Result<TimeRequestView, GrantError>> {
        self.observe(now);
        if let Err(error) = self.check_request(&new) {
            return self.answer(Err(error));
        }
        let requested = AuditKind::TimeRequested {
            request_id: new.request_id.clone(),
            entry_id: new.entry_id.clone(),
            profile: new.profile.clone(),
            amount: new.amount.into(),
        };
        self.append_audit(now, &new.actor, requested);
        self.next_change = NextChange::Unknown;
        let request = TimeRequestView {
            request_id: new.request_id,
            profile: new.profile,
            entry_id: new.entry_id,
            amount: new.amount.into(),
            note: new.note,
            asked_at: now.wall,
            lapses_at: now.wall.checked_add(REQUEST_LIFETIME).unwrap_or(Timestamp::MAX),
            state: TimeRequestState::Asked,
        };
        self.snapshot.requests.push(request.clone());
        self.save_snapshot();
        self.announce_request(&request);
        self.answer(Ok(request))
    }

    fn check_request(&self, new: &NewTimeRequest) -> Result<(), GrantError> {
        if self.policy.entry(&new.entry_id).is_none() {
            return Err(GrantError::UnknownEntry(new.entry_id.clone()));
        }
        if !self.policy.rules().profiles.contains_key(&new.profile) {
            return Err(GrantError::UnknownProfile(new.profile.clone()));
        }
        if self.snapshot.requests.iter().any(|known| known.request_id == new.request_id) {
            return Err(GrantError::RequestExists(new.request_id.clone()));
        }
        let open = |known: &&TimeRequestView| known.state.is_open() && known.profile == new.profile;
        if self.snapshot.requests.iter().filter(open).count() >= MAX_OPEN_REQUESTS {
            return Err(GrantError::TooManyRequests);
        }
        if new.amount > MAX_REQUESTED_TIME {
            return Err(GrantError::RequestTooLong);
        }
        Ok(())
    }

    /// Marks a request as seen by an administrator. The answer is an error if there is no such open request.
    pub fn mark_request_seen(
        &mut self,
        request_id: &RequestId,
        actor: &str,
        now: ClockReading,
    ) -> EngineReply<Result<TimeRequestView, GrantError>> {
        self.observe(now);
        self.lapse_requests(now);
        let open = self.open_request(request_id).cloned();
        let seen = open.map(|request| {
            if request.state != TimeRequestState::Asked {
                return request;
            }
            self.set_request_state(request_id, TimeRequestState::Seen, "seen", actor, now);
            TimeRequestView { state: TimeRequestState::Seen, ..request }
        });
        let seen = seen.inspect(|request| self.announce_request(request));
        self.answer(seen)
    }

    /// Answers a request with a grant of the requested time, or of another amount. The answer is an error if there is
    /// no such open request or the ceilings forbid the grant.
    pub fn grant_request(
        &mut self,
        request_id: &RequestId,
        amount: Option<Duration>,
        grant_id: GrantId,
        actor: &str,
        now: ClockReading,
    ) -> EngineReply<Result<GrantedRequest, GrantError>> {
        let granted = self.try_grant_request(request_id, amount, grant_id, actor, now);
        let granted = granted.inspect(|GrantedRequest { request, grant }| {
            self.announce_request(request);
            self.announce(CoreEvent::GrantChanged { grant: Box::new(grant.clone()) });
        });
        self.answer(granted)
    }

    fn try_grant_request(
        &mut self,
        request_id: &RequestId,
        amount: Option<Duration>,
        grant_id: GrantId,
        actor: &str,
        now: ClockReading,
    ) -> Result<GrantedRequest, GrantError> {
        self.observe(now);
        self.lapse_requests(now);
        let request = self.open_request(request_id)?.clone();
        let new = NewGrant {
            grant_id: grant_id.clone(),
            profile: Some(request.profile.clone()),
            scope: EntryScope::Entry { entry_id: request.entry_id.clone() },
            gift: GrantKind::Extra { amount: amount.map_or(request.amount, Into::into) },
            why: request.note.clone(),
            valid_from: None,
            lapses_at: None,
            actor: actor.to_owned(),
        };
        let grant = self.apply_grant(new, &MovedDeadlines::RunOnly, now)?;
        let state = TimeRequestState::Granted { grant_id: grant_id.clone() };
        self.set_request_state(request_id, state.clone(), "granted", actor, now);
        let answered = ProvisionalGrant::RequestAnswer {
            request_id: request_id.clone(),
            before: request.state,
            grant_id,
        };
        self.effects.grant_provisionally(answered);
        Ok(GrantedRequest { request: TimeRequestView { state, ..request }, grant })
    }

    /// Denies a request. The answer is an error if there is no such open request.
    pub fn deny_request(
        &mut self,
        request_id: &RequestId,
        why: Option<String>,
        actor: &str,
        now: ClockReading,
    ) -> EngineReply<Result<TimeRequestView, GrantError>> {
        self.observe(now);
        self.lapse_requests(now);
        let open = self.open_request(request_id).cloned();
        let denied = open.map(|request| {
            let state = TimeRequestState::Denied { why };
            self.set_request_state(request_id, state.clone(), "denied", actor, now);
            TimeRequestView { state, ..request }
        });
        let denied = denied.inspect(|request| self.announce_request(request));
        self.answer(denied)
    }

    pub(super) fn announce_request(&mut self, request: &TimeRequestView) {
        self.announce(CoreEvent::RequestChanged { request: Box::new(request.clone()) });
    }

    fn open_request(&self, request_id: &RequestId) -> Result<&TimeRequestView, GrantError> {
        let request = self.snapshot.requests.iter().find(|request| request.request_id == *request_id);
        let request = request.ok_or_else(|| GrantError::UnknownRequest(request_id.clone()))?;
        if request.state.is_open() { Ok(request) } else { Err(GrantError::AlreadyDecided) }
    }

    pub(super) fn set_request_state(
        &mut self,
        request_id: &RequestId,
        state: TimeRequestState,
        word: &str,
        actor: &str,
        now: ClockReading,
    ) {
        let request = self.snapshot.requests.iter_mut().find(|request| request.request_id == *request_id);
        if let Some(request) = request {
            request.state = state;
        }
        let (request_id, decision) = (request_id.clone(), word.to_owned());
        self.append_audit(now, actor, AuditKind::RequestDecided { request_id, decision });
        self.save_snapshot();
    }

    /// Lets unanswered requests lapse, and drops grants and requests that were over long ago. The audit log keeps them.
    pub(super) fn lapse_requests(&mut self, now: ClockReading) {
        let at = self.notification_time(now);
        let late: Vec<RequestId> = self
            .snapshot
            .requests
            .iter()
            .filter(|request| request.state.is_open() && request.lapses_at <= at)
            .map(|request| request.request_id.clone())
            .collect();
        for request_id in late {
            self.set_request_state(&request_id, TimeRequestState::Lapsed, "lapsed", POLICY_ACTOR, now);
            if let Some(lapsed) =
                self.snapshot.requests.iter().find(|request| request.request_id == request_id)
            {
                self.announce_request(&lapsed.clone());
            }
        }
        let old = |over: Timestamp| over.checked_add(RETENTION).is_ok_and(|forgotten| forgotten <= at);
        let (grants, requests) = (self.snapshot.grants.len(), self.snapshot.requests.len());
        self.snapshot.grants.retain(|grant| !old(grant.lapses_at));
        self.snapshot.requests.retain(|request| request.state.is_open() || !old(request.lapses_at));
        let grants_left = &self.snapshot.grants;
        let is_stored = |id: &GrantId| grants_left.iter().any(|grant| grant.grant_id == *id);
        self.snapshot.extra_runs.retain(|known| is_stored(&known.grant_id));
        if grants != self.snapshot.grants.len() || requests != self.snapshot.requests.len() {
            self.save_snapshot();
        }
    }
}
