//! The tool `ask_user`, which asks the user a question and returns the answer as text. An answer approves
//! nothing.

use collieclaw_gate::GateRequest;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{BuiltInTool, PreparedCall, ToolContext, ToolResult};
use crate::runtime::{CallGrant, OperatorQuestion, OperatorReply};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AskUserCall {
    /// The question, at most 2000 bytes long.
    question: String,
    /// Up to 16 answers to choose from. If absent, the user may answer anything.
    #[serde(default)]
    choices: Vec<String>,
}

/// The maximum length of a question. A question must not scroll earlier output off the screen.
const MAX_QUESTION_BYTES: usize = 2_000;
const MAX_CHOICES: usize = 16;
const MAX_CHOICE_BYTES: usize = 200;

/// The number of answers that match no choice after which the tool gives up.
const MAX_ATTEMPTS: usize = 3;

impl BuiltInTool for AskUserCall {
    const NAME: &'static str = "ask_user";
    const DESCRIPTION: &'static str = "Asks the user a question and returns the answer as text. An answer doesn't approve other tool calls.";

    fn validate(&self) -> Result<(), String> {
        if self.question.trim().is_empty() || self.question.len() > MAX_QUESTION_BYTES {
            return Err(format!("`question` must have 1 to {MAX_QUESTION_BYTES} bytes"));
        }
        let fits = |choice: &String| !choice.trim().is_empty() && choice.len() <= MAX_CHOICE_BYTES;
        if self.choices.len() > MAX_CHOICES || !self.choices.iter().all(fits) {
            return Err(format!(
                "`choices` must have at most {MAX_CHOICES} entries of 1 to {MAX_CHOICE_BYTES} bytes each"
            ));
        }
        Ok(())
    }
}

impl PreparedCall for AskUserCall {
    fn call(&self) -> GateRequest<'_> {
        GateRequest::ReadOnly
    }

    fn invoke(self: Box<Self>, _: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        let question =
            OperatorQuestion { text: &self.question, choices: &self.choices, cancel: context.cancel };
        for _ in 0..MAX_ATTEMPTS {
            let reply = match context.questioner.ask(&question) {
                _ if context.cancel.reason().is_some() => {
                    return ToolResult::cancelled();
                }
                OperatorReply::Text(reply) => reply,
                OperatorReply::NoAnswer => return ToolResult::failed("the user gave no answer"),
                OperatorReply::Unavailable => {
                    return ToolResult::failed("no operator is available to answer");
                }
            };
            match self.match_choice(reply.trim()) {
                Some(answer) => return ToolResult::done(answer),
                None if self.choices.is_empty() => break,
                None => {}
            }
        }
        ToolResult::failed("the user gave no answer")
    }
}

impl AskUserCall {
    /// Returns the choice with this number or text. Without choices, returns any text that is not empty.
    fn match_choice<'a>(&'a self, reply: &'a str) -> Option<&'a str> {
        if self.choices.is_empty() {
            return (!reply.is_empty()).then_some(reply);
        }
        let number = reply.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let numbered = number.and_then(|index| self.choices.get(index));
        let named = self.choices.iter().find(|choice| choice.trim() == reply);
        named.or(numbered).map(String::as_str)
    }
}
