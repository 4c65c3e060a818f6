//! `POST /chat`: a message in; its answer out, whole as JSON or bit by bit as events.

mod stream;
mod turn;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Response};
use collieclaw_agent::sop::is_run_name;
use collieclaw_listen::TcpPeer;
use serde::Deserialize;
use serde_json::{Value, json};

use super::remote_operator::{ChatEvent, ChatOutcome};
use super::response::{ErrorResponse, json_response, json_response_with_status, parse_json_body};
use super::state::GatewayState;
use stream::ChatEventStream;
use turn::RunningTurn;

/// What is sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChatRequestBody {
    message: String,
    /// The conversation to go on with; a new one, if there is none.
    conversation_id: Option<String>,
    /// For a provider that chooses by hints.
    hint: Option<String>,
}

/// Of the name of a conversation or a hint: a longer one is a mistake.
const MAX_NAME_BYTES: usize = 128;

impl ChatRequestBody {
    fn validate(&self) -> Result<(), ErrorResponse> {
        let bad = |message: &str| Err(ErrorResponse::new(StatusCode::BAD_REQUEST, "bad-body", message));
        let is_name = |name: &String| {
            !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.chars().any(char::is_control)
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
    State(desk): State<Arc<GatewayState>>,
    Extension(peer): Extension<TcpPeer>,
    request: Request,
) -> Result<Response, ErrorResponse> {
    let accepted = request.headers().get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok());
    let as_events = accepted.is_some_and(|accepted| accepted.contains("text/event-stream"));
    let message: ChatRequestBody = parse_json_body(request).await?;
    message.validate()?;
    desk.message_limiter.take().map_err(ErrorResponse::rate_limited)?;
    let turn = RunningTurn::begin(&desk, message, peer)?;
    if !as_events {
        return Ok(collect_response(turn).await);
    }
    let kind = HeaderValue::from_static("text/event-stream");
    Ok(([(header::CONTENT_TYPE, kind)], Body::from_stream(ChatEventStream::new(turn))).into_response())
}

async fn collect_response(mut turn: RunningTurn) -> Response {
    let mut calls = Vec::new();
    while let Some(told) = turn.events.recv().await {
        match told {
            ChatEvent::ToolFinished(ended) => calls.push(json!(ended)),
            ChatEvent::TurnFinished(over) => return final_response(&turn.conversation, &calls, over),
            ChatEvent::Draft(_)
            | ChatEvent::DraftDiscarded
            | ChatEvent::ToolStarted { .. }
            | ChatEvent::ApprovalRequested(_) => {}
        }
    }
    final_response(&turn.conversation, &calls, aborted_outcome())
}

/// A turn whose thread is gone without a word.
fn aborted_outcome() -> ChatOutcome {
    ChatOutcome::Failed { code: "internal", message: "the turn broke off".to_owned(), retry_after: None }
}

fn final_response(conversation: &str, calls: &[Value], over: ChatOutcome) -> Response {
    match over {
        ChatOutcome::Answer(answer) => {
            json_response(&json!({ "conversation_id": conversation, "answer": answer, "tool_calls": calls }))
        }
        ChatOutcome::Failed { code, message, retry_after } => {
            let status = match code {
                "provider" => StatusCode::BAD_GATEWAY,
                "used-up" => StatusCode::TOO_MANY_REQUESTS,
                "cancelled" => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            };
            let error = json!({ "code": code, "message": message });
            let mut response = json_response_with_status(
                status,
                &json!({ "conversation_id": conversation, "error": error, "tool_calls": calls }),
            );
            let seconds = retry_after.map(|seconds| (header::RETRY_AFTER, HeaderValue::from(seconds)));
            response.headers_mut().extend(seconds);
            response
        }
    }
}
