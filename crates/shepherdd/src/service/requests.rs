//! Handles the commands of clients (S10.3). The transport has checked that a client may give its command; whether a
//! session or a profile is the client's own is checked here.

mod command_kind;
mod grants;
mod login_check;
mod questions;
mod session;
mod warning_listener;

use command_kind::{ClientAct, CommandKind};
use shepherd_api::{ApiError, AuditKind, CommandReply, ErrorCode};
use shepherd_core::{EngineReply, SessionRecord};
use shepherd_ipc::{ClientInfo, IncomingEvent, PeerCredentials};
use shepherd_util::ClockReading;
use warning_listener::WarningListener;

use super::policy::PolicyRequester;
use super::refusals::RefusalDisposition;
use super::{DaemonService, RequestAddress};

/// The client that sent a command, and the moment.
struct RequestContext {
    client: ClientInfo,
    reply_to: RequestAddress,
    now: ClockReading,
}

type ReplyResult = Result<CommandReply, ApiError>;

/// The part of the program that records a refusal.
#[derive(Clone, Copy)]
enum RefusalRecorder {
    /// The engine recorded it among its effects.
    Engine,
    /// The daemon records it under the name of this command.
    Daemon(&'static str),
}

impl DaemonService {
    pub(super) fn handle_incoming(&mut self, incoming: IncomingEvent, now: ClockReading) {
        match incoming {
            IncomingEvent::Request { client, request_id, command } => {
                self.metrics.count_command(command.name());
                let reply_to = RequestAddress { client_id: client.client_id.clone(), request_id };
                let request = RequestContext { client, reply_to, now };
                match command.into() {
                    CommandKind::Question(question) => self.answer_question(&request, question),
                    CommandKind::Act(act) => self.perform_act(&request, act),
                    CommandKind::Authenticate => {
                        let sentence = "`authenticate` is handled by the connection.";
                        self.respond(&request.reply_to, Err(ApiError::new(ErrorCode::Internal, sentence)));
                    }
                }
            }
            IncomingEvent::Authenticated { client } => {
                let text = "entered the PIN and is now an administrator".to_owned();
                self.append_audit(&actor_label(&client.peer, &client.name), AuditKind::Note { text }, now);
            }
            IncomingEvent::PinChange { client, outcome } => {
                let text = match outcome {
                    Ok(true) => "set the administrator's PIN".to_owned(),
                    Ok(false) => "removed the administrator's PIN".to_owned(),
                    Err(why) => format!("could not change the administrator's PIN: {why}"),
                };
                self.append_audit(&actor_label(&client.peer, &client.name), AuditKind::Note { text }, now);
            }
            IncomingEvent::Refused { peer, name, command, reason, unrecorded } => {
                let more =
                    if unrecorded > 0 { format!(" (and {unrecorded} more before)") } else { String::new() };
                let (command, reason) = (command.to_owned(), format!("{reason}{more}"));
                let refused = AuditKind::CommandRefused { command, reason };
                self.append_audit(&actor_label(&peer, &name), refused, now);
            }
            IncomingEvent::NeedsSnapshot { client_id } => {
                let snapshot = self.engine.get_state(now);
                self.clients.send_snapshot(&client_id, snapshot);
            }
        }
    }

    fn perform_act(&mut self, request: &RequestContext, act: ClientAct) {
        match act {
            ClientAct::Launch(params) => self.launch(request, params),
            ClientAct::Stop { mode, session_id } => {
                let answer = self.stop_session(request, session_id.as_ref(), mode);
                self.respond(&request.reply_to, answer);
            }
            ClientAct::Extend { by, session_id } => self.extend(request, session_id.as_ref(), by),
            ClientAct::ReloadPolicy => self.request_policy_read(request.policy_requester()),
            ClientAct::SetPolicy { text } => self.set_policy(text, request.policy_requester()),
            ClientAct::RequestTime(params) => self.request_time(request, params),
            ClientAct::MarkRequestSeen { request_id } => self.mark_request_seen(request, &request_id),
            ClientAct::DecideRequest { request_id, decision } => {
                self.decide_request(request, &request_id, decision);
            }
            ClientAct::Grant(params) => self.grant(request, params),
            ClientAct::RevokeGrant { grant_id } => self.revoke(request, &grant_id),
            ClientAct::SwitchMode { mode } => {
                let outcome = self.engine.switch_mode(mode, &request.actor(), request.now);
                let recorder = RefusalRecorder::Daemon("switch_mode");
                self.conclude(request, outcome, recorder, |mode| CommandReply::Mode { mode });
            }
            ClientAct::ConfirmClock => {
                let effects = self.engine.confirm_clock(&request.actor(), request.now);
                let reply = CommandReply::ClockConfirmed { at: request.now.wall };
                self.carry_out_and_reply(effects, &request.reply_to, reply, request.now);
            }
            ClientAct::SetPin { pin } => {
                self.clients.change_pin(request.client.clone(), request.reply_to.request_id, pin);
            }
            ClientAct::Subscribe => self.subscribe(request),
        }
    }

    fn subscribe(&mut self, request: &RequestContext) {
        let now = request.now;
        let snapshot = self.engine.get_state(now);
        self.respond(&request.reply_to, Ok(CommandReply::Subscribed { snapshot }));
        self.give_missed_warnings(&request.client, now);
    }

    fn give_missed_warnings(&mut self, client: &ClientInfo, now: ClockReading) {
        let of_session = |session: &SessionRecord| {
            (session.session_id.clone(), WarningListener::of_session(&session.profile, client))
        };
        let listeners: Vec<_> = self.engine.sessions_with_missed_warnings().map(of_session).collect();
        for (session_id, listener) in listeners {
            let Some(warning) = self.engine.missed_warning(&session_id, now) else { continue };
            match listener {
                WarningListener::Player => self.engine.forget_missed_warning(&session_id),
                WarningListener::PerhapsPlayer => {}
                WarningListener::SomebodyElse => continue,
            }
            let kind = self.event_kind(&warning, now);
            self.broadcast(vec![kind], now);
        }
    }

    /// Carries out the effects of an act, and replies when they are durable; a refusal is answered at once.
    fn conclude<T, E: Into<ApiError>>(
        &mut self,
        request: &RequestContext,
        outcome: EngineReply<Result<T, E>>,
        recorder: RefusalRecorder,
        reply: impl FnOnce(T) -> CommandReply,
    ) {
        let EngineReply { answer, effects } = outcome;
        match answer {
            Ok(done) => self.carry_out_and_reply(effects, &request.reply_to, reply(done), request.now),
            Err(error) => {
                self.carry_out(effects, request.now);
                let error = error.into();
                match recorder {
                    RefusalRecorder::Engine => {}
                    RefusalRecorder::Daemon(command) => self.record_refusal(request, command, &error),
                }
                self.respond(&request.reply_to, Err(error));
            }
        }
    }

    /// Refuses a command, and records that (S8.3, S11.3).
    fn refuse_and_record(&mut self, request: &RequestContext, command: &str, error: ApiError) {
        self.record_refusal(request, command, &error);
        self.respond(&request.reply_to, Err(error));
    }

    fn record_refusal(&mut self, request: &RequestContext, command: &str, error: &ApiError) {
        match self.count_refusal(request.client.peer.uid, request.now) {
            RefusalDisposition::CountOnly => {}
            RefusalDisposition::Record => {
                let (command, reason) = (command.to_owned(), error.sentence.clone());
                let refused = AuditKind::CommandRefused { command, reason };
                self.append_audit(&request.actor(), refused, request.now);
            }
        }
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

/// Returns the name of a client in the audit log: its credentials from the kernel, and the name that it gave itself.
fn actor_label(peer: &PeerCredentials, name: &str) -> String {
    let pid = peer.pid.map(|pid| format!(" pid {pid}")).unwrap_or_default();
    let name = if name.is_empty() { String::new() } else { format!(" ({name})") };
    format!("uid {}{pid}{name}", peer.uid)
}

/// Returns random bits for a new id.
pub(super) fn random_id_bits() -> u128 {
    let mut bytes = [0; 16];
    // The kernel's generator fails only before it is seeded, long before the daemon starts.
    getrandom::fill(&mut bytes).expect("the kernel has random numbers");
    u128::from_ne_bytes(bytes)
}
