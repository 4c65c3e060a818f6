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

/// What waits, oldest first.
pub(crate) async fn list(State(desk): State<Arc<GatewayState>>) -> Response {
    let mut shown: Vec<ApprovalView> =
        desk.approvals.lock_pending().values().map(|waiting| waiting.view.clone()).collect();
    shown.sort_by_key(|shown| shown.asked_at);
    json_response(&shown)
}

/// What an operator says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalAnswerBody {
    approve: Option<bool>,
    /// Of what was looked at; a yes without it is to nothing.
    args_hash: Option<String>,
    /// From now on without a question.
    #[serde(default)]
    always: bool,
    /// To a question.
    answer: Option<String>,
}

/// The answer to one of them.
pub(crate) async fn answer(
    State(desk): State<Arc<GatewayState>>,
    id: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, ErrorResponse> {
    let Path(id) = id.map_err(|_| ErrorResponse::bad_address("the number of a question must be text"))?;
    let said: ApprovalAnswerBody = parse_json_body(request).await?;
    let approved = desk.approvals.submit(&id, said)?;
    Ok(json_response(&json!({ "id": id, "approved": approved })))
}

impl ApprovalQueue {
    /// Gives an answer to whoever waits for it; whether it was a yes.
    fn submit(&self, id: &str, said: ApprovalAnswerBody) -> Result<bool, ErrorResponse> {
        let gone = || {
            ErrorResponse::new(StatusCode::NOT_FOUND, "not-asked", "nothing with this id waits for an answer")
        };
        let mut all = self.lock_pending();
        let waiting = all.get(id).ok_or_else(gone)?;
        let word = said.into_answer(&waiting.view.what)?;
        let approved = matches!(word, SubmittedAnswer::Yes | SubmittedAnswer::Always);
        let heard = waiting.answer_sender.try_send(word).is_ok();
        // One answer is all there is.
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
                Err(bad("a question wants an `answer`, or `approve: false` for none"))
            }
            (
                ApprovalPayload::Approval { args_hash: shown, lasting, .. },
                Self { approve: Some(true), args_hash, always, answer: None },
            ) => {
                if args_hash.as_ref() != Some(shown) {
                    return Err(other("a yes must repeat the `args_hash` of exactly what was shown"));
                }
                match (always, lasting) {
                    (false, _) => Ok(SubmittedAnswer::Yes),
                    (true, true) => Ok(SubmittedAnswer::Always),
                    (true, false) => Err(other("a yes to this counts once: it can't be for good")),
                }
            }
            (ApprovalPayload::Approval { .. }, _) => Err(bad("a call wants `approve`, true or false")),
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
