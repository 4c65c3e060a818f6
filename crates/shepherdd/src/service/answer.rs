//! What clients ask for (S10.3). That they may ask was checked before it came here; whose session and whose time it
//! is, is checked here.

use std::time::Duration;

use shepherd_api::{
    ApiError, AuditKind, Command, DaemonStateSnapshot, Decision, ErrorCode, EventKind, Pin, Reply, Role,
    StopMode, StopRequester,
};
use shepherd_core::policy::{Account, Entry};
use shepherd_core::{
    CoreEvent, LaunchDecision, LaunchRequest, NewGrant, NewRequest, StopDecision, StopRequest,
};
use shepherd_host_api::{SpawnOrder, StopOrder};
use shepherd_ipc::{ClientInfo, Incoming, Peer};
use shepherd_util::{EntryId, GrantId, Now, ProfileId, RequestId, SessionId};

use super::carry_out::Granted;
use super::policy::Asked;
use super::who::profile_of;
use super::{RequestAddress, Service};

/// Lines of the audit log in one answer.
const MOST_LINES: u32 = 1_000;

/// What a client did, with who that is.
struct Request {
    client: ClientInfo,
    to: RequestAddress,
    now: Now,
}

type Answer = Result<Reply, ApiError>;

impl Service {
    pub(super) fn incoming(&mut self, incoming: Incoming, now: Now) {
        match incoming {
            Incoming::Request { client, request_id, command } => {
                self.metrics.command(command.name());
                let to = RequestAddress { client_id: client.client_id.clone(), request_id };
                self.request(&Request { client, to, now }, command);
            }
            Incoming::Authenticated { client } => {
                let text = "gave the PIN and is an administrator now".to_owned();
                self.note(&actor(&client.peer, &client.name), AuditKind::Note { text }, now);
            }
            Incoming::Refused { peer, name, command, reason, unrecorded } => {
                let more =
                    if unrecorded > 0 { format!(" ({unrecorded} more before)") } else { String::new() };
                let (command, reason) = (command.to_owned(), format!("{reason}{more}"));
                self.note(&actor(&peer, &name), AuditKind::CommandRefused { command, reason }, now);
            }
            Incoming::NeedsSnapshot { client_id } => {
                let snapshot = self.engine.get_state(now);
                self.clients.resync(&client_id, snapshot);
            }
        }
    }

    /// Answers at once, unless the answer has to wait for the disk or another thread.
    fn request(&mut self, request: &Request, command: Command) {
        let answer = match command {
            Command::Launch { entry_id, profile } => return self.launch(request, entry_id, profile.as_ref()),
            Command::StopCurrent { mode } => self.stop_current(request, mode),
            Command::ReloadConfig {} => return self.read_policy(request.asked()),
            Command::SetPolicy { text } => return self.set_policy(text, request.asked()),
            Command::ExtendCurrent { by } => return self.extend(request, by.into()),
            Command::RequestTime { entry_id, minutes, note, profile } => {
                let wish = Wish { entry_id, minutes, note: note.map(Into::into), profile };
                return self.request_time(request, wish);
            }
            Command::MarkRequestSeen { request_id } => return self.mark_seen(request, &request_id),
            Command::DecideRequest { request_id, decision } => {
                return self.decide(request, &request_id, decision);
            }
            Command::Grant { profile, scope, gift, valid_from, lapses_at, why } => {
                let (grant_id, actor) = (GrantId::from_random(random()), request.actor());
                let why = why.map(Into::into);
                return self.grant(
                    request,
                    NewGrant { grant_id, profile, scope, gift, why, valid_from, lapses_at, actor },
                );
            }
            Command::RevokeGrant { grant_id } => return self.revoke(request, &grant_id),
            Command::SwitchMode { mode } => return self.switch_mode(request, mode),
            Command::ConfirmClock {} => return self.confirm_clock(request),
            Command::ReadAudit { after, limit } => return self.read_audit(request, after, limit),
            Command::SetPin { pin } => return self.set_pin(request, pin),
            question => self.look_up(request, question),
        };
        self.respond(&request.to, answer);
    }

    /// Questions, which change nothing.
    fn look_up(&self, request: &Request, question: Command) -> Answer {
        let (now, policy) = (request.now, self.engine.policy());
        let of = |profile: Option<ProfileId>| profile_of(&request.client, profile.as_ref(), policy);
        Ok(match question {
            Command::GetState {} => Reply::State { snapshot: self.state(now) },
            Command::SubscribeEvents {} => Reply::Subscribed { snapshot: self.state(now) },
            Command::ListEntries { at_time, profile } => {
                let profile = of(profile)?;
                let entries = match at_time {
                    Some(at) => self.engine.list_entries_at(&profile, at),
                    None => self.engine.list_entries_for(&profile, now),
                };
                Reply::Entries { at: at_time.unwrap_or(now.wall), profile, entries }
            }
            Command::Health {} => Reply::Health { health: self.health(now) },
            Command::Metrics {} => Reply::Metrics { text: self.metrics_text(now) },
            Command::GetPolicy {} => {
                let source = self.policy.source.as_ref();
                let (text, digest) =
                    (source.map(|known| known.text.clone()), source.map(|known| known.digest.clone()));
                Reply::Policy { text, digest }
            }
            Command::Why { entry_id, at, profile } => {
                let profile = of(profile)?;
                let why = match at {
                    Some(at) => self.engine.why_at(&profile, &entry_id, at),
                    None => self.engine.why(&profile, &entry_id, now),
                };
                Reply::Why { why: why? }
            }
            Command::Timeline { from, to, profile } => {
                Reply::Timeline { timeline: self.engine.timeline(&of(profile)?, from, to)? }
            }
            Command::Usage { from, to, profile } => {
                let profile = self.whose_usage(request, profile.as_ref())?;
                Reply::Usage { usage: self.engine.usage(from, to, profile.as_ref())? }
            }
            Command::ListRequests {} => Reply::Requests { requests: self.requests_for(&request.client) },
            Command::ListGrants {} => Reply::Grants { grants: self.engine.grants(now) },
            other => {
                // The transport answers these itself, and the rest is in `request`.
                let sentence = format!("`{}` can't be answered here.", other.name());
                return Err(ApiError::new(ErrorCode::Internal, sentence));
            }
        })
    }

    pub(super) fn state(&self, now: Now) -> DaemonStateSnapshot {
        self.engine.get_state(now)
    }

    /// Of all if nobody is named, but only an administrator sees all.
    fn whose_usage(
        &self,
        request: &Request,
        named: Option<&ProfileId>,
    ) -> Result<Option<ProfileId>, ApiError> {
        if named.is_none() && request.client.role == Role::Admin {
            return Ok(None);
        }
        profile_of(&request.client, named, self.engine.policy()).map(Some)
    }

    fn requests_for(&self, client: &ClientInfo) -> Vec<shepherd_api::RequestView> {
        let own = client.profile.as_ref().filter(|_| client.role != Role::Admin);
        let mut requests = self.engine.requests();
        requests.retain(|request| own.is_none_or(|own| request.profile == *own));
        requests
    }

    fn launch(&mut self, request: &Request, entry_id: EntryId, named: Option<&ProfileId>) {
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
                let entry = self.as_whom(plan.entry, &profile);
                let order = SpawnOrder { session_id: plan.session_id, entry, profile };
                let told = vec![EventKind::SessionLaunching { session: session.clone() }];
                let granted = Granted::Launch(Box::new(order));
                let reply = Reply::Launched { session };
                self.metrics.launches_approved.inc();
                self.carry_out_for(request.to.clone(), reply, granted, Vec::new(), told, now);
            }
            LaunchDecision::Denied { reasons } => {
                self.metrics.launches_denied.inc();
                self.carry_out(Vec::new(), now);
                self.respond(&request.to, Err(self.engine.denial(reasons)));
            }
        }
    }

    /// A daemon that is root starts nothing as root because nobody said otherwise, if the profile has an account.
    fn as_whom(&self, mut entry: Entry, profile: &ProfileId) -> Entry {
        if entry.run.user.is_none() && rustix::process::geteuid().is_root() {
            let accounts =
                self.engine.policy().rules().profiles.get(profile).map(|profile| profile.accounts.iter());
            entry.run.user = accounts.into_iter().flatten().find_map(|account| match account {
                Account::User(name) => Some(name.clone()),
                Account::Uid(_) | Account::Group(_) | Account::Gid(_) => None,
            });
        }
        entry
    }

    fn stop_current(&mut self, request: &Request, mode: StopMode) -> Answer {
        let now = request.now;
        let session = self.engine.session_view(now).ok_or_else(no_session)?;
        let whose = profile_of(&request.client, Some(&session.profile), self.engine.policy());
        // One whose profile the policy has no more is nobody's in particular.
        let own = !whose.is_err_and(|error| error.code == ErrorCode::NotPermitted);
        let by = if request.client.role == Role::Admin { StopRequester::Admin } else { StopRequester::User };
        if by == StopRequester::User && !own {
            let error = ApiError::new(ErrorCode::NotPermitted, "This session is somebody else's.");
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

    fn extend(&mut self, request: &Request, by: Duration) {
        let (now, grant_id) = (request.now, GrantId::from_random(random()));
        match self.engine.extend_current(by, &grant_id, &request.actor(), now) {
            Ok(events) => {
                let Some(session) = self.engine.session_view(now) else { return self.lost(request) };
                let reply = Reply::Extended { session };
                let told = self.grant_changed(&grant_id);
                self.carry_out_for(request.to.clone(), reply, Granted::Time(grant_id), events, told, now);
            }
            Err(error) => self.refuse(request, error.into()),
        }
    }

    fn grant(&mut self, request: &Request, new: NewGrant) {
        let (now, grant_id) = (request.now, new.grant_id.clone());
        match self.engine.grant(new, now) {
            Ok(events) => {
                let Some(grant) = self.engine.find_grant(&grant_id) else { return self.lost(request) };
                let told = vec![EventKind::GrantChanged { grant: grant.clone() }];
                let reply = Reply::Grant { grant };
                self.carry_out_for(request.to.clone(), reply, Granted::Time(grant_id), events, told, now);
            }
            Err(error) => self.refuse(request, error.into()),
        }
    }

    fn revoke(&mut self, request: &Request, grant_id: &GrantId) {
        let now = request.now;
        match self.engine.revoke(grant_id, &request.actor(), now) {
            Ok(events) => {
                let Some(grant) = self.engine.find_grant(grant_id) else { return self.lost(request) };
                let told = vec![EventKind::GrantChanged { grant: grant.clone() }];
                self.carry_out_for(
                    request.to.clone(),
                    Reply::Grant { grant },
                    Granted::Nothing,
                    events,
                    told,
                    now,
                );
            }
            Err(error) => self.turn_away(request, "revoke_grant", error.into()),
        }
    }

    fn request_time(&mut self, request: &Request, wish: Wish) {
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

    fn mark_seen(&mut self, request: &Request, request_id: &RequestId) {
        match self.engine.see_request(request_id, &request.actor(), request.now) {
            Ok(()) => self.answer_with_request(request, request_id),
            Err(error) => self.turn_away(request, "mark_request_seen", error.into()),
        }
    }

    fn answer_with_request(&mut self, request: &Request, request_id: &RequestId) {
        let Some(view) = self.engine.find_request(request_id) else { return self.lost(request) };
        let told = vec![EventKind::RequestChanged { request: view.clone() }];
        let reply = Reply::Request { request: view };
        self.carry_out_for(request.to.clone(), reply, Granted::Nothing, Vec::new(), told, request.now);
    }

    fn decide(&mut self, request: &Request, request_id: &RequestId, decision: Decision) {
        let (now, actor, grant_id) = (request.now, request.actor(), GrantId::from_random(random()));
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
                let granted = if grant.is_some() { Granted::Time(grant_id) } else { Granted::Nothing };
                let mut told = vec![EventKind::RequestChanged { request: view.clone() }];
                told.extend(grant.clone().map(|grant| EventKind::GrantChanged { grant }));
                let reply = Reply::Decided { request: view, grant };
                self.carry_out_for(request.to.clone(), reply, granted, events, told, now);
            }
            Err(error) => self.refuse(request, error.into()),
        }
    }

    fn switch_mode(&mut self, request: &Request, mode: Option<String>) {
        let now = request.now;
        match self.engine.switch_mode(mode, &request.actor(), now) {
            Ok(events) => {
                let reply = Reply::Mode { mode: self.engine.get_state(now).mode };
                self.carry_out_for(request.to.clone(), reply, Granted::Nothing, events, Vec::new(), now);
            }
            Err(unknown) => self.turn_away(request, "switch_mode", unknown.into()),
        }
    }

    fn confirm_clock(&mut self, request: &Request) {
        let events = self.engine.confirm_clock(&request.actor(), request.now);
        let reply = Reply::ClockConfirmed { at: request.now.wall };
        self.carry_out_for(request.to.clone(), reply, Granted::Nothing, events, Vec::new(), request.now);
    }

    fn read_audit(&mut self, request: &Request, after: Option<u64>, limit: u32) {
        match self.store.read_audit(after, limit.min(MOST_LINES)) {
            Some(question) => drop(self.audit_questions.insert(question, request.to.clone())),
            None => {
                let sentence = "There is no store to read from.";
                self.respond(&request.to, Err(ApiError::new(ErrorCode::StoreUnavailable, sentence)));
            }
        }
    }

    fn set_pin(&mut self, request: &Request, pin: Option<Pin>) {
        let text =
            if pin.is_some() { "sets the administrator's PIN" } else { "removes the administrator's PIN" };
        self.note(&request.actor(), AuditKind::Note { text: text.to_owned() }, request.now);
        self.clients.change_pin(&request.to.client_id, request.to.request_id, pin);
    }

    /// Somebody wants what is not theirs or can't be, which goes on record (S8.3, S11.3).
    fn turn_away(&mut self, request: &Request, command: &str, error: ApiError) {
        self.note_refusal(request, command, &error);
        self.respond(&request.to, Err(error));
    }

    fn note_refusal(&mut self, request: &Request, command: &str, error: &ApiError) {
        let (command, reason) = (command.to_owned(), error.sentence.clone());
        self.note(&request.actor(), AuditKind::CommandRefused { command, reason }, request.now);
    }

    /// A no that the engine has put on record itself.
    fn refuse(&mut self, request: &Request, error: ApiError) {
        self.carry_out(Vec::new(), request.now);
        self.respond(&request.to, Err(error));
    }

    /// What was just made is not there: a fault of ours, but every question gets an answer.
    fn lost(&self, request: &Request) {
        let sentence = "What was asked for was done, and can't be found again.";
        self.respond(&request.to, Err(ApiError::new(ErrorCode::Internal, sentence)));
    }

    fn grant_changed(&self, grant_id: &GrantId) -> Vec<EventKind> {
        self.engine.find_grant(grant_id).map(|grant| EventKind::GrantChanged { grant }).into_iter().collect()
    }
}

/// What a child asks the parents for.
struct Wish {
    entry_id: EntryId,
    minutes: u32,
    note: Option<String>,
    profile: Option<ProfileId>,
}

impl Request {
    fn actor(&self) -> String {
        actor(&self.client.peer, &self.client.name)
    }

    fn asked(&self) -> Asked {
        Asked::Client { to: self.to.clone(), actor: self.actor() }
    }
}

/// Who somebody is, for the audit log: what the kernel says, and what it says of itself.
fn actor(peer: &Peer, name: &str) -> String {
    let pid = peer.pid.map(|pid| format!(" pid {pid}")).unwrap_or_default();
    let name = if name.is_empty() { String::new() } else { format!(" ({name})") };
    format!("uid {}{pid}{name}", peer.uid)
}

fn no_session() -> ApiError {
    ApiError::new(ErrorCode::NoSession, "Nothing is running.")
}

/// Bits for the name of something new.
fn random() -> u128 {
    let mut bytes = [0; 16];
    // The kernel's generator fails only before it is seeded, long before there is a daemon.
    getrandom::fill(&mut bytes).expect("the kernel has random numbers");
    u128::from_ne_bytes(bytes)
}
