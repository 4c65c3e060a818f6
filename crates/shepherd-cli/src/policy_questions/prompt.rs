//! Asks at the terminal. Everything is written to standard error, because standard output may be redirected.

use std::io::{BufRead, Read, Write};

use ward_terminal::{TextTone, paint};

use crate::error::ShepherdCliError;
use crate::pin::prompt_hidden;

/// The longest answer in bytes. Anything longer is no answer to these questions.
const MAX_ANSWER: u64 = 4096;

/// A person who answers questions.
pub(super) trait AnswerSource {
    /// Shows a text, of one or more lines.
    fn say(&mut self, text: &str);

    /// Shows a question, and returns the line that is typed, without white space around it.
    ///
    /// # Errors
    /// Fails at the end of the input.
    fn read_answer(&mut self, question: &str) -> Result<String, ShepherdCliError>;

    /// Like [`Self::read_answer`], but what is typed isn't shown.
    fn read_hidden(&mut self, question: &str) -> Result<String, ShepherdCliError>;

    /// Shows the heading of one of the eight questions.
    fn start_question(&mut self, number: usize, title: &str) {
        self.say(&format!(
            "\n{} {}",
            paint(TextTone::Faint, &format!("{number}/8")),
            paint(TextTone::Strong, title)
        ));
    }

    /// Says what is wrong with an answer.
    fn complain(&mut self, problem: &str) {
        self.say(&format!("  {} {problem}", paint(TextTone::Warn, "!")));
    }

    /// Asks until an answer is valid. An empty answer stands for the default, if there is one.
    fn ask<T>(
        &mut self,
        question: &str,
        default: Option<&str>,
        mut check: impl FnMut(&str, &mut Self) -> Result<Option<T>, ShepherdCliError>,
    ) -> Result<T, ShepherdCliError>
    where
        Self: Sized,
    {
        let shown = default.map(|default| format!(" [{default}]")).unwrap_or_default();
        loop {
            let typed = self.read_answer(&format!("  {question}{shown}: "))?;
            let answer = match (typed.as_str(), default) {
                ("", Some(default)) => default,
                ("", None) => {
                    self.complain("Please type an answer.");
                    continue;
                }
                (typed, _) => typed,
            };
            if answer.contains(char::is_control) {
                self.complain("That has special keys in it, such as arrows. Please type it again.");
            } else if let Some(valid) = check(answer, self)? {
                return Ok(valid);
            }
        }
    }

    /// Asks until the answer is yes or no.
    fn ask_yes(&mut self, question: &str, default: bool) -> Result<bool, ShepherdCliError>
    where
        Self: Sized,
    {
        let shown = if default { "Y/n" } else { "y/N" };
        loop {
            let typed = self.read_answer(&format!("  {question} [{shown}] "))?;
            match typed.to_lowercase().as_str() {
                "" => return Ok(default),
                "y" | "yes" | "j" | "ja" => return Ok(true),
                "n" | "no" | "nein" => return Ok(false),
                _ => self.complain("Please type y or n."),
            }
        }
    }
}

/// The person at this terminal.
pub(super) struct TerminalPrompt;

impl AnswerSource for TerminalPrompt {
    fn say(&mut self, text: &str) {
        // If the terminal is gone, the next answer is the end of the input.
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    }

    fn read_answer(&mut self, question: &str) -> Result<String, ShepherdCliError> {
        let mut error_output = anstream::stderr().lock();
        let _ = write!(error_output, "{question}").and_then(|()| error_output.flush());
        drop(error_output);
        let mut line = Vec::new();
        let mut bounded = std::io::stdin().lock().take(MAX_ANSWER);
        bounded.read_until(b'\n', &mut line).map_err(ShepherdCliError::io("read the answer"))?;
        if !line.ends_with(b"\n") {
            self.say("");
            return Err(ShepherdCliError::QuestionsNotAnswered);
        }
        Ok(String::from_utf8_lossy(&line).trim().to_owned())
    }

    fn read_hidden(&mut self, question: &str) -> Result<String, ShepherdCliError> {
        prompt_hidden(question)
    }
}
