//! A turn as server-sent events: `draft`, `tool`, `approval`, then `answer` or `error`, and `done` at the end.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use futures_core::Stream;
use serde_json::{Value, json};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::turn::Turn;
use crate::channels::gateway::operator::Told;

/// A turn as it is told.
pub(super) struct Events {
    turn: Turn,
    pulse: Interval,
    over: bool,
}

/// While a model thinks, a word now and then shows both sides that the other is there.
const PULSE: Duration = Duration::from_secs(10);

impl Events {
    pub(super) fn new(turn: Turn) -> Self {
        let mut pulse = interval_at(Instant::now() + PULSE, PULSE);
        pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { turn, pulse, over: false }
    }

    fn told(&mut self, told: &Told) -> Bytes {
        let (name, mut value) = told.event();
        if !matches!(told, Told::Over(_)) {
            return framed(name, &value).into();
        }
        self.over = true;
        let conversation = json!(self.turn.conversation);
        if let Value::Object(members) = &mut value {
            members.insert("conversation_id".to_owned(), conversation.clone());
        }
        let done = framed("done", &json!({ "conversation_id": conversation }));
        (framed(name, &value) + &done).into()
    }
}

/// JSON has no line ends of its own.
fn framed(name: &str, value: &Value) -> String {
    format!("event: {name}\ndata: {value}\n\n")
}

impl Stream for Events {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        if let Poll::Ready(told) = self.turn.told.poll_recv(context) {
            let told = told.unwrap_or_else(|| Told::Over(super::broken_off()));
            return Poll::Ready(Some(Ok(self.told(&told))));
        }
        self.pulse.poll_tick(context).map(|_| Some(Ok(Bytes::from_static(b": still here\n\n"))))
    }
}
