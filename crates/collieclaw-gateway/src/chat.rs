//! `POST /chat`: takes a message and returns the answer, as JSON or as a stream of events.

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

/// The body of a chat request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChatRequestBody {
    message: String,
    /// The conversation to continue; without it, a new one is started.
    conversation_id: Option<String>,
    /// Hints for a provider of kind `router`.
    hint: Option<String>,
}

/// The maximum length of a conversation name or hint.
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
            return bad(
                "invalid conversation name: names that start with `run-` are reserved for procedures",
            );
        }
        if !self.conversation_id.iter().chain(&self.hint).all(is_name) {
            return bad("invalid conversation name or hint");
        }
        Ok(())
    }
}

pub(super) async fn chat(
    State(gateway): State<Arc<GatewayState>>,
    Extension(peer): Extension<TcpPeer>,
    request: Request,
) -> Result<Response, ErrorResponse> {
    let accepted = request.headers().get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok());
    let as_events = accepted.is_some_and(|accepted| accepted.contains("text/event-stream"));
    let message: ChatRequestBody = parse_json_body(request).await?;
    message.validate()?;
    gateway.message_limiter.take().map_err(ErrorResponse::rate_limited)?;
    let turn = RunningTurn::begin(&gateway, message, peer)?;
    if !as_events {
        return Ok(collect_response(turn).await);
    }
    let kind = HeaderValue::from_static("text/event-stream");
    Ok(([(header::CONTENT_TYPE, kind)], Body::from_stream(ChatEventStream::new(turn))).into_response())
}

async fn collect_response(mut turn: RunningTurn) -> Response {
    let mut calls = Vec::new();
    while let Some(event) = turn.events.recv().await {
        match event {
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

/// Returns the outcome of a turn whose thread ended without a result.
fn aborted_outcome() -> ChatOutcome {
    ChatOutcome::Failed {
        code: "internal",
        message: "the turn ended unexpectedly".to_owned(),
        retry_after: None,
    }
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
