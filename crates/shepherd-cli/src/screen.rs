//! The only module that writes to the terminal: colours for people at one, JSON for scripts.

use std::io::Write;

use rustix::termios::tcgetwinsize;
use serde::Serialize;
use serde_json::json;
use shepherd_util::Chain;

use crate::arguments::OutputFormat;
use crate::context::Look;
use crate::failure::Failure;
use crate::{text, words};

/// The width where nobody says it: what a page of text has had since there were terminals.
const DEFAULT_WIDTH: usize = 80;

/// What a text means; its colour follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Warn,
    Bad,
    Faint,
    Strong,
}

/// The text in the colour of its meaning.
pub(crate) fn paint(tone: Tone, text: &str) -> String {
    let colour = match tone {
        Tone::Good => 32,
        Tone::Warn => 33,
        Tone::Bad => 31,
        Tone::Faint => 2,
        Tone::Strong => 1,
    };
    format!("\x1b[{colour}m{text}\x1b[0m")
}

pub(crate) struct Screen {
    format: OutputFormat,
    is_heard: bool,
}

impl Screen {
    pub(crate) fn new(format: OutputFormat) -> Self {
        Self { format, is_heard: true }
    }

    /// The columns that there are: of the terminal, else of the variable that says so.
    pub(crate) fn width(&self) -> usize {
        let terminal = tcgetwinsize(std::io::stdout()).ok().map(|size| usize::from(size.ws_col));
        let said = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        terminal.filter(|columns| *columns > 0).or_else(said).unwrap_or(DEFAULT_WIDTH).clamp(40, 200)
    }

    /// One answer: `text` for people, `value` for scripts.
    pub(crate) fn answer(&mut self, value: &impl Serialize, text: impl FnOnce(&mut Self)) {
        match self.format {
            OutputFormat::Text => text(self),
            OutputFormat::Json => match serde_json::to_string_pretty(value) {
                Ok(json) => self.line(&json),
                Err(error) => self.line(&json!({ "error": error.to_string() }).to_string()),
            },
        }
    }

    /// One of many answers that come one after the other: JSON in one line each.
    pub(crate) fn next_answer(&mut self, value: &impl Serialize, text: impl FnOnce(&mut Self)) {
        match self.format {
            OutputFormat::Text => text(self),
            OutputFormat::Json => match serde_json::to_string(value) {
                Ok(json) => self.line(&json),
                Err(error) => self.line(&json!({ "error": error.to_string() }).to_string()),
            },
        }
    }

    /// Whether anybody still reads. What would go on for ever ends when nobody does.
    pub(crate) fn is_heard(&self) -> bool {
        self.is_heard
    }

    pub(crate) fn heading(&mut self, text: &str) {
        self.line(&format!("\n{}", paint(Tone::Strong, text)));
    }

    pub(crate) fn line(&mut self, text: &str) {
        // `anstream` takes the colours out when nobody would see them. A reader that has gone away
        // is no failure of ours.
        self.is_heard &= writeln!(anstream::stdout().lock(), "{text}").is_ok();
    }

    /// Bytes for a file or a pipe, as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        let mut output = std::io::stdout().lock();
        self.is_heard &= output.write_all(bytes).and_then(|()| output.flush()).is_ok();
    }

    /// Something beside the answer: for people, where it does not get into a pipe.
    pub(crate) fn remark(&mut self, text: &str) {
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    }

    pub(crate) fn toned(&mut self, tone: Tone, mark: &str, text: &str) {
        self.line(&format!("  {} {text}", paint(tone, mark)));
    }

    /// The failure and everything behind it, in one sentence; below it what else is known, and the cure.
    pub(crate) fn failure(&mut self, failure: &Failure, look: &Look) {
        if let (OutputFormat::Json, Failure::Refused(error)) = (self.format, failure) {
            self.answer(&json!({ "error": error }), |_| {});
        }
        let mut error_output = anstream::stderr().lock();
        let error = paint(Tone::Bad, "error");
        match failure {
            Failure::Refused(refusal) if !refusal.reasons.is_empty() => {
                for reason in &refusal.reasons {
                    let _ = writeln!(error_output, "{error}: {}", words::reason(reason, look));
                }
            }
            _ => {
                let _ = writeln!(error_output, "{error}: {}", text::clean_lines(&Chain(failure).to_string()));
            }
        }
        if let Failure::Refused(error) = failure {
            for fault in &error.faults {
                let _ = writeln!(error_output, "{}", text::clean_lines(fault));
            }
        }
        if let Some(cure) = failure.cure() {
            let _ = writeln!(error_output, "{}: {cure}", paint(Tone::Strong, "help"));
        }
    }
}
