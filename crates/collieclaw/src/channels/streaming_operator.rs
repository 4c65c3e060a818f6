//! An answer that is shown while it is being written.

use std::io::Write;

use collieclaw_agent::runtime::{
    ApprovalAnswer, ApprovalPrompt, Operator, OperatorQuestion, OperatorReply, ProgressNotice,
};
use ward_terminal::escape_lines;

/// Shows what comes, and passes everything else on to whoever is asked.
pub(super) struct StreamingOperator<'l> {
    inner: Box<dyn Operator>,
    out: &'l mut dyn Write,
    err: fn() -> Box<dyn Write>,
    is_watched: bool,
    shown: String,
}

impl<'l> StreamingOperator<'l> {
    /// Bits go to `out` if somebody watches.
    pub(super) fn new(
        inner: Box<dyn Operator>,
        out: &'l mut dyn Write,
        err: fn() -> Box<dyn Write>,
        watched: bool,
    ) -> Self {
        Self { inner, out, err, is_watched: watched, shown: String::new() }
    }

    /// What is shown of the last answer, its line still open.
    pub(super) fn into_shown(self) -> String {
        self.shown
    }

    fn show(&mut self, text: &str) {
        // Whoever can't be told isn't.
        let _ = self.out.write_all(escape_lines(text).as_bytes()).and_then(|()| self.out.flush());
    }

    /// Ends the line of what was shown; says whether there was anything.
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

    fn ask_approval(&mut self, asked: &ApprovalPrompt<'_>) -> ApprovalAnswer {
        self.inner.ask_approval(asked)
    }

    fn ask_question(&mut self, question: &OperatorQuestion<'_>) -> OperatorReply {
        self.inner.ask_question(question)
    }

    fn notify(&mut self, notice: ProgressNotice<'_>) {
        match notice {
            ProgressNotice::Draft(text) if self.is_watched => {
                // From here on everybody sees that it doesn't only think.
                if self.shown.is_empty() {
                    self.inner.notify(ProgressNotice::ThinkingEnded);
                }
                self.show(text);
                self.shown.push_str(text);
            }
            ProgressNotice::DraftDiscarded => {
                self.inner.notify(notice);
                if self.end_line() {
                    let _ = writeln!((self.err)(), "\x1b[2m(it broke off here: this is no answer)\x1b[0m");
                }
            }
            ProgressNotice::AssistantText(text) => match text.strip_prefix(self.shown.as_str()) {
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
