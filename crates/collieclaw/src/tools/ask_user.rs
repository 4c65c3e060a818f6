//! `ask_user`: a question to the person, and their answer as text. It approves nothing.

use collieclaw_gate::Call;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{BuiltIn, Context, Prepared, ToolResult};
use crate::runtime::{Granted, Posed, Reply};

/// See the module.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AskUser {
    /// The question, at most 2000 bytes.
    question: String,
    /// Up to 16 answers to choose from; any answer, if absent.
    #[serde(default)]
    choices: Vec<String>,
}

/// A question that fills the screen hides what was before it.
const LONGEST_QUESTION: usize = 2_000;
const MOST_CHOICES: usize = 16;
const LONGEST_CHOICE: usize = 200;

/// Whoever gives another answer than those offered so often does not want to give one.
const ATTEMPTS: usize = 3;

impl BuiltIn for AskUser {
    const NAME: &'static str = "ask_user";
    const DESCRIPTION: &'static str =
        "Asks the person a question and returns the answer as text. It can't be used to get a permission.";

    fn fit(&self) -> Result<(), String> {
        if self.question.trim().is_empty() || self.question.len() > LONGEST_QUESTION {
            return Err(format!("`question` must have 1 to {LONGEST_QUESTION} bytes"));
        }
        let fits = |choice: &String| !choice.trim().is_empty() && choice.len() <= LONGEST_CHOICE;
        if self.choices.len() > MOST_CHOICES || !self.choices.iter().all(fits) {
            return Err(format!(
                "`choices` must be at most {MOST_CHOICES}, each of 1 to {LONGEST_CHOICE} bytes"
            ));
        }
        Ok(())
    }
}

impl Prepared for AskUser {
    fn call(&self) -> Call<'_> {
        Call::Look
    }

    fn invoke(self: Box<Self>, _: Granted, context: &Context<'_>) -> ToolResult {
        let posed = Posed { text: &self.question, choices: &self.choices, cancel: context.cancel };
        for _ in 0..ATTEMPTS {
            let said = match context.questioner.ask(&posed) {
                _ if context.cancel.why().is_some() => {
                    return ToolResult::cancelled();
                }
                Reply::Said(said) => said,
                Reply::Nothing => return ToolResult::failed("the person gave no answer"),
                Reply::Nobody => return ToolResult::failed("nobody is there to ask"),
            };
            match self.chosen(said.trim()) {
                Some(answer) => return ToolResult::done(answer),
                None if self.choices.is_empty() => break,
                None => {}
            }
        }
        ToolResult::failed("the person gave no answer")
    }
}

impl AskUser {
    /// By number or by its words; any words where nothing is to be chosen.
    fn chosen<'a>(&'a self, said: &'a str) -> Option<&'a str> {
        if self.choices.is_empty() {
            return (!said.is_empty()).then_some(said);
        }
        let number = said.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let numbered = number.and_then(|index| self.choices.get(index));
        let named = self.choices.iter().find(|choice| choice.trim() == said);
        named.or(numbered).map(String::as_str)
    }
}
