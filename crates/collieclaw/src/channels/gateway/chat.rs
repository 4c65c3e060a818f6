//! `POST /chat`: a message in; its answer out, whole as JSON or bit by bit as events.

mod stream;
mod turn;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{Refusal, json_answer, sent, with_status};
use super::desk::Desk;
use super::operator::{Over, Told};
use crate::listen::Peer;
use crate::sop::is_run_name;
use stream::Events;
use turn::Turn;

/// What is sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    message: String,
    /// The conversation to go on with; a new one, if there is none.
    conversation_id: Option<String>,
    /// For a provider that chooses by hints.
    hint: Option<String>,
}

/// Of the name of a conversation or a hint: a longer one is a mistake.
const LONGEST_NAME: usize = 128;

impl Message {
    fn fits(&self) -> Result<(), Refusal> {
        let bad = |message: &str| Err(Refusal::new(StatusCode::BAD_REQUEST, "bad-body", message));
        let is_name = |name: &String| {
            !name.is_empty() && name.len() <= LONGEST_NAME && !name.chars().any(char::is_control)
        };
        if self.message.trim().is_empty() {
            return bad("the message is empty");
        }
        if self.conversation_id.as_deref().is_some_and(is_run_name) {
            return bad("this can't be the name of a conversation: what begins with `run-` is a procedure's");
        }
        if !self.conversation_id.iter().chain(&self.hint).all(is_name) {
            return bad("this can't be the name of a conversation, or a hint");
        }
        Ok(())
    }
}

pub(super) async fn chat(
    State(desk): State<Arc<Desk>>,
    Extension(peer): Extension<Peer>,
    request: Request,
) -> Result<Response, Refusal> {
    let accepted = request.headers().get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok());
    let as_events = accepted.is_some_and(|accepted| accepted.contains("text/event-stream"));
    let message: Message = sent(request).await?;
    message.fits()?;
    desk.messages.take().map_err(Refusal::too_often)?;
    let turn = Turn::begin(&desk, message, peer)?;
    if !as_events {
        return Ok(whole(turn).await);
    }
    let kind = HeaderValue::from_static("text/event-stream");
    Ok(([(header::CONTENT_TYPE, kind)], Body::from_stream(Events::new(turn))).into_response())
}

async fn whole(mut turn: Turn) -> Response {
    let mut calls = Vec::new();
    while let Some(told) = turn.told.recv().await {
        match told {
            Told::Ended(ended) => calls.push(json!(ended)),
            Told::Over(over) => return ended(&turn.conversation, &calls, over),
            Told::Draft(_) | Told::DraftVoid | Told::Begins { .. } | Told::Approval(_) => {}
        }
    }
    ended(&turn.conversation, &calls, broken_off())
}

/// A turn whose thread is gone without a word.
fn broken_off() -> Over {
    Over::Trouble { code: "internal", message: "the turn broke off".to_owned(), retry_after: None }
}

fn ended(conversation: &str, calls: &[Value], over: Over) -> Response {
    match over {
        Over::Answer(answer) => {
            json_answer(&json!({ "conversation_id": conversation, "answer": answer, "tool_calls": calls }))
        }
        Over::Trouble { code, message, retry_after } => {
            let status = match code {
                "provider" => StatusCode::BAD_GATEWAY,
                "used-up" => StatusCode::TOO_MANY_REQUESTS,
                "cancelled" => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            };
            let error = json!({ "code": code, "message": message });
            let mut response = with_status(
                status,
                &json!({ "conversation_id": conversation, "error": error, "tool_calls": calls }),
            );
            let seconds = retry_after.map(|seconds| (header::RETRY_AFTER, HeaderValue::from(seconds)));
            response.headers_mut().extend(seconds);
            response
        }
    }
}
