//! What children ask for, and how it is answered (S2.7).

use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{AuditKind, Gift, RequestState, RequestView, Scope};
use shepherd_util::{EntryId, GrantId, Now, ProfileId, RequestId};

use super::gifts::NewGrant;
use super::refusal::GiftError;
use super::{CoreEngine, CoreEvent, NextChange, POLICY};

/// How long an answered request or a lapsed grant is remembered, for whoever looks back at the week.
const REMEMBERED: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// A parent reads a few, not a flood.
const MAX_OPEN_REQUESTS: usize = 5;

/// More than a day is no wish but a mistake.
const MAX_REQUEST: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a request waits for an answer.
const REQUEST_LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// A wish of a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRequest {
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
    pub fn request_time(&mut self, new: NewRequest, now: Now) -> Result<(), GiftError> {
        self.observe(now);
        if self.policy.entry(&new.entry_id).is_none() {
            return Err(GiftError::UnknownEntry(new.entry_id));
        }
        if !self.policy.rules().profiles.contains_key(&new.profile) {
            return Err(GiftError::UnknownProfile(new.profile));
        }
        if self.snapshot.requests.iter().any(|known| known.request_id == new.request_id) {
            return Err(GiftError::RequestExists(new.request_id));
        }
        let open = |known: &&RequestView| known.state.is_open() && known.profile == new.profile;
        if self.snapshot.requests.iter().filter(open).count() >= MAX_OPEN_REQUESTS {
            return Err(GiftError::TooManyRequests);
        }
        if new.amount > MAX_REQUEST {
            return Err(GiftError::RequestTooLong);
        }
        self.audit(
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
        self.snapshot.requests.push(RequestView {
            request_id: new.request_id,
            profile: new.profile,
            entry_id: new.entry_id,
            amount: new.amount.into(),
            note: new.note,
            asked_at: now.wall,
            lapses_at: now.wall.checked_add(REQUEST_LIFE).unwrap_or(Timestamp::MAX),
            state: RequestState::Asked,
        });
        self.save();
        Ok(())
    }

    /// Somebody who may decide has looked at a request.
    ///
    /// # Errors
    /// When there is no such open request.
    pub fn see_request(&mut self, request_id: &RequestId, actor: &str, now: Now) -> Result<(), GiftError> {
        self.observe(now);
        self.lapse(now);
        if self.open_request(request_id)?.state == RequestState::Asked {
            self.decide(request_id, RequestState::Seen, "seen", actor, now);
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
        now: Now,
    ) -> Result<Vec<CoreEvent>, GiftError> {
        self.observe(now);
        self.lapse(now);
        let request = self.open_request(request_id)?;
        let new = NewGrant {
            grant_id: grant_id.clone(),
            profile: Some(request.profile.clone()),
            scope: Scope::Entry { entry_id: request.entry_id.clone() },
            gift: Gift::Extra { amount: amount.map_or(request.amount, Into::into) },
            why: request.note.clone(),
            valid_from: None,
            lapses_at: None,
            actor: actor.to_owned(),
        };
        let events = self.grant(new, now)?;
        self.decide(request_id, RequestState::Granted { grant_id }, "granted", actor, now);
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
        now: Now,
    ) -> Result<(), GiftError> {
        self.observe(now);
        self.lapse(now);
        self.open_request(request_id)?;
        self.decide(request_id, RequestState::Denied { why }, "denied", actor, now);
        Ok(())
    }

    fn open_request(&self, request_id: &RequestId) -> Result<&RequestView, GiftError> {
        let request = self.snapshot.requests.iter().find(|request| request.request_id == *request_id);
        let request = request.ok_or_else(|| GiftError::UnknownRequest(request_id.clone()))?;
        if request.state.is_open() { Ok(request) } else { Err(GiftError::Decided) }
    }

    pub(super) fn decide(
        &mut self,
        request_id: &RequestId,
        state: RequestState,
        word: &str,
        actor: &str,
        now: Now,
    ) {
        let request = self.snapshot.requests.iter_mut().find(|request| request.request_id == *request_id);
        if let Some(request) = request {
            request.state = state;
        }
        let (request_id, decision) = (request_id.clone(), word.to_owned());
        self.audit(now, actor, AuditKind::RequestDecided { request_id, decision });
        self.save();
    }

    /// Requests that nobody answered lapse; what is long over is forgotten. The audit log forgets nothing.
    pub(super) fn lapse(&mut self, now: Now) {
        let at = self.told_by(now);
        let late: Vec<RequestId> = self
            .snapshot
            .requests
            .iter()
            .filter(|request| request.state.is_open() && request.lapses_at <= at)
            .map(|request| request.request_id.clone())
            .collect();
        for request_id in late {
            self.decide(&request_id, RequestState::Lapsed, "lapsed", POLICY, now);
        }
        let old = |over: Timestamp| over.checked_add(REMEMBERED).is_ok_and(|forgotten| forgotten <= at);
        let (grants, requests) = (self.snapshot.grants.len(), self.snapshot.requests.len());
        self.snapshot.grants.retain(|grant| !old(grant.lapses_at));
        self.snapshot.requests.retain(|request| request.state.is_open() || !old(request.lapses_at));
        if grants != self.snapshot.grants.len() || requests != self.snapshot.requests.len() {
            self.save();
        }
    }
}
