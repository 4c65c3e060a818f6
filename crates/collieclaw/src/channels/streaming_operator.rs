//! An operator that shows an answer while the model produces it.

use std::io::Write;

use collieclaw_agent::runtime::{
    AllowAnswer, AllowPrompt, ApprovalAnswer, ApprovalPrompt, Operator, OperatorQuestion, OperatorReply,
    ProgressNotice,
};
use ward_terminal::{TextTone, escape_lines, paint};

/// An operator that prints an answer while it arrives, and forwards everything else to the wrapped operator.
pub(super) struct StreamingOperator<'l> {
    inner: Box<dyn Operator>,
    out: &'l mut dyn Write,
    err: fn() -> Box<dyn Write>,
    is_watched: bool,
    /// The part of the current answer that was printed, without a newline after it.
    shown: String,
}

impl<'l> StreamingOperator<'l> {
    /// Creates an operator that prints streamed text to `out` if a person watches `out`.
    pub(super) fn new(
        inner: Box<dyn Operator>,
        out: &'l mut dyn Write,
        err: fn() -> Box<dyn Write>,
        is_watched: bool,
    ) -> Self {
        Self { inner, out, err, is_watched, shown: String::new() }
    }

    /// Returns the part of the last answer that was printed. No newline was printed after it.
    pub(super) fn into_shown(self) -> String {
        self.shown
    }

    fn show(&mut self, text: &str) {
        // A failed write to the terminal is ignored: the turn continues without it.
        let _ = self.out.write_all(escape_lines(text).as_bytes()).and_then(|()| self.out.flush());
    }

    /// Prints a newline after streamed text. Returns true if there was any.
    fn end_line(&mut self) -> bool {
        let shown = !std::mem::take(&mut self.shown).is_empty();
        if shown {
            self.show("\n");
        }
        shown
    }
}

impl Operator for StreamingOperator<'_> {
    fn is_available(&self) -> bool {
        self.inner.is_available()
    }

    fn ask_approval(&mut self, prompt: &ApprovalPrompt<'_>) -> ApprovalAnswer {
        self.inner.ask_approval(prompt)
    }

    fn ask_allow(&mut self, asked: &AllowPrompt<'_>) -> AllowAnswer {
        self.inner.ask_allow(asked)
    }

    fn ask_question(&mut self, question: &OperatorQuestion<'_>) -> OperatorReply {
        self.inner.ask_question(question)
    }

    fn notify(&mut self, notice: ProgressNotice<'_>) {
        match notice {
            ProgressNotice::Draft(text) if self.is_watched => {
                // The first text replaces the spinner.
                if self.shown.is_empty() {
                    self.inner.notify(ProgressNotice::ThinkingEnded);
                }
                self.show(text);
                self.shown.push_str(text);
            }
            ProgressNotice::DraftDiscarded => {
                self.inner.notify(notice);
                if self.end_line() {
                    let remark = "(the answer broke off here and is incomplete)";
                    let _ = writeln!((self.err)(), "{}", paint(TextTone::Faint, remark));
                }
            }
            ProgressNotice::AssistantText(text) => match text.strip_prefix(self.shown.as_str()) {
                // The beginning is on the screen already, so only the rest is printed.
                Some(rest) if !self.shown.is_empty() => {
                    self.show(rest);
                    self.end_line();
                }
                _ => {
                    self.end_line();
                    self.inner.notify(notice);
                }
            },
            other => self.inner.notify(other),
        }
    }
}
