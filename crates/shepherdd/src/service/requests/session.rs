//! Acts about sessions: launch and stop.

use shepherd_api::{ApiError, ClientRole, CommandReply, ErrorCode, StopMode, StopRequester};
use shepherd_core::{
    EngineReply, LaunchDecision, LaunchRequest, SessionRecord, StopDecision, StopRequest, UserDisplay,
};
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
                self.respond(&request.reply_to, Err(self.denial_error(reasons)));
            }
        }
    }

    /// Stops a session immediately, even if that can't be recorded.
    pub(super) fn stop_session(
        &mut self,
        request: &RequestContext,
        named: Option<&SessionId>,
        mode: StopMode,
    ) -> ReplyResult {
        let now = request.now;
        let session_id = self.find_session(request, named)?;
        let session = self.engine.sessions().get(&session_id).ok_or_else(no_session_error)?;
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
        let EngineReply { answer, effects } = self.engine.stop_session(&session_id, &stop, now);
        self.carry_out(effects, now);
        match answer {
            StopDecision::Stop { session_id, .. } => Ok(CommandReply::Stopping { session_id }),
            StopDecision::NothingToStop => Err(no_session_error()),
        }
    }

    /// Returns the session that a command is for: the one that it names, or the one that is meant if it names none. Of
    /// several sessions, that is the one in the foreground of the client's profile, or the only one in the foreground.
    pub(super) fn find_session(
        &self,
        request: &RequestContext,
        named: Option<&SessionId>,
    ) -> Result<SessionId, ApiError> {
        let sessions = self.engine.sessions();
        if let Some(named) = named {
            let unknown = || ApiError::new(ErrorCode::UnknownSession, "There is no such session.");
            return sessions.get(named).map(|session| session.session_id.clone()).ok_or_else(unknown);
        }
        let is_own = |session: &&SessionRecord| request.client.profile.as_ref() == Some(&session.profile);
        let own: Vec<&SessionRecord> = sessions.iter().filter(is_own).collect();
        let mut meant = if own.is_empty() { sessions.iter().collect() } else { own };
        if meant.iter().any(|session| session.slot.is_foreground()) {
            meant.retain(|session| session.slot.is_foreground());
        }
        match meant.as_slice() {
            [] => Err(no_session_error()),
            [session] => Ok(session.session_id.clone()),
            several => Err(self.several_sessions_error(several)),
        }
    }

    fn several_sessions_error(&self, sessions: &[&SessionRecord]) -> ApiError {
        let profiles = &self.engine.policy().rules().profiles;
        let describe = |session: &&SessionRecord| {
            let profile = profiles.get(&session.profile).map(|profile| profile.label.as_str());
            let profile = profile.unwrap_or(session.profile.as_str());
            format!("{} of {profile}", session.label)
        };
        let listed: Vec<String> = sessions.iter().map(describe).collect();
        let sentence = format!("Several programs are running. Choose one: {}.", listed.join(", "));
        ApiError::new(ErrorCode::SeveralSessions, sentence)
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
