//! Time that clients ask for, give and take back (S2.7).

use std::time::Duration;

use shepherd_api::{CommandReply, EventKind, TimeRequestDecision};
use shepherd_core::{NewGrant, NewTimeRequest, UndoAction};
use shepherd_util::{EntryId, GrantId, ProfileId, RequestId};

use super::{RequestContext, random_id_bits};
use crate::service::DaemonService;
use crate::service::effects::CommandEffects;
use crate::service::profile_choice::resolve_profile;

/// What a child asks the parents for.
pub(super) struct TimeRequestParams {
    pub(super) entry_id: EntryId,
    pub(super) minutes: u32,
    pub(super) note: Option<String>,
    pub(super) profile: Option<ProfileId>,
}

impl DaemonService {
    pub(super) fn extend(&mut self, request: &RequestContext, by: Duration) {
        let (now, grant_id) = (request.now, GrantId::from_random(random_id_bits()));
        match self.engine.extend_current(by, &grant_id, &request.actor(), now) {
            Ok(events) => {
                let Some(session) = self.engine.session_view(now) else {
                    return self.respond_result_missing(request);
                };
                let told = self.engine.find_grant(&grant_id).map(|grant| EventKind::GrantChanged { grant });
                let outcome =
                    CommandEffects::new(CommandReply::Extended { session }, events).with_announcements(told);
                self.commit_effects(
                    request.reply_to.clone(),
                    outcome.with_undo(UndoAction::Grant(grant_id)),
                    now,
                );
            }
            Err(error) => self.commit_and_refuse(request, error.into()),
        }
    }

    pub(super) fn grant(&mut self, request: &RequestContext, new: NewGrant) {
        let (now, grant_id) = (request.now, new.grant_id.clone());
        match self.engine.grant(new, now) {
            Ok(events) => {
                let Some(grant) = self.engine.find_grant(&grant_id) else {
                    return self.respond_result_missing(request);
                };
                let told = EventKind::GrantChanged { grant: grant.clone() };
                let outcome =
                    CommandEffects::new(CommandReply::Grant { grant }, events).with_announcements([told]);
                self.commit_effects(
                    request.reply_to.clone(),
                    outcome.with_undo(UndoAction::Grant(grant_id)),
                    now,
                );
            }
            Err(error) => self.commit_and_refuse(request, error.into()),
        }
    }

    pub(super) fn revoke(&mut self, request: &RequestContext, grant_id: &GrantId) {
        let now = request.now;
        match self.engine.revoke(grant_id, &request.actor(), now) {
            Ok(events) => {
                let Some(grant) = self.engine.find_grant(grant_id) else {
                    return self.respond_result_missing(request);
                };
                let told = EventKind::GrantChanged { grant: grant.clone() };
                let outcome =
                    CommandEffects::new(CommandReply::Grant { grant }, events).with_announcements([told]);
                self.commit_effects(request.reply_to.clone(), outcome, now);
            }
            Err(error) => self.refuse_and_record(request, "revoke_grant", error.into()),
        }
    }

    pub(super) fn request_time(&mut self, request: &RequestContext, wish: TimeRequestParams) {
        let now = request.now;
        let profile = match resolve_profile(&request.client, wish.profile.as_ref(), self.engine.policy()) {
            Ok(profile) => profile,
            Err(error) => return self.refuse_and_record(request, "request_time", error),
        };
        let request_id = RequestId::from_random(random_id_bits());
        let new = NewTimeRequest {
            request_id: request_id.clone(),
            profile,
            entry_id: wish.entry_id,
            amount: Duration::from_secs(u64::from(wish.minutes) * 60),
            note: wish.note,
            actor: request.actor(),
        };
        match self.engine.request_time(new, now) {
            Ok(()) => self.respond_with_request(request, &request_id),
            Err(error) => self.refuse_and_record(request, "request_time", error.into()),
        }
    }

    pub(super) fn mark_seen(&mut self, request: &RequestContext, request_id: &RequestId) {
        match self.engine.mark_request_seen(request_id, &request.actor(), request.now) {
            Ok(()) => self.respond_with_request(request, request_id),
            Err(error) => self.refuse_and_record(request, "mark_request_seen", error.into()),
        }
    }

    fn respond_with_request(&mut self, request: &RequestContext, request_id: &RequestId) {
        let Some(view) = self.engine.find_request(request_id) else {
            return self.respond_result_missing(request);
        };
        let told = EventKind::RequestChanged { request: view.clone() };
        let outcome = CommandEffects::new(CommandReply::Request { request: view }, Vec::new())
            .with_announcements([told]);
        self.commit_effects(request.reply_to.clone(), outcome, request.now);
    }

    pub(super) fn decide(
        &mut self,
        request: &RequestContext,
        request_id: &RequestId,
        decision: TimeRequestDecision,
    ) {
        let (now, actor, grant_id) = (request.now, request.actor(), GrantId::from_random(random_id_bits()));
        let before = self.engine.find_request(request_id).map(|view| view.state);
        let decided = match decision {
            TimeRequestDecision::Grant { minutes } => {
                let amount = minutes.map(|minutes| Duration::from_secs(u64::from(minutes) * 60));
                self.engine.grant_request(request_id, amount, grant_id.clone(), &actor, now)
            }
            TimeRequestDecision::Deny { why } => {
                self.engine.deny_request(request_id, why.map(Into::into), &actor, now).map(|()| Vec::new())
            }
        };
        match decided {
            Ok(events) => {
                let Some(view) = self.engine.find_request(request_id) else {
                    return self.respond_result_missing(request);
                };
                let grant = self.engine.find_grant(&grant_id);
                let undo = match (&grant, before) {
                    (Some(_), Some(before)) => {
                        UndoAction::RequestAnswer { request_id: request_id.clone(), before, grant_id }
                    }
                    // A no holds, whether it is on record or not.
                    _ => UndoAction::Nothing,
                };
                let told = EventKind::RequestChanged { request: view.clone() };
                let given = grant.clone().map(|grant| EventKind::GrantChanged { grant });
                let outcome = CommandEffects::new(CommandReply::Decided { request: view, grant }, events);
                let outcome = outcome.with_announcements([told].into_iter().chain(given)).with_undo(undo);
                self.commit_effects(request.reply_to.clone(), outcome, now);
            }
            Err(error) => self.commit_and_refuse(request, error.into()),
        }
    }
}
