//! `GET /approvals` and `POST /approvals/{id}`.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;

use super::{ApprovalPayload, ApprovalQueue, ApprovalView, SubmittedAnswer};
use crate::response::{ErrorResponse, json_response, parse_json_body};
use crate::state::GatewayState;

/// Lists open approvals and questions, oldest first.
pub(crate) async fn list(State(gateway): State<Arc<GatewayState>>) -> Response {
    let mut shown: Vec<ApprovalView> =
        gateway.approvals.lock_pending().values().map(|waiting| waiting.view.clone()).collect();
    shown.sort_by_key(|shown| shown.asked_at);
    json_response(&shown)
}

/// The body of an answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalAnswerBody {
    approve: Option<bool>,
    /// The hash of the arguments that the operator saw; an approval without the hash is refused.
    args_hash: Option<String>,
    /// Approve exactly this call permanently.
    #[serde(default)]
    always: bool,
    /// The text answer to a question.
    answer: Option<String>,
}

/// Handles the answer to an open approval or question.
pub(crate) async fn answer(
    State(gateway): State<Arc<GatewayState>>,
    id: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, ErrorResponse> {
    let Path(id) = id.map_err(|_| ErrorResponse::bad_address("the id must be text"))?;
    let body: ApprovalAnswerBody = parse_json_body(request).await?;
    let approved = gateway.approvals.submit(&id, body)?;
    Ok(json_response(&json!({ "id": id, "approved": approved })))
}

impl ApprovalQueue {
    /// Delivers an answer to the waiting turn. Returns whether the call was approved.
    fn submit(&self, id: &str, body: ApprovalAnswerBody) -> Result<bool, ErrorResponse> {
        let gone = || {
            ErrorResponse::new(
                StatusCode::NOT_FOUND,
                "not-asked",
                "no approval or question with this id is open",
            )
        };
        let mut all = self.lock_pending();
        let waiting = all.get(id).ok_or_else(gone)?;
        let word = body.into_answer(&waiting.view.what)?;
        let approved = matches!(word, SubmittedAnswer::Yes | SubmittedAnswer::Always);
        let heard = waiting.answer_sender.try_send(word).is_ok();
        // Each entry accepts only one answer.
        all.remove(id);
        if heard { Ok(approved) } else { Err(gone()) }
    }
}

impl ApprovalAnswerBody {
    fn into_answer(self, what: &ApprovalPayload) -> Result<SubmittedAnswer, ErrorResponse> {
        let bad = |message: &str| ErrorResponse::new(StatusCode::BAD_REQUEST, "bad-body", message);
        let other = |message: &str| ErrorResponse::new(StatusCode::CONFLICT, "other-arguments", message);
        match (what, self) {
            (_, Self { approve: Some(false), always: false, answer: None, .. }) => Ok(SubmittedAnswer::No),
            (
                ApprovalPayload::Question { .. },
                Self { approve: None, always: false, answer: Some(answer), .. },
            ) => Ok(SubmittedAnswer::Text(answer)),
            (ApprovalPayload::Question { .. }, _) => {
                Err(bad("a question needs an `answer`, or `approve: false` to decline"))
            }
            (
                ApprovalPayload::Approval { args_hash: shown, lasting, .. },
                Self { approve: Some(true), args_hash, always, answer: None },
            ) => {
                if args_hash.as_ref() != Some(shown) {
                    return Err(other("an approval must repeat the `args_hash` of the call that was shown"));
                }
                match (always, lasting) {
                    (false, _) => Ok(SubmittedAnswer::Yes),
                    (true, true) => Ok(SubmittedAnswer::Always),
                    (true, false) => Err(other("this call can only be approved once, not always")),
                }
            }
            (ApprovalPayload::Approval { .. }, _) => Err(bad("a call needs `approve`, true or false")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use collieclaw_providers::cancel::CancelFlag;
    use std::time::Duration;

    fn approval_payload() -> ApprovalPayload {
        ApprovalPayload::Approval {
            tool: "file_write".to_owned(),
            arguments: json!({}),
            args_hash: "shown".to_owned(),
            preview: None,
            risk: collieclaw_gate::RiskLevel::Medium,
            reasons: Vec::new(),
            lasting: false,
        }
    }

    fn approving_body() -> ApprovalAnswerBody {
        ApprovalAnswerBody {
            approve: Some(true),
            args_hash: Some("shown".to_owned()),
            always: false,
            answer: None,
        }
    }

    #[test]
    fn after_the_end_of_patience_a_yes_is_refused() {
        let approvals = ApprovalQueue::new(Duration::ZERO);
        let open = approvals.enqueue("mine", approval_payload()).unwrap();
        assert_eq!(open.wait_for_answer(&CancelFlag::new().unwrap()), None);
        let late = approvals.submit(&open.view.id, approving_body()).unwrap_err();
        assert_eq!((late.status, late.code), (StatusCode::NOT_FOUND, "not-asked"));
    }

    #[test]
    fn a_yes_at_the_last_moment_counts_or_is_refused() {
        let approvals = ApprovalQueue::new(Duration::from_millis(1));
        let cancel = CancelFlag::new().unwrap();
        for round in 0..300 {
            let open = approvals.enqueue("mine", approval_payload()).unwrap();
            let id = open.view.id.clone();
            std::thread::scope(|scope| {
                let answering = scope.spawn(|| {
                    // The passing of time is what is tested: the answers come just before and just after the end.
                    std::thread::sleep(Duration::from_micros(700 + 2 * round));
                    approvals.submit(&id, approving_body())
                });
                let heard = open.wait_for_answer(&cancel);
                assert_eq!(
                    answering.join().unwrap().is_ok(),
                    heard == Some(SubmittedAnswer::Yes),
                    "{round}: {heard:?}"
                );
            });
        }
    }
}
