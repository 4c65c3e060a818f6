//! Time that clients ask for, give and take back (S2.7).

use std::time::Duration;

use shepherd_api::{Decision, EventKind, Reply};
use shepherd_core::{NewGrant, NewRequest, Undo};
use shepherd_util::{EntryId, GrantId, ProfileId, RequestId};

use super::{Request, random};
use crate::service::Service;
use crate::service::carry_out::Outcome;
use crate::service::who::profile_of;

/// What a child asks the parents for.
pub(super) struct Wish {
    pub(super) entry_id: EntryId,
    pub(super) minutes: u32,
    pub(super) note: Option<String>,
    pub(super) profile: Option<ProfileId>,
}

impl Service {
    pub(super) fn extend(&mut self, request: &Request, by: Duration) {
        let (now, grant_id) = (request.now, GrantId::from_random(random()));
        match self.engine.extend_current(by, &grant_id, &request.actor(), now) {
            Ok(events) => {
                let Some(session) = self.engine.session_view(now) else { return self.lost(request) };
                let told = self.engine.find_grant(&grant_id).map(|grant| EventKind::GrantChanged { grant });
                let outcome = Outcome::new(Reply::Extended { session }, events).telling(told);
                self.carry_out_for(request.to.clone(), outcome.giving(Undo::Grant(grant_id)), now);
            }
            Err(error) => self.refuse(request, error.into()),
        }
    }

    pub(super) fn grant(&mut self, request: &Request, new: NewGrant) {
        let (now, grant_id) = (request.now, new.grant_id.clone());
        match self.engine.grant(new, now) {
            Ok(events) => {
                let Some(grant) = self.engine.find_grant(&grant_id) else { return self.lost(request) };
                let told = EventKind::GrantChanged { grant: grant.clone() };
                let outcome = Outcome::new(Reply::Grant { grant }, events).telling([told]);
                self.carry_out_for(request.to.clone(), outcome.giving(Undo::Grant(grant_id)), now);
            }
            Err(error) => self.refuse(request, error.into()),
        }
    }

    pub(super) fn revoke(&mut self, request: &Request, grant_id: &GrantId) {
        let now = request.now;
        match self.engine.revoke(grant_id, &request.actor(), now) {
            Ok(events) => {
                let Some(grant) = self.engine.find_grant(grant_id) else { return self.lost(request) };
                let told = EventKind::GrantChanged { grant: grant.clone() };
                let outcome = Outcome::new(Reply::Grant { grant }, events).telling([told]);
                self.carry_out_for(request.to.clone(), outcome, now);
            }
            Err(error) => self.turn_away(request, "revoke_grant", error.into()),
        }
    }

    pub(super) fn request_time(&mut self, request: &Request, wish: Wish) {
        let now = request.now;
        let profile = match profile_of(&request.client, wish.profile.as_ref(), self.engine.policy()) {
            Ok(profile) => profile,
            Err(error) => return self.turn_away(request, "request_time", error),
        };
        let request_id = RequestId::from_random(random());
        let new = NewRequest {
            request_id: request_id.clone(),
            profile,
            entry_id: wish.entry_id,
            amount: Duration::from_secs(u64::from(wish.minutes) * 60),
            note: wish.note,
            actor: request.actor(),
        };
        match self.engine.request_time(new, now) {
            Ok(()) => self.answer_with_request(request, &request_id),
            Err(error) => self.turn_away(request, "request_time", error.into()),
        }
    }

    pub(super) fn mark_seen(&mut self, request: &Request, request_id: &RequestId) {
        match self.engine.see_request(request_id, &request.actor(), request.now) {
            Ok(()) => self.answer_with_request(request, request_id),
            Err(error) => self.turn_away(request, "mark_request_seen", error.into()),
        }
    }

    fn answer_with_request(&mut self, request: &Request, request_id: &RequestId) {
        let Some(view) = self.engine.find_request(request_id) else { return self.lost(request) };
        let told = EventKind::RequestChanged { request: view.clone() };
        let outcome = Outcome::new(Reply::Request { request: view }, Vec::new()).telling([told]);
        self.carry_out_for(request.to.clone(), outcome, request.now);
    }

    pub(super) fn decide(&mut self, request: &Request, request_id: &RequestId, decision: Decision) {
        let (now, actor, grant_id) = (request.now, request.actor(), GrantId::from_random(random()));
        let before = self.engine.find_request(request_id).map(|view| view.state);
        let decided = match decision {
            Decision::Grant { minutes } => {
                let amount = minutes.map(|minutes| Duration::from_secs(u64::from(minutes) * 60));
                self.engine.grant_request(request_id, amount, grant_id.clone(), &actor, now)
            }
            Decision::Deny { why } => {
                self.engine.deny_request(request_id, why.map(Into::into), &actor, now).map(|()| Vec::new())
            }
        };
        match decided {
            Ok(events) => {
                let Some(view) = self.engine.find_request(request_id) else { return self.lost(request) };
                let grant = self.engine.find_grant(&grant_id);
                let undo = match (&grant, before) {
                    (Some(_), Some(before)) => {
                        Undo::Answer { request_id: request_id.clone(), before, grant_id }
                    }
                    // A no holds, whether it is on record or not.
                    _ => Undo::Nothing,
                };
                let told = EventKind::RequestChanged { request: view.clone() };
                let given = grant.clone().map(|grant| EventKind::GrantChanged { grant });
                let outcome = Outcome::new(Reply::Decided { request: view, grant }, events);
                let outcome = outcome.telling([told].into_iter().chain(given)).giving(undo);
                self.carry_out_for(request.to.clone(), outcome, now);
            }
            Err(error) => self.refuse(request, error.into()),
        }
    }
}
