//! One turn, on a thread of its own, with a door of its own.

use std::sync::Arc;

use axum::http::StatusCode;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::AbortHandle;
use ward_diag::Chain;

use super::Message;
use crate::cancel::{Cancel, Why};
use crate::channels::Channel;
use crate::channels::gateway::answer::Refusal;
use crate::channels::gateway::desk::{Desk, TURN_SOON};
use crate::channels::gateway::operator::{Over, Remote, Told};
use crate::channels::gateway::turns::Going;
use crate::events::Event;
use crate::ids;
use crate::listen::Peer;
use crate::providers::{ProviderError, hinted};
use crate::runtime::{Attended, Runtime, TurnError};

/// A turn that goes on. It is cancelled when its client leaves, and when this is dropped: nobody is there to hear the
/// answer.
pub(super) struct Turn {
    pub(super) conversation: String,
    pub(super) told: Receiver<Told>,
    cancel: Cancel,
    watch: AbortHandle,
}

/// What a client has not read yet; after that the turn waits for it.
const UNREAD: usize = 64;

impl Turn {
    pub(super) fn begin(desk: &Arc<Desk>, message: Message, peer: Peer) -> Result<Self, Refusal> {
        let no_means = |error: std::io::Error| {
            let message = format!("the machine is out of descriptors or threads: {error}");
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "no-means", message).after(TURN_SOON)
        };
        let cancel = Cancel::new().map_err(no_means)?;
        let conversation = message.conversation_id.clone().unwrap_or_else(|| ids::fresh("conversation"));
        let (teller, told) = channel(UNREAD);
        let going = desk.begin(&conversation, &cancel, &teller)?;
        let holder = Holder {
            remote: Remote {
                desk: Arc::clone(desk),
                conversation: conversation.clone(),
                told: teller,
                cancel: cancel.clone(),
                drafted: false,
            },
            message,
        };
        std::thread::Builder::new()
            .name("turn".to_owned())
            .spawn(move || holder.hold(going))
            .map_err(no_means)?;
        let watch = watch(peer, cancel.clone());
        Ok(Self { conversation, told, cancel, watch })
    }
}

/// A client that is gone ends its turn, also where it has sent more than its request before: hyper, which would have to
/// read that first, does not see it leave.
fn watch(peer: Peer, cancel: Cancel) -> AbortHandle {
    let watching = async move {
        let _at_work = peer.at_work();
        peer.gone().await;
        cancel.raise(Why::Operator);
    };
    tokio::spawn(watching).abort_handle()
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.watch.abort();
        self.cancel.raise(Why::Operator);
    }
}

struct Holder {
    remote: Remote,
    message: Message,
}

impl Holder {
    fn hold(mut self, _going: Going) {
        let over = self.over();
        let Remote { desk, conversation, .. } = self.remote;
        let mut gateway = desk.gateway.clone();
        match over {
            Over::Answer(answer) => gateway.send(&conversation, &answer),
            trouble @ Over::Trouble { .. } => gateway.turns.end(&conversation, trouble),
        }
    }

    fn over(&mut self) -> Over {
        let desk = &self.remote.desk;
        let state = desk.in_force();
        desk.gateway.turns.goes_by(&self.remote.conversation, &state.config);
        let runtime = match desk.open(&state) {
            Ok(runtime) => runtime,
            Err(message) => return Over::Trouble { code: "setup", message, retry_after: None },
        };
        if let Some(fault) = &state.fault {
            let what = format!("the configuration was changed and is not valid, the old one holds: {fault}");
            runtime.door.events.tell(Event::Trouble { what: &what });
        }
        self.greet(&runtime);
        let conversation = self.remote.conversation.clone();
        let cancel = self.remote.cancel.clone();
        let mut attended = Attended { operator: &mut self.remote, cancel: &cancel };
        let hint = hinted(self.message.hint.as_deref());
        let report = runtime.turn_with(&hint, &conversation, &self.message.message, &mut attended);
        match (report.answer, report.kept) {
            (Ok(answer), Ok(())) => Over::Answer(answer),
            (Ok(_), Err(error)) => trouble(&TurnError::from(error)),
            (Err(error), _) => {
                if trouble_code(&error) == "provider" {
                    self.remote.desk.metrics.provider_errors.add_one();
                }
                trouble(&error)
            }
        }
    }

    fn greet(&self, runtime: &Runtime) {
        let conversation = &self.remote.conversation;
        if runtime.door.memory.recent(conversation, 1).is_ok_and(|turns| turns.is_empty()) {
            self.remote.desk.metrics.conversations.add_one();
            runtime.door.events.tell(Event::ConversationStarted { conversation });
        }
    }
}

fn trouble(error: &TurnError) -> Over {
    let retry_after = match error {
        TurnError::Provider(ProviderError::Limit { retry_after, .. }) => *retry_after,
        _ => None,
    };
    Over::Trouble { code: trouble_code(error), message: Chain(error).to_string(), retry_after }
}

fn trouble_code(error: &TurnError) -> &'static str {
    match error {
        TurnError::Provider(ProviderError::Limit { .. }) => "used-up",
        TurnError::Provider(_) => "provider",
        TurnError::Receipt(_) => "receipts",
        TurnError::Memory(_) => "memory",
        TurnError::TooManyRounds { .. } | TurnError::TooManyCalls => "limit",
        TurnError::Cancelled => "cancelled",
    }
}
