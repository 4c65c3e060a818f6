//! What clients ask for (S10.3). That they may ask was checked before it came here; whose session and whose time it
//! is, is checked here.

mod grants;
mod session;

use grants::TimeRequestParams;
use jiff::Timestamp;
use shepherd_api::{
    AdminPin, ApiError, AuditKind, ClientRole, Command, CommandReply, DaemonStateSnapshot, ErrorCode,
    TimeRequestView,
};
use shepherd_core::{NewGrant, UndoAction};
use shepherd_ipc::{ClientInfo, IncomingEvent, PeerCredentials};
use shepherd_util::{ClockReading, GrantId, ProfileId};

use super::effects::CommandEffects;
use super::policy::PolicyRequester;
use super::profile_choice::resolve_profile;
use super::refusals::RefusalDisposition;
use super::{DaemonService, RequestAddress};
use crate::timeline_thread::TimelineQuery;

/// Lines of the audit log in one answer.
const MAX_AUDIT_RECORDS: u32 = 1_000;

/// What a client did, with who that is.
struct RequestContext {
    client: ClientInfo,
    reply_to: RequestAddress,
    now: ClockReading,
}

type ReplyResult = Result<CommandReply, ApiError>;

impl DaemonService {
    pub(super) fn handle_incoming(&mut self, incoming: IncomingEvent, now: ClockReading) {
        match incoming {
            IncomingEvent::Request { client, request_id, command } => {
                self.metrics.count_command(command.name());
                let to = RequestAddress { client_id: client.client_id.clone(), request_id };
                self.handle_request(&RequestContext { client, reply_to: to, now }, command);
            }
            IncomingEvent::Authenticated { client } => {
                let text = "gave the PIN and is an administrator now".to_owned();
                self.append_audit(&actor_label(&client.peer, &client.name), AuditKind::Note { text }, now);
            }
            IncomingEvent::PinChange { client, outcome } => {
                let text = match outcome {
                    Ok(true) => "sets the administrator's PIN".to_owned(),
                    Ok(false) => "removes the administrator's PIN".to_owned(),
                    Err(why) => format!("could not change the administrator's PIN: {why}"),
                };
                self.append_audit(&actor_label(&client.peer, &client.name), AuditKind::Note { text }, now);
            }
            IncomingEvent::Refused { peer, name, command, reason, unrecorded } => {
                let more =
                    if unrecorded > 0 { format!(" ({unrecorded} more before)") } else { String::new() };
                let (command, reason) = (command.to_owned(), format!("{reason}{more}"));
                self.append_audit(
                    &actor_label(&peer, &name),
                    AuditKind::CommandRefused { command, reason },
                    now,
                );
            }
            IncomingEvent::NeedsSnapshot { client_id } => {
                let snapshot = self.engine.get_state(now);
                self.clients.send_snapshot(&client_id, snapshot);
            }
        }
    }

    /// Answers at once, unless the answer has to wait for the disk or another thread.
    fn handle_request(&mut self, request: &RequestContext, command: Command) {
        let answer = match command {
            Command::Launch { entry_id, profile } => return self.launch(request, entry_id, profile.as_ref()),
            Command::StopCurrent { mode } => self.stop_current(request, mode),
            Command::ReloadConfig {} => return self.request_policy_read(request.policy_requester()),
            Command::SetPolicy { text } => return self.set_policy(text, request.policy_requester()),
            Command::ExtendCurrent { by } => return self.extend(request, by.into()),
            Command::RequestTime { entry_id, minutes, note, profile } => {
                let wish = TimeRequestParams { entry_id, minutes, note: note.map(Into::into), profile };
                return self.request_time(request, wish);
            }
            Command::MarkRequestSeen { request_id } => return self.mark_seen(request, &request_id),
            Command::DecideRequest { request_id, decision } => {
                return self.decide(request, &request_id, decision);
            }
            Command::Grant { profile, scope, gift, valid_from, lapses_at, why } => {
                let (grant_id, actor) = (GrantId::from_random(random_id_bits()), request.actor());
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
                match self.queue_timeline(request, profile.as_ref(), from, to) {
                    Ok(()) => return,
                    Err(error) => Err(error),
                }
            }
            about_use @ (Command::ListEntries { .. } | Command::Why { .. } | Command::Usage { .. }) => {
                self.count_until_now(request);
                self.answer_query(request, about_use)
            }
            question @ (Command::GetState {}
            | Command::Health {}
            | Command::Metrics {}
            | Command::GetPolicy {}
            | Command::ListRequests {}
            | Command::ListGrants {}
            | Command::Authenticate { .. }) => self.answer_query(request, question),
        };
        self.respond(&request.reply_to, answer);
    }

    /// For answers that depend on what was used until now: nobody has counted since something was last due.
    fn count_until_now(&mut self, request: &RequestContext) {
        if self.engine.snapshot().session.is_some() {
            self.engine.count_usage_until(request.now);
        }
    }

    /// Questions, which change nothing.
    fn answer_query(&self, request: &RequestContext, question: Command) -> ReplyResult {
        let (now, policy) = (request.now, self.engine.policy());
        let of = |profile: Option<ProfileId>| resolve_profile(&request.client, profile.as_ref(), policy);
        Ok(match question {
            Command::GetState {} => CommandReply::State { snapshot: self.state(now) },
            Command::ListEntries { at_time, profile } => {
                let profile = of(profile)?;
                let entries = match at_time {
                    Some(at) => self.engine.list_entries_at(&profile, at),
                    None => self.engine.list_entries_for(&profile, now),
                };
                CommandReply::Entries { at: at_time.unwrap_or(now.wall), profile, entries }
            }
            Command::Health {} => CommandReply::Health { health: self.health(now) },
            Command::Metrics {} => CommandReply::Metrics { text: self.metrics_text(now) },
            Command::GetPolicy {} => {
                let source = self.policy.source.as_ref();
                let (text, digest) =
                    (source.map(|known| known.text.clone()), source.map(|known| known.digest.clone()));
                CommandReply::Policy { text, digest }
            }
            Command::Why { entry_id, at, profile } => {
                let profile = of(profile)?;
                let why = match at {
                    Some(at) => self.engine.why_at(&profile, &entry_id, at),
                    None => self.engine.why(&profile, &entry_id, now),
                };
                CommandReply::Why { why: why? }
            }
            Command::Usage { from, to, profile } => {
                let profile = self.usage_profile(request, profile.as_ref())?;
                CommandReply::Usage { usage: self.engine.usage(from, to, profile.as_ref())? }
            }
            Command::ListRequests {} => {
                CommandReply::Requests { requests: self.requests_for(&request.client) }
            }
            Command::ListGrants {} => CommandReply::Grants { grants: self.engine.active_grants(now) },
            // The transport answers this itself, and the rest is in `handle_request`.
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

    pub(super) fn state(&self, now: ClockReading) -> DaemonStateSnapshot {
        self.engine.get_state(now)
    }

    fn queue_timeline(
        &self,
        request: &RequestContext,
        named: Option<&ProfileId>,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<(), ApiError> {
        let profile = resolve_profile(&request.client, named, self.engine.policy())?;
        let (to, uid) = (request.reply_to.clone(), request.client.peer.uid);
        self.timeline_thread.submit(TimelineQuery { to, uid, profile, from, until }, &self.engine)
    }

    /// Of all if nobody is named, but only an administrator sees all.
    fn usage_profile(
        &self,
        request: &RequestContext,
        named: Option<&ProfileId>,
    ) -> Result<Option<ProfileId>, ApiError> {
        if named.is_none() && request.client.role == ClientRole::Admin {
            return Ok(None);
        }
        resolve_profile(&request.client, named, self.engine.policy()).map(Some)
    }

    fn requests_for(&self, client: &ClientInfo) -> Vec<TimeRequestView> {
        let own = client.profile.as_ref().filter(|_| client.role != ClientRole::Admin);
        let mut requests = self.engine.requests();
        requests.retain(|request| own.is_none_or(|own| request.profile == *own));
        requests
    }

    fn subscribe(&mut self, request: &RequestContext) {
        let now = request.now;
        self.respond(&request.reply_to, Ok(CommandReply::Subscribed { snapshot: self.state(now) }));
        // Somebody who only looks on is not the one who plays.
        if request.client.role != ClientRole::Observer
            && let Some(warning) = self.engine.take_missed_warning(now)
        {
            let kind = self.engine.event_kind(&warning, now);
            self.broadcast(vec![kind], now);
        }
    }

    fn switch_mode(&mut self, request: &RequestContext, mode: Option<String>) {
        let (now, before) = (request.now, self.engine.snapshot().mode.clone());
        match self.engine.switch_mode(mode, &request.actor(), now) {
            Ok(events) => {
                let reply = CommandReply::Mode { mode: self.engine.get_state(now).mode };
                let outcome = CommandEffects::new(reply, events).with_undo(UndoAction::Mode(before));
                self.commit_effects(request.reply_to.clone(), outcome, now);
            }
            Err(unknown) => self.refuse_and_record(request, "switch_mode", unknown.into()),
        }
    }

    fn confirm_clock(&mut self, request: &RequestContext) {
        let before = Box::new(self.engine.snapshot().clock.clone());
        let events = self.engine.confirm_clock(&request.actor(), request.now);
        let reply = CommandReply::ClockConfirmed { at: request.now.wall };
        let outcome = CommandEffects::new(reply, events).with_undo(UndoAction::Clock(before));
        self.commit_effects(request.reply_to.clone(), outcome, request.now);
    }

    fn read_audit(&mut self, request: &RequestContext, after: Option<u64>, limit: u32) {
        match self.store.read_audit(after, limit.min(MAX_AUDIT_RECORDS)) {
            Ok(question) => drop(self.audit_queries.insert(question, request.reply_to.clone())),
            Err(why) => self.respond(&request.reply_to, Err(ApiError::new(ErrorCode::StoreUnavailable, why))),
        }
    }

    fn set_pin(&mut self, request: &RequestContext, pin: Option<AdminPin>) {
        self.clients.change_pin(request.client.clone(), request.reply_to.request_id, pin);
    }

    /// Somebody wants what is not theirs or can't be, which goes on record (S8.3, S11.3).
    fn refuse_and_record(&mut self, request: &RequestContext, command: &str, error: ApiError) {
        self.record_refusal(request, command, &error);
        self.respond(&request.reply_to, Err(error));
    }

    fn record_refusal(&mut self, request: &RequestContext, command: &str, error: &ApiError) {
        if self.count_refusal(request.client.peer.uid, request.now) == RefusalDisposition::CountOnly {
            return;
        }
        let (command, reason) = (command.to_owned(), error.sentence.clone());
        self.append_audit(&request.actor(), AuditKind::CommandRefused { command, reason }, request.now);
    }

    /// A no that the engine has put on record itself.
    fn commit_and_refuse(&mut self, request: &RequestContext, error: ApiError) {
        self.apply_events(Vec::new(), request.now);
        self.respond(&request.reply_to, Err(error));
    }

    /// What was just made is not there: a fault of ours, but every question gets an answer.
    fn respond_result_missing(&self, request: &RequestContext) {
        let sentence = "What was asked for was done, and can't be found again.";
        self.respond(&request.reply_to, Err(ApiError::new(ErrorCode::Internal, sentence)));
    }
}

impl RequestContext {
    fn actor(&self) -> String {
        actor_label(&self.client.peer, &self.client.name)
    }

    fn policy_requester(&self) -> PolicyRequester {
        PolicyRequester::Client { to: self.reply_to.clone(), actor: self.actor() }
    }
}

/// Who somebody is, for the audit log: what the kernel says, and what it says of itself.
fn actor_label(peer: &PeerCredentials, name: &str) -> String {
    let pid = peer.pid.map(|pid| format!(" pid {pid}")).unwrap_or_default();
    let name = if name.is_empty() { String::new() } else { format!(" ({name})") };
    format!("uid {}{pid}{name}", peer.uid)
}

/// Bits for the name of something new.
fn random_id_bits() -> u128 {
    let mut bytes = [0; 16];
    // The kernel's generator fails only before it is seeded, long before there is a daemon.
    getrandom::fill(&mut bytes).expect("the kernel has random numbers");
    u128::from_ne_bytes(bytes)
}
