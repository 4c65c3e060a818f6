//! `GET /approvals` and `POST /approvals/{id}`.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;

use super::{Approvals, Shown, What, Word};
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
    id: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Refusal> {
    let Path(id) = id.map_err(|_| Refusal::bad_address("the number of a question must be text"))?;
    let said: Said = sent(request).await?;
    let approved = desk.approvals.hear(&id, said)?;
    Ok(json_answer(&json!({ "id": id, "approved": approved })))
}

impl Approvals {
    /// Gives an answer to whoever waits for it; whether it was a yes.
    fn hear(&self, id: &str, said: Said) -> Result<bool, Refusal> {
        let gone =
            || Refusal::new(StatusCode::NOT_FOUND, "not-asked", "nothing with this id waits for an answer");
        let mut all = self.waiting();
        let waiting = all.get(id).ok_or_else(gone)?;
        let word = said.word_to(&waiting.shown.what)?;
        let approved = matches!(word, Word::Yes | Word::Always);
        let heard = waiting.word.try_send(word).is_ok();
        // One answer is all there is.
        all.remove(id);
        if heard { Ok(approved) } else { Err(gone()) }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Cancel;
    use std::time::Duration;

    fn call() -> What {
        What::Approval {
            tool: "file_write".to_owned(),
            arguments: json!({}),
            args_hash: "shown".to_owned(),
            risk: collieclaw_gate::Risk::Medium,
            reasons: Vec::new(),
            lasting: false,
        }
    }

    fn yes() -> Said {
        Said { approve: Some(true), args_hash: Some("shown".to_owned()), always: false, answer: None }
    }

    #[test]
    fn after_the_end_of_patience_a_yes_is_refused() {
        let approvals = Approvals::new(Duration::ZERO);
        let open = approvals.open("mine", call()).unwrap();
        assert_eq!(open.heard(&Cancel::new().unwrap()), None);
        let late = approvals.hear(&open.shown.id, yes()).unwrap_err();
        assert_eq!((late.status, late.code), (StatusCode::NOT_FOUND, "not-asked"));
    }

    #[test]
    fn a_yes_at_the_last_moment_counts_or_is_refused() {
        let approvals = Approvals::new(Duration::from_millis(1));
        let cancel = Cancel::new().unwrap();
        for round in 0..300 {
            let open = approvals.open("mine", call()).unwrap();
            let id = open.shown.id.clone();
            std::thread::scope(|scope| {
                let answering = scope.spawn(|| {
                    std::thread::sleep(Duration::from_micros(700 + 2 * round));
                    approvals.hear(&id, yes())
                });
                let heard = open.heard(&cancel);
                assert_eq!(answering.join().unwrap().is_ok(), heard == Some(Word::Yes), "{round}: {heard:?}");
            });
        }
    }
}
