//! `GET /approvals` and `POST /approvals/{id}`.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;

use super::{Shown, What, Word};
use crate::channels::gateway::answer::{Refusal, json_answer, sent};
use crate::channels::gateway::desk::Desk;

/// What waits, oldest first.
pub(in crate::channels::gateway) async fn list(State(desk): State<Arc<Desk>>) -> Response {
    let mut shown: Vec<Shown> =
        desk.approvals.waiting().values().map(|waiting| waiting.shown.clone()).collect();
    shown.sort_by_key(|shown| shown.asked_at);
    json_answer(&shown)
}

/// What an operator says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
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
pub(in crate::channels::gateway) async fn answer(
    State(desk): State<Arc<Desk>>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let said: Said = sent(request).await?;
    let mut all = desk.approvals.waiting();
    let gone =
        || Refusal::new(StatusCode::NOT_FOUND, "not-asked", "nothing with this id waits for an answer");
    let waiting = all.get(&id).ok_or_else(gone)?;
    let word = said.word_to(&waiting.shown.what)?;
    let approved = matches!(word, Word::Yes | Word::Always);
    let heard = waiting.word.try_send(word).is_ok();
    // One answer is all there is.
    all.remove(&id);
    if heard { Ok(json_answer(&json!({ "id": id, "approved": approved }))) } else { Err(gone()) }
}

impl Said {
    fn word_to(self, what: &What) -> Result<Word, Refusal> {
        let bad = |message: &str| Refusal::new(StatusCode::BAD_REQUEST, "bad-body", message);
        let other = |message: &str| Refusal::new(StatusCode::CONFLICT, "other-arguments", message);
        match (what, self) {
            (_, Self { approve: Some(false), always: false, answer: None, .. }) => Ok(Word::No),
            (What::Question { .. }, Self { approve: None, always: false, answer: Some(answer), .. }) => {
                Ok(Word::Words(answer))
            }
            (What::Question { .. }, _) => {
                Err(bad("a question wants an `answer`, or `approve: false` for none"))
            }
            (
                What::Approval { args_hash: shown, lasting, .. },
                Self { approve: Some(true), args_hash, always, answer: None },
            ) => {
                if args_hash.as_ref() != Some(shown) {
                    return Err(other("a yes must repeat the `args_hash` of exactly what was shown"));
                }
                match (always, lasting) {
                    (false, _) => Ok(Word::Yes),
                    (true, true) => Ok(Word::Always),
                    (true, false) => Err(other("a yes to this counts once: it can't be for good")),
                }
            }
            (What::Approval { .. }, _) => Err(bad("a call wants `approve`, true or false")),
        }
    }
}
