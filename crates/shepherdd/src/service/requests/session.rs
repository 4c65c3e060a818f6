//! Acts about the session: launch and stop.

use shepherd_api::{ApiError, ClientRole, CommandReply, ErrorCode, StopMode, StopRequester};
use shepherd_core::{EngineReply, LaunchDecision, LaunchRequest, StopDecision, StopRequest, UserDisplay};
use shepherd_util::{ProfileId, SessionId};

use super::command_kind::LaunchParams;
use super::{ReplyResult, RequestContext, random_id_bits};
use crate::service::DaemonService;
use crate::service::profile_choice::resolve_profile;

impl DaemonService {
    pub(super) fn launch(&mut self, request: &RequestContext, params: LaunchParams) {
        let now = request.now;
        let LaunchParams { entry_id, profile: named, display } = params;
        let profile = match resolve_profile(&request.client, named.as_ref(), self.engine.policy()) {
            Ok(profile) => profile,
            Err(error) => return self.refuse_and_record(request, "launch", error),
        };
        let launch = LaunchRequest {
            entry_id,
            profile: Some(profile),
            session_id: SessionId::from_random(random_id_bits()),
            actor: request.actor(),
            display: display.and_then(|named| UserDisplay::from_client(&named, request.client.peer.uid)),
        };
        let EngineReply { answer, effects } = self.engine.request_launch(&launch, now);
        match answer {
            LaunchDecision::Approved(plan) => {
                self.metrics.launches_approved.inc();
                let reply = CommandReply::Launched { session: plan.session_view(now.mono) };
                self.carry_out_and_reply(effects, &request.reply_to, reply, now);
            }
            LaunchDecision::Denied { reasons } => {
                self.metrics.launches_denied.inc();
                self.record_denial(request.client.peer.uid, effects, now);
                self.respond(&request.reply_to, Err(self.engine.denial_error(reasons)));
            }
        }
    }

    /// Stops the session immediately, even if that can't be recorded.
    pub(super) fn stop_current(&mut self, request: &RequestContext, mode: StopMode) -> ReplyResult {
        let now = request.now;
        let session = self.engine.session_view(now).ok_or_else(no_session_error)?;
        let by = match request.client.role {
            ClientRole::Admin => StopRequester::Admin,
            ClientRole::Observer | ClientRole::Shell => StopRequester::User,
        };
        if by == StopRequester::User && !self.may_use_profile(request, &session.profile) {
            let code = request.client.refusal_code(ClientRole::Admin);
            let error = ApiError::new(code, "This session belongs to another profile.");
            self.record_refusal(request, "stop_current", &error);
            return Err(error);
        }
        let stop = StopRequest { by, mode, actor: request.actor() };
        let EngineReply { answer, effects } = self.engine.stop_current(&stop, now);
        self.carry_out(effects, now);
        match answer {
            StopDecision::Stop { session_id, .. } => Ok(CommandReply::Stopping { session_id }),
            StopDecision::NothingToStop => Err(no_session_error()),
        }
    }

    /// Returns whether the client may act for a profile. Every client may act for a profile that the policy no longer
    /// has.
    fn may_use_profile(&self, request: &RequestContext, profile: &ProfileId) -> bool {
        let resolved = resolve_profile(&request.client, Some(profile), self.engine.policy());
        !resolved.is_err_and(|error| matches!(error.code, ErrorCode::NotPermitted | ErrorCode::PinRequired))
    }
}

fn no_session_error() -> ApiError {
    ApiError::new(ErrorCode::NoSession, "Nothing is running.")
}
