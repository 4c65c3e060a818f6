//! What clients ask for (S10.3). That they may ask was checked before it came here; whose session and whose time it
//! is, is checked here.

mod gifts;
mod session;

use gifts::Wish;
use jiff::Timestamp;
use shepherd_api::{
    ApiError, AuditKind, Command, DaemonStateSnapshot, ErrorCode, Pin, Reply, RequestView, Role,
};
use shepherd_core::{NewGrant, Undo};
use shepherd_ipc::{ClientInfo, Incoming, Peer};
use shepherd_util::{GrantId, Now, ProfileId};

use super::carry_out::Outcome;
use super::policy::Asked;
use super::refusals::Recorded;
use super::who::profile_of;
use super::{RequestAddress, Service};
use crate::timelines::Question;

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
            Incoming::PinChange { client, outcome } => {
                let text = match outcome {
                    Ok(true) => "sets the administrator's PIN".to_owned(),
                    Ok(false) => "removes the administrator's PIN".to_owned(),
                    Err(why) => format!("could not change the administrator's PIN: {why}"),
                };
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
            Command::SubscribeEvents {} => return self.subscribe(request),
            Command::SetPin { pin } => return self.set_pin(request, pin),
            Command::Timeline { from, to, profile } => {
                self.count_until_now(request);
                match self.draw_timeline(request, profile.as_ref(), from, to) {
                    Ok(()) => return,
                    Err(error) => Err(error),
                }
            }
            about_use @ (Command::ListEntries { .. } | Command::Why { .. } | Command::Usage { .. }) => {
                self.count_until_now(request);
                self.look_up(request, about_use)
            }
            question @ (Command::GetState {}
            | Command::Health {}
            | Command::Metrics {}
            | Command::GetPolicy {}
            | Command::ListRequests {}
            | Command::ListGrants {}
            | Command::Authenticate { .. }) => self.look_up(request, question),
        };
        self.respond(&request.to, answer);
    }

    /// For answers that depend on what was used until now: nobody has counted since something was last due.
    fn count_until_now(&mut self, request: &Request) {
        if self.engine.snapshot().session.is_some() {
            self.engine.count_until(request.now);
        }
    }

    /// Questions, which change nothing.
    fn look_up(&self, request: &Request, question: Command) -> Answer {
        let (now, policy) = (request.now, self.engine.policy());
        let of = |profile: Option<ProfileId>| profile_of(&request.client, profile.as_ref(), policy);
        Ok(match question {
            Command::GetState {} => Reply::State { snapshot: self.state(now) },
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
            Command::Usage { from, to, profile } => {
                let profile = self.whose_usage(request, profile.as_ref())?;
                Reply::Usage { usage: self.engine.usage(from, to, profile.as_ref())? }
            }
            Command::ListRequests {} => Reply::Requests { requests: self.requests_for(&request.client) },
            Command::ListGrants {} => Reply::Grants { grants: self.engine.grants(now) },
            // The transport answers this itself, and the rest is in `request`.
            other @ (Command::Authenticate { .. }
            | Command::Launch { .. }
            | Command::StopCurrent { .. }
            | Command::ReloadConfig {}
            | Command::SetPolicy { .. }
            | Command::ExtendCurrent { .. }
            | Command::RequestTime { .. }
            | Command::MarkRequestSeen { .. }
            | Command::DecideRequest { .. }
            | Command::Grant { .. }
            | Command::RevokeGrant { .. }
            | Command::SwitchMode { .. }
            | Command::ConfirmClock {}
            | Command::ReadAudit { .. }
            | Command::SubscribeEvents {}
            | Command::SetPin { .. }
            | Command::Timeline { .. }) => {
                let sentence = format!("`{}` can't be answered here.", other.name());
                return Err(ApiError::new(ErrorCode::Internal, sentence));
            }
        })
    }

    pub(super) fn state(&self, now: Now) -> DaemonStateSnapshot {
        self.engine.get_state(now)
    }

    fn draw_timeline(
        &self,
        request: &Request,
        named: Option<&ProfileId>,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<(), ApiError> {
        let profile = profile_of(&request.client, named, self.engine.policy())?;
        let (to, uid) = (request.to.clone(), request.client.peer.uid);
        self.timelines.ask(Question { to, uid, profile, from, until }, &self.engine)
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

    fn requests_for(&self, client: &ClientInfo) -> Vec<RequestView> {
        let own = client.profile.as_ref().filter(|_| client.role != Role::Admin);
        let mut requests = self.engine.requests();
        requests.retain(|request| own.is_none_or(|own| request.profile == *own));
        requests
    }

    fn subscribe(&mut self, request: &Request) {
        let now = request.now;
        self.respond(&request.to, Ok(Reply::Subscribed { snapshot: self.state(now) }));
        // Somebody who only looks on is not the one who plays.
        if request.client.role != Role::Observer
            && let Some(warning) = self.engine.unheard_warning(now)
        {
            let kind = self.engine.event_kind(&warning, now);
            self.tell(vec![kind], now);
        }
    }

    fn switch_mode(&mut self, request: &Request, mode: Option<String>) {
        let (now, before) = (request.now, self.engine.snapshot().mode.clone());
        match self.engine.switch_mode(mode, &request.actor(), now) {
            Ok(events) => {
                let reply = Reply::Mode { mode: self.engine.get_state(now).mode };
                let outcome = Outcome::new(reply, events).giving(Undo::Mode(before));
                self.carry_out_for(request.to.clone(), outcome, now);
            }
            Err(unknown) => self.turn_away(request, "switch_mode", unknown.into()),
        }
    }

    fn confirm_clock(&mut self, request: &Request) {
        let before = Box::new(self.engine.snapshot().clock.clone());
        let events = self.engine.confirm_clock(&request.actor(), request.now);
        let reply = Reply::ClockConfirmed { at: request.now.wall };
        let outcome = Outcome::new(reply, events).giving(Undo::Clock(before));
        self.carry_out_for(request.to.clone(), outcome, request.now);
    }

    fn read_audit(&mut self, request: &Request, after: Option<u64>, limit: u32) {
        match self.store.read_audit(after, limit.min(MOST_LINES)) {
            Ok(question) => drop(self.audit_questions.insert(question, request.to.clone())),
            Err(why) => self.respond(&request.to, Err(ApiError::new(ErrorCode::StoreUnavailable, why))),
        }
    }

    fn set_pin(&mut self, request: &Request, pin: Option<Pin>) {
        self.clients.change_pin(request.client.clone(), request.to.request_id, pin);
    }

    /// Somebody wants what is not theirs or can't be, which goes on record (S8.3, S11.3).
    fn turn_away(&mut self, request: &Request, command: &str, error: ApiError) {
        self.note_refusal(request, command, &error);
        self.respond(&request.to, Err(error));
    }

    fn note_refusal(&mut self, request: &Request, command: &str, error: &ApiError) {
        if self.count_refusal(request.client.peer.uid, request.now) == Recorded::No {
            return;
        }
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

/// Bits for the name of something new.
fn random() -> u128 {
    let mut bytes = [0; 16];
    // The kernel's generator fails only before it is seeded, long before there is a daemon.
    getrandom::fill(&mut bytes).expect("the kernel has random numbers");
    u128::from_ne_bytes(bytes)
}
