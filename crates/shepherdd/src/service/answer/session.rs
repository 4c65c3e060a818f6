//! Sessions that clients start and stop.

use std::time::Duration;

use shepherd_api::{ApiError, ErrorCode, EventKind, Reply, Role, StopMode, StopRequester};
use shepherd_core::{CoreEvent, LaunchDecision, LaunchRequest, StopDecision, StopRequest};
use shepherd_host_api::{SpawnOrder, StopOrder};
use shepherd_util::{EntryId, ProfileId, SessionId};

use super::{Answer, Request, random};
use crate::service::Service;
use crate::service::carry_out::Outcome;
use crate::service::who::profile_of;

impl Service {
    pub(super) fn launch(&mut self, request: &Request, entry_id: EntryId, named: Option<&ProfileId>) {
        let now = request.now;
        let profile = match profile_of(&request.client, named, self.engine.policy()) {
            Ok(profile) => profile,
            Err(error) => return self.turn_away(request, "launch", error),
        };
        let wish = LaunchRequest {
            entry_id,
            profile: Some(profile.clone()),
            session_id: SessionId::from_random(random()),
            actor: request.actor(),
        };
        match self.engine.request_launch(&wish, now) {
            LaunchDecision::Approved(plan) => {
                let Some(session) = self.engine.session_view(now) else { return self.lost(request) };
                let mut entry = plan.entry;
                // Whoever is not root can run a program as nobody else.
                if rustix::process::geteuid().is_root() {
                    let account = self.engine.policy().account_of(&entry, &profile).map(str::to_owned);
                    entry.run.user = account;
                }
                let order = SpawnOrder { session_id: plan.session_id, entry, profile };
                let told = EventKind::SessionLaunching { session: session.clone() };
                let outcome = Outcome::new(Reply::Launched { session }, Vec::new());
                self.metrics.launches_approved.inc();
                self.carry_out_for(request.to.clone(), outcome.telling([told]).starting(order), now);
            }
            LaunchDecision::Denied { reasons } => {
                self.metrics.launches_denied.inc();
                self.record_denial(request.client.peer.uid, now);
                self.respond(&request.to, Err(self.engine.denial(reasons)));
            }
        }
    }

    pub(super) fn stop_current(&mut self, request: &Request, mode: StopMode) -> Answer {
        let now = request.now;
        let session = self.engine.session_view(now).ok_or_else(no_session)?;
        let whose = profile_of(&request.client, Some(&session.profile), self.engine.policy());
        // One whose profile the policy has no more is nobody's in particular.
        let own = !whose.is_err_and(|error| is_not_theirs(error.code));
        let by = if request.client.role == Role::Admin { StopRequester::Admin } else { StopRequester::User };
        if by == StopRequester::User && !own {
            let code = request.client.refusal_for_want_of(Role::Admin);
            let error = ApiError::new(code, "This session is somebody else's.");
            self.note_refusal(request, "stop_current", &error);
            return Err(error);
        }
        let stop = StopRequest { by, mode, actor: request.actor() };
        let StopDecision::Stop { session_id, mode, grace } = self.engine.stop_current(&stop, now) else {
            return Err(no_session());
        };
        let grace = if mode == StopMode::Force { Duration::ZERO } else { grace };
        self.host.stop(StopOrder { session_id: session_id.clone(), grace });
        let told = self.engine.event_kind(&CoreEvent::ExpireDue { session_id: session_id.clone() }, now);
        self.carry_out(Vec::new(), now);
        self.tell(vec![told], now);
        Ok(Reply::Stopping { session_id })
    }
}

fn no_session() -> ApiError {
    ApiError::new(ErrorCode::NoSession, "Nothing is running.")
}

/// Whether a profile was refused because it is somebody else's.
fn is_not_theirs(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::NotPermitted | ErrorCode::PinRequired)
}
