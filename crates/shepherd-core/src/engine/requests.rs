//! What children ask for, and how it is answered (S2.7).

use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{AuditKind, EntryScope, GrantKind, TimeRequestState, TimeRequestView};
use shepherd_util::{ClockReading, EntryId, GrantId, ProfileId, RequestId};

use super::errors::GrantError;
use super::grants::NewGrant;
use super::{CoreEngine, CoreEvent, NextChange, POLICY_ACTOR};

/// How long an answered request or a lapsed grant is remembered, for whoever looks back at the week.
const RETENTION: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// A parent reads a few, not a flood.
const MAX_OPEN_REQUESTS: usize = 5;

/// More than a day is no wish but a mistake.
const MAX_REQUESTED_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a request waits for an answer.
const REQUEST_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// A wish of a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTimeRequest {
    /// Its name.
    pub request_id: RequestId,
    /// Who asks.
    pub profile: ProfileId,
    /// For what.
    pub entry_id: EntryId,
    /// How much.
    pub amount: Duration,
    /// Why.
    pub note: Option<String>,
    /// Who asks, for the audit log.
    pub actor: String,
}

impl CoreEngine {
    /// A child asks for time.
    ///
    /// # Errors
    /// When there is no such entry or profile, it is too much, or too many wait for an answer already.
    pub fn request_time(&mut self, new: NewTimeRequest, now: ClockReading) -> Result<(), GrantError> {
        self.observe(now);
        if self.policy.entry(&new.entry_id).is_none() {
            return Err(GrantError::UnknownEntry(new.entry_id));
        }
        if !self.policy.rules().profiles.contains_key(&new.profile) {
            return Err(GrantError::UnknownProfile(new.profile));
        }
        if self.snapshot.requests.iter().any(|known| known.request_id == new.request_id) {
            return Err(GrantError::RequestExists(new.request_id));
        }
        let open = |known: &&TimeRequestView| known.state.is_open() && known.profile == new.profile;
        if self.snapshot.requests.iter().filter(open).count() >= MAX_OPEN_REQUESTS {
            return Err(GrantError::TooManyRequests);
        }
        if new.amount > MAX_REQUESTED_TIME {
            return Err(GrantError::RequestTooLong);
        }
        self.append_audit(
            now,
            &new.actor,
            AuditKind::TimeRequested {
                request_id: new.request_id.clone(),
                entry_id: new.entry_id.clone(),
                profile: new.profile.clone(),
                amount: new.amount.into(),
            },
        );
        self.next_change = NextChange::Unknown;
        self.snapshot.requests.push(TimeRequestView {
            request_id: new.request_id,
            profile: new.profile,
            entry_id: new.entry_id,
            amount: new.amount.into(),
            note: new.note,
            asked_at: now.wall,
            lapses_at: now.wall.checked_add(REQUEST_LIFETIME).unwrap_or(Timestamp::MAX),
            state: TimeRequestState::Asked,
        });
        self.save_snapshot();
        Ok(())
    }

    /// Somebody who may decide has looked at a request.
    ///
    /// # Errors
    /// When there is no such open request.
    pub fn mark_request_seen(
        &mut self,
        request_id: &RequestId,
        actor: &str,
        now: ClockReading,
    ) -> Result<(), GrantError> {
        self.observe(now);
        self.lapse_requests(now);
        if self.open_request(request_id)?.state == TimeRequestState::Asked {
            self.set_request_state(request_id, TimeRequestState::Seen, "seen", actor, now);
        }
        Ok(())
    }

    /// Yes to a request: by a grant of what was asked, or of another amount.
    ///
    /// # Errors
    /// When there is no such open request, or the ceilings forbid the grant.
    pub fn grant_request(
        &mut self,
        request_id: &RequestId,
        amount: Option<Duration>,
        grant_id: GrantId,
        actor: &str,
        now: ClockReading,
    ) -> Result<Vec<CoreEvent>, GrantError> {
        self.observe(now);
        self.lapse_requests(now);
        let request = self.open_request(request_id)?;
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
        let events = self.grant(new, now)?;
        self.set_request_state(request_id, TimeRequestState::Granted { grant_id }, "granted", actor, now);
        Ok(events)
    }

    /// No to a request.
    ///
    /// # Errors
    /// When there is no such open request.
    pub fn deny_request(
        &mut self,
        request_id: &RequestId,
        why: Option<String>,
        actor: &str,
        now: ClockReading,
    ) -> Result<(), GrantError> {
        self.observe(now);
        self.lapse_requests(now);
        self.open_request(request_id)?;
        self.set_request_state(request_id, TimeRequestState::Denied { why }, "denied", actor, now);
        Ok(())
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

    /// Requests that nobody answered lapse; what is long over is forgotten. The audit log forgets nothing.
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
        }
        let old = |over: Timestamp| over.checked_add(RETENTION).is_ok_and(|forgotten| forgotten <= at);
        let (grants, requests) = (self.snapshot.grants.len(), self.snapshot.requests.len());
        self.snapshot.grants.retain(|grant| !old(grant.lapses_at));
        self.snapshot.requests.retain(|request| request.state.is_open() || !old(request.lapses_at));
        if grants != self.snapshot.grants.len() || requests != self.snapshot.requests.len() {
            self.save_snapshot();
        }
    }
}
