//! Threads of the live view: three send it inputs, and one sends its requests to the daemon.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use ratatui::crossterm::event::{self, Event as Input, KeyEvent};
use shepherd_api::{
    AdminPin, ClientDisplay, ClientState, Command, CommandReply, EntryView, ErrorCode, Event,
    ExplanationView, GrantView, Note, ProfileView, ReasonCode, RequiredRefresh, SessionView, StopMode,
    TimeRequestDecision, TimeRequestView,
};
use shepherd_ipc::{BlockingClient, CallError, ClientOptions, DaemonWatcher, WatchUpdate};
use shepherd_util::{EntryId, ErrorChain, ProfileId, RequestId, SessionId};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use ward_terminal::TextTone;

use crate::client_display;
use crate::daemon;
use crate::error::ShepherdCliError;
use crate::pin_recipient;
use crate::watch::LiveViewOptions;

pub(super) type LiveViewRequestSender = Sender<LiveViewRequest>;

/// An input of the live view's event loop.
pub(super) enum LiveViewInput {
    Key(KeyEvent),
    Resized,
    /// The terminal sends no more keys.
    InputClosed,
    Signal(i32),
    /// A complete state, after connecting or after missed events.
    Resynced {
        state: Box<ClientState>,
        missed: u64,
    },
    EventReceived {
        state: Box<ClientState>,
        event: Box<Event>,
        refresh: RequiredRefresh,
    },
    Disconnected {
        why: String,
    },
    ReplyReceived(LiveViewReply),
}

/// A request of the live view to the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LiveViewRequest {
    Entries,
    Launch(EntryId),
    /// Stop this session; `None` lets the daemon choose.
    Stop(StopMode, Option<SessionId>),
    RequestTime {
        entry_id: EntryId,
        minutes: u32,
    },
    Why(EntryId),
    /// The children's requests for time.
    TimeRequests,
    /// The line for a parent if the rules in force aren't those of the policy file.
    OldRules,
    Decide {
        request_id: RequestId,
        decision: TimeRequestDecision,
    },
    /// The request for this profile instead of the client's own.
    ForProfile {
        profile: ProfileId,
        request: Box<LiveViewRequest>,
    },
    /// The request with the administrator's PIN, which is valid for this request only.
    WithPin {
        pin: AdminPin,
        request: Box<LiveViewRequest>,
    },
    /// Drop the connection, because the daemon is gone.
    Disconnect,
}

pub(super) enum LiveViewReply {
    Entries(Vec<EntryView>),
    /// The entries of several profiles, for a client that has none of its own.
    Household(Vec<(ProfileView, Vec<EntryView>)>),
    TimeRequests {
        requests: Vec<TimeRequestView>,
        may_answer: bool,
    },
    OldRules(Option<String>),
    EntriesFailed(String),
    Why(Box<ExplanationView>),
    PinRequired {
        request: LiveViewRequest,
        message: String,
    },
    /// A request for time was sent to the parents.
    Asked(Box<TimeRequestView>),
    /// A request for time was granted. The entries and the running sessions show if the child can use the time.
    Granted {
        entry_id: EntryId,
        grant: Box<GrantView>,
        entries: Vec<EntryView>,
        sessions: Vec<SessionView>,
    },
    /// The policy denies the launch, for this first reason.
    Denied(ReasonCode),
    Notice(TextTone, String),
}

/// Starts the threads. Returns the receiver of inputs and the sender of requests.
pub(super) fn start(
    settings: &LiveViewOptions,
) -> io::Result<(Receiver<LiveViewInput>, LiveViewRequestSender)> {
    let (sender, inputs) = channel();
    let (request_sender, requests) = channel();
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let for_signals = sender.clone();
    thread::spawn(move || {
        signals.forever().try_for_each(|signal| for_signals.send(LiveViewInput::Signal(signal)))
    });
    let for_keys = sender.clone();
    thread::spawn(move || read_keys(&for_keys));
    let (for_events, options) = (sender.clone(), settings.options.clone());
    thread::spawn(move || forward_events(DaemonWatcher::new(options), &for_events));
    let worker = LiveViewRequestWorker {
        options: settings.options.clone(),
        profile: settings.profile.clone(),
        desktop: settings.desktop.clone(),
        client: None,
    };
    thread::spawn(move || worker.run(&requests, &sender));
    Ok((inputs, request_sender))
}

fn read_keys(sender: &Sender<LiveViewInput>) {
    loop {
        let input = match event::read() {
            Ok(Input::Key(key)) => LiveViewInput::Key(key),
            Ok(Input::Resize(..)) => LiveViewInput::Resized,
            Ok(_) => continue,
            Err(_) => LiveViewInput::InputClosed,
        };
        let last = matches!(input, LiveViewInput::InputClosed);
        if sender.send(input).is_err() || last {
            return;
        }
    }
}

fn forward_events(mut watch: DaemonWatcher, sender: &Sender<LiveViewInput>) {
    while let Some(update) = watch.next() {
        let state = watch.state().cloned().map(Box::new);
        let input = match (update, state) {
            (WatchUpdate::Resynced { missed }, Some(state)) => LiveViewInput::Resynced { state, missed },
            (WatchUpdate::Event { event, refresh }, Some(state)) => {
                LiveViewInput::EventReceived { state, event, refresh }
            }
            (WatchUpdate::Disconnected { error }, _) => {
                LiveViewInput::Disconnected { why: ErrorChain(&error).to_string() }
            }
            (WatchUpdate::Resynced { .. } | WatchUpdate::Event { .. }, None) => continue,
        };
        if sender.send(input).is_err() {
            return;
        }
    }
}

/// Sends requests to the daemon one after the other, so that the event loop never waits.
struct LiveViewRequestWorker {
    options: ClientOptions,
    profile: Option<ProfileId>,
    desktop: Option<ClientDisplay>,
    client: Option<BlockingClient>,
}

impl LiveViewRequestWorker {
    fn run(mut self, requests: &Receiver<LiveViewRequest>, sender: &Sender<LiveViewInput>) {
        while let Ok(request) = requests.recv() {
            if request == LiveViewRequest::Disconnect {
                self.client = None;
                continue;
            }
            if sender.send(LiveViewInput::ReplyReceived(self.execute(&request))).is_err() {
                return;
            }
        }
    }

    fn execute(&mut self, request: &LiveViewRequest) -> LiveViewReply {
        self.execute_for(self.profile.clone(), request)
    }

    fn execute_for(&mut self, profile: Option<ProfileId>, request: &LiveViewRequest) -> LiveViewReply {
        let command = match request.clone() {
            LiveViewRequest::WithPin { pin, request } => return self.execute_with_pin(pin, *request),
            LiveViewRequest::ForProfile { profile, request: inner } => {
                return match self.execute_for(Some(profile), &inner) {
                    // The PIN is for the request with its profile.
                    LiveViewReply::PinRequired { message, .. } => {
                        LiveViewReply::PinRequired { request: request.clone(), message }
                    }
                    reply => reply,
                };
            }
            LiveViewRequest::Entries | LiveViewRequest::Disconnect => return self.fetch_entries(),
            LiveViewRequest::OldRules => {
                let client = self.connect_if_needed().ok();
                return LiveViewReply::OldRules(client.and_then(daemon::fetch_old_rules));
            }
            LiveViewRequest::TimeRequests => Command::ListRequests {},
            LiveViewRequest::Decide { request_id, decision } => {
                Command::DecideRequest { request_id, decision }
            }
            LiveViewRequest::Launch(entry_id) => {
                Command::Launch { entry_id, profile, display: self.desktop.clone() }
            }
            LiveViewRequest::Stop(mode, session_id) => Command::StopCurrent { mode, session_id },
            LiveViewRequest::RequestTime { entry_id, minutes } => {
                Command::RequestTime { entry_id, minutes, note: None::<Note>, profile }
            }
            LiveViewRequest::Why(entry_id) => Command::Why { entry_id, at: None, profile },
        };
        match self.call(command) {
            Ok(CommandReply::Requests { requests }) => {
                let may_answer = self.client.as_ref().is_none_or(daemon::may_administer);
                LiveViewReply::TimeRequests { requests, may_answer }
            }
            Ok(CommandReply::Decided { grant: None, .. }) => {
                LiveViewReply::Notice(TextTone::Good, "The request was denied.".to_owned())
            }
            Ok(CommandReply::Decided { request, grant: Some(grant) }) => {
                // Extra time opens no hours, and the parent expects that the child can play now.
                let entries = self.list_entries(Some(request.profile)).unwrap_or_default();
                let sessions = match self.call(Command::GetState {}) {
                    Ok(CommandReply::State { snapshot }) => snapshot.all_sessions().to_vec(),
                    _ => Vec::new(),
                };
                let (entry_id, grant) = (request.entry_id, Box::new(grant));
                LiveViewReply::Granted { entry_id, grant, entries, sessions }
            }
            Ok(CommandReply::Why { why }) => LiveViewReply::Why(Box::new(why)),
            Ok(CommandReply::Request { request }) => LiveViewReply::Asked(Box::new(request)),
            // The result of other commands arrives as an event.
            Ok(_) => LiveViewReply::Notice(TextTone::Faint, String::new()),
            Err(LiveViewRequestFailure { message, needs_pin: true, .. }) => {
                LiveViewReply::PinRequired { request: request.clone(), message }
            }
            Err(LiveViewRequestFailure { denied_by: Some(reason), .. }) => LiveViewReply::Denied(reason),
            Err(refused) => LiveViewReply::Notice(TextTone::Bad, refused.message),
        }
    }

    /// Fetches the entries of the client's profile. A client that has none of its own, such as a parent, gets the
    /// entries of every profile that it may see.
    fn fetch_entries(&mut self) -> LiveViewReply {
        let refused = match self.list_entries(self.profile.clone()) {
            Ok(entries) => return LiveViewReply::Entries(entries),
            Err(refused) => refused,
        };
        if self.profile.is_some() || refused.code != Some(ErrorCode::UnknownProfile) {
            return LiveViewReply::EntriesFailed(refused.message);
        }
        let profiles = match self.call(Command::GetState {}) {
            Ok(CommandReply::State { snapshot }) => snapshot.profiles,
            _ => Vec::new(),
        };
        let mut household = Vec::new();
        for profile in profiles {
            if let Ok(entries) = self.list_entries(Some(profile.profile.clone())) {
                household.push((profile, entries));
            }
        }
        if household.is_empty() {
            LiveViewReply::EntriesFailed(refused.message)
        } else {
            LiveViewReply::Household(household)
        }
    }

    fn list_entries(&mut self, profile: Option<ProfileId>) -> Result<Vec<EntryView>, LiveViewRequestFailure> {
        match self.call(Command::ListEntries { at_time: None, profile })? {
            CommandReply::Entries { entries, .. } => Ok(entries),
            _ => Err(LiveViewRequestFailure::from_message(ShepherdCliError::UnexpectedReply.to_string())),
        }
    }

    fn execute_with_pin(&mut self, pin: AdminPin, request: LiveViewRequest) -> LiveViewReply {
        let reply =
            match self.connect_if_needed().and_then(|client| pin_recipient::check_pin_recipient(client)) {
                Err(failure) => LiveViewReply::Notice(TextTone::Bad, ErrorChain(&failure).to_string()),
                Ok(()) => match self.call(Command::Authenticate { pin }) {
                    Ok(_) => self.execute(&request),
                    Err(refused) => LiveViewReply::PinRequired { request, message: refused.message },
                },
            };
        // The connection has the administrator's role now. It is dropped, because a child may use the screen next.
        self.client = None;
        reply
    }

    fn connect_if_needed(&mut self) -> Result<&mut BlockingClient, ShepherdCliError> {
        let client = match self.client.take() {
            Some(client) => client,
            None => BlockingClient::connect(&self.options)?,
        };
        Ok(self.client.insert(client))
    }

    fn call(&mut self, command: Command) -> Result<CommandReply, LiveViewRequestFailure> {
        let failed = LiveViewRequestFailure::from_message;
        let client = self.connect_if_needed().map_err(|error| failed(ErrorChain(&error).to_string()))?;
        match client_display::call_daemon(client, command) {
            Ok(reply) => Ok(reply),
            Err(CallError::Refused(error)) => {
                let needs_pin = error.code == ErrorCode::PinRequired;
                let denied_by = error.reasons.into_iter().next();
                let code = Some(error.code);
                Err(LiveViewRequestFailure { message: error.sentence, code, needs_pin, denied_by })
            }
            Err(error) => {
                self.client = None;
                Err(failed(ErrorChain(&error).to_string()))
            }
        }
    }
}

struct LiveViewRequestFailure {
    message: String,
    /// The code of the daemon's error.
    code: Option<ErrorCode>,
    needs_pin: bool,
    /// The first reason of a denied launch.
    denied_by: Option<ReasonCode>,
}

impl LiveViewRequestFailure {
    fn from_message(message: String) -> Self {
        Self { message, code: None, needs_pin: false, denied_by: None }
    }
}

#[cfg(test)]
mod tests;
