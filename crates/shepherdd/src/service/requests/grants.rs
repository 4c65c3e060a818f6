//! Acts about time: extensions, grants, and time requests (S2.7).

use std::time::Duration;

use shepherd_api::{CommandReply, TimeRequestDecision};
use shepherd_core::{NewGrant, NewTimeRequest};
use shepherd_util::{GrantId, RequestId, SessionId};

use super::command_kind::{GrantParams, TimeRequestParams};
use super::{RefusalRecorder, RequestContext, random_id_bits};
use crate::service::DaemonService;
use crate::service::profile_choice::resolve_profile;

impl DaemonService {
    pub(super) fn extend(&mut self, request: &RequestContext, named: Option<&SessionId>, by: Duration) {
        let session_id = match self.find_session(request, named) {
            Ok(session_id) => session_id,
            Err(error) => return self.refuse_and_record(request, "extend_current", error),
        };
        let (grant_id, actor) = (new_grant_id(), request.actor());
        let outcome = self.engine.extend_session(&session_id, by, &grant_id, &actor, request.now);
        self.conclude(request, outcome, RefusalRecorder::Engine, |extended| CommandReply::Extended {
            session: extended.session,
        });
    }

    pub(super) fn grant(&mut self, request: &RequestContext, params: GrantParams) {
        let GrantParams { profile, scope, gift, valid_from, lapses_at, why } = params;
        let (grant_id, actor) = (new_grant_id(), request.actor());
        let new = NewGrant { grant_id, profile, scope, gift, why, valid_from, lapses_at, actor };
        let outcome = self.engine.grant(new, request.now);
        self.conclude(request, outcome, RefusalRecorder::Engine, |grant| CommandReply::Grant { grant });
    }

    pub(super) fn revoke(&mut self, request: &RequestContext, grant_id: &GrantId) {
        let outcome = self.engine.revoke(grant_id, &request.actor(), request.now);
        let recorder = RefusalRecorder::Daemon("revoke_grant");
        self.conclude(request, outcome, recorder, |grant| CommandReply::Grant { grant });
    }

    pub(super) fn request_time(&mut self, request: &RequestContext, params: TimeRequestParams) {
        let profile = match resolve_profile(&request.client, params.profile.as_ref(), self.engine.policy()) {
            Ok(profile) => profile,
            Err(error) => return self.refuse_and_record(request, "request_time", error),
        };
        let new = NewTimeRequest {
            request_id: RequestId::from_random(random_id_bits()),
            profile,
            entry_id: params.entry_id,
            amount: duration_of_minutes(params.minutes),
            note: params.note,
            actor: request.actor(),
        };
        let outcome = self.engine.request_time(new, request.now);
        let recorder = RefusalRecorder::Daemon("request_time");
        self.conclude(request, outcome, recorder, |request| CommandReply::Request { request });
    }

    pub(super) fn mark_request_seen(&mut self, request: &RequestContext, request_id: &RequestId) {
        let outcome = self.engine.mark_request_seen(request_id, &request.actor(), request.now);
        let recorder = RefusalRecorder::Daemon("mark_request_seen");
        self.conclude(request, outcome, recorder, |request| CommandReply::Request { request });
    }

    pub(super) fn decide_request(
        &mut self,
        request: &RequestContext,
        request_id: &RequestId,
        decision: TimeRequestDecision,
    ) {
        let (now, actor) = (request.now, request.actor());
        match decision {
            TimeRequestDecision::Grant { minutes } => {
                let amount = minutes.map(duration_of_minutes);
                let outcome = self.engine.grant_request(request_id, amount, new_grant_id(), &actor, now);
                self.conclude(request, outcome, RefusalRecorder::Engine, |granted| CommandReply::Decided {
                    request: granted.request,
                    grant: Some(granted.grant),
                });
            }
            TimeRequestDecision::Deny { why } => {
                let outcome = self.engine.deny_request(request_id, why.map(Into::into), &actor, now);
                self.conclude(request, outcome, RefusalRecorder::Engine, |request| CommandReply::Decided {
                    request,
                    grant: None,
                });
            }
        }
    }
}

fn new_grant_id() -> GrantId {
    GrantId::from_random(random_id_bits())
}

fn duration_of_minutes(minutes: u32) -> Duration {
    Duration::from_secs(u64::from(minutes) * 60)
}
