//! Sessions that clients start and stop.

use std::time::Duration;

use shepherd_api::{ApiError, ClientRole, CommandReply, ErrorCode, EventKind, StopMode, StopRequester};
use shepherd_core::{CoreEvent, LaunchDecision, LaunchRequest, StopDecision, StopRequest};
use shepherd_host_api::{HostSpawnRequest, HostStopRequest};
use shepherd_util::{EntryId, ProfileId, SessionId};

use super::{ReplyResult, RequestContext, random_id_bits};
use crate::service::DaemonService;
use crate::service::effects::CommandEffects;
use crate::service::profile_choice::resolve_profile;

impl DaemonService {
    pub(super) fn launch(&mut self, request: &RequestContext, entry_id: EntryId, named: Option<&ProfileId>) {
        let now = request.now;
        let profile = match resolve_profile(&request.client, named, self.engine.policy()) {
            Ok(profile) => profile,
            Err(error) => return self.refuse_and_record(request, "launch", error),
        };
        let wish = LaunchRequest {
            entry_id,
            profile: Some(profile.clone()),
            session_id: SessionId::from_random(random_id_bits()),
            actor: request.actor(),
        };
        match self.engine.request_launch(&wish, now) {
            LaunchDecision::Approved(plan) => {
                let Some(session) = self.engine.session_view(now) else {
                    return self.respond_result_missing(request);
                };
                let mut entry = plan.entry;
                // Whoever is not root can run a program as nobody else.
                if rustix::process::geteuid().is_root() {
                    let account = self.engine.policy().system_account(&entry, &profile).map(str::to_owned);
                    entry.run.user = account;
                }
                let order = HostSpawnRequest { session_id: plan.session_id, entry, profile };
                let told = EventKind::SessionLaunching { session: session.clone() };
                let outcome = CommandEffects::new(CommandReply::Launched { session }, Vec::new());
                self.metrics.launches_approved.inc();
                self.commit_effects(
                    request.reply_to.clone(),
                    outcome.with_announcements([told]).with_spawn(order),
                    now,
                );
            }
            LaunchDecision::Denied { reasons } => {
                self.metrics.launches_denied.inc();
                self.record_denial(request.client.peer.uid, now);
                self.respond(&request.reply_to, Err(self.engine.denial_error(reasons)));
            }
        }
    }

    pub(super) fn stop_current(&mut self, request: &RequestContext, mode: StopMode) -> ReplyResult {
        let now = request.now;
        let session = self.engine.session_view(now).ok_or_else(no_session_error)?;
        let whose = resolve_profile(&request.client, Some(&session.profile), self.engine.policy());
        // One whose profile the policy has no more is nobody's in particular.
        let own = !whose.is_err_and(|error| is_permission_error(error.code));
        let by =
            if request.client.role == ClientRole::Admin { StopRequester::Admin } else { StopRequester::User };
        if by == StopRequester::User && !own {
            let code = request.client.refusal_code(ClientRole::Admin);
            let error = ApiError::new(code, "This session is somebody else's.");
            self.record_refusal(request, "stop_current", &error);
            return Err(error);
        }
        let stop = StopRequest { by, mode, actor: request.actor() };
        let StopDecision::Stop { session_id, mode, grace } = self.engine.stop_current(&stop, now) else {
            return Err(no_session_error());
        };
        let grace = if mode == StopMode::Force { Duration::ZERO } else { grace };
        self.host.stop(HostStopRequest { session_id: session_id.clone(), grace });
        let told = self.engine.event_kind(&CoreEvent::ExpireDue { session_id: session_id.clone() }, now);
        self.apply_events(Vec::new(), now);
        self.broadcast(vec![told], now);
        Ok(CommandReply::Stopping { session_id })
    }
}

fn no_session_error() -> ApiError {
    ApiError::new(ErrorCode::NoSession, "Nothing is running.")
}

/// Whether a profile was refused because it is somebody else's.
fn is_permission_error(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::NotPermitted | ErrorCode::PinRequired)
}
