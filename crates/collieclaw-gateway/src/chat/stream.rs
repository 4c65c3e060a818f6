//! A turn as server-sent events: `draft`, `tool`, `approval`, then `answer` or `error`, and `done` at the end.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use futures_core::Stream;
use serde_json::{Value, json};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::turn::RunningTurn;
use crate::remote_operator::ChatEvent;

/// The event stream of a turn.
pub(super) struct ChatEventStream {
    turn: RunningTurn,
    keepalive: Interval,
    finished: bool,
}

/// The interval of keep-alive comments, with which both sides notice a lost connection while the model thinks.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

impl ChatEventStream {
    pub(super) fn new(turn: RunningTurn) -> Self {
        let mut keepalive = interval_at(Instant::now() + KEEPALIVE_INTERVAL, KEEPALIVE_INTERVAL);
        keepalive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { turn, keepalive, finished: false }
    }

    fn encode_event(&mut self, event: &ChatEvent) -> Bytes {
        let (name, mut value) = event.sse_event();
        if !matches!(event, ChatEvent::TurnFinished(_)) {
            return format_sse_event(name, &value).into();
        }
        self.finished = true;
        let conversation = json!(self.turn.conversation);
        if let Value::Object(members) = &mut value {
            members.insert("conversation_id".to_owned(), conversation.clone());
        }
        let done = format_sse_event("done", &json!({ "conversation_id": conversation }));
        (format_sse_event(name, &value) + &done).into()
    }
}

/// Formats an event on one line, because compact JSON contains no line breaks.
fn format_sse_event(name: &str, value: &Value) -> String {
    format!("event: {name}\ndata: {value}\n\n")
}

impl Stream for ChatEventStream {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.finished {
            return Poll::Ready(None);
        }
        if let Poll::Ready(event) = self.turn.events.poll_recv(context) {
            let event = event.unwrap_or_else(|| ChatEvent::TurnFinished(super::aborted_outcome()));
            return Poll::Ready(Some(Ok(self.encode_event(&event))));
        }
        self.keepalive.poll_tick(context).map(|_| Some(Ok(Bytes::from_static(b": keep-alive\n\n"))))
    }
}
