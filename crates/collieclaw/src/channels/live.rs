//! An answer that is shown while it is being written.

use std::io::Write;

use super::visible_lines;
use crate::runtime::{Answer, Asked, Notice, Operator, Posed, Reply};

/// Shows what comes, and passes everything else on to whoever is asked.
pub(super) struct Live<'l> {
    inner: Box<dyn Operator>,
    out: &'l mut dyn Write,
    err: fn() -> Box<dyn Write>,
    watched: bool,
    shown: String,
}

impl<'l> Live<'l> {
    /// Bits go to `out` if somebody watches.
    pub(super) fn new(
        inner: Box<dyn Operator>,
        out: &'l mut dyn Write,
        err: fn() -> Box<dyn Write>,
        watched: bool,
    ) -> Self {
        Self { inner, out, err, watched, shown: String::new() }
    }

    /// What is shown of the last answer, its line still open.
    pub(super) fn end(self) -> String {
        self.shown
    }

    fn show(&mut self, text: &str) {
        // Whoever can't be told isn't.
        let _ = self.out.write_all(visible_lines(text).as_bytes()).and_then(|()| self.out.flush());
    }

    /// Ends the line of what was shown; says whether there was anything.
    fn close(&mut self) -> bool {
        let shown = !std::mem::take(&mut self.shown).is_empty();
        if shown {
            self.show("\n");
        }
        shown
    }
}

impl Operator for Live<'_> {
    fn is_there(&self) -> bool {
        self.inner.is_there()
    }

    fn ask(&mut self, asked: &Asked<'_>) -> Answer {
        self.inner.ask(asked)
    }

    fn question(&mut self, question: &Posed<'_>) -> Reply {
        self.inner.question(question)
    }

    fn notice(&mut self, notice: Notice<'_>) {
        match notice {
            Notice::Draft(text) if self.watched => {
                // From here on everybody sees that it doesn't only think.
                if self.shown.is_empty() {
                    self.inner.notice(Notice::Thought);
                }
                self.show(text);
                self.shown.push_str(text);
            }
            Notice::DraftVoid => {
                self.inner.notice(notice);
                if self.close() {
                    let _ = writeln!((self.err)(), "\x1b[2m(it broke off here: this is no answer)\x1b[0m");
                }
            }
            Notice::Says(text) => match text.strip_prefix(self.shown.as_str()) {
                Some(rest) if !self.shown.is_empty() => {
                    self.show(rest);
                    self.close();
                }
                _ => {
                    self.close();
                    self.inner.notice(notice);
                }
            },
            other => self.inner.notice(other),
        }
    }
}
