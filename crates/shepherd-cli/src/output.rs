//! The only module that writes to the terminal: colours for people at one, JSON for scripts.

use std::io::Write;

use rustix::termios::tcgetwinsize;
use serde::Serialize;
use serde_json::json;
use shepherd_util::ErrorChain;

use crate::arguments::OutputFormat;
use crate::context::DisplaySettings;
use crate::error::ShepherdCliError;
use crate::{humanize, text};

/// The width where nobody says it: what a page of text has had since there were terminals.
const DEFAULT_WIDTH: usize = 80;

/// What a text means; its colour follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextTone {
    Good,
    Warn,
    Bad,
    Faint,
    Strong,
}

/// The text in the colour of its meaning.
pub(crate) fn paint(tone: TextTone, text: &str) -> String {
    let colour = match tone {
        TextTone::Good => 32,
        TextTone::Warn => 33,
        TextTone::Bad => 31,
        TextTone::Faint => 2,
        TextTone::Strong => 1,
    };
    format!("\x1b[{colour}m{text}\x1b[0m")
}

pub(crate) struct ConsoleOutput {
    format: OutputFormat,
    is_open: bool,
}

impl ConsoleOutput {
    pub(crate) fn new(format: OutputFormat) -> Self {
        Self { format, is_open: true }
    }

    /// The columns that there are: of the terminal, else of the variable that says so.
    pub(crate) fn width(&self) -> usize {
        let terminal = tcgetwinsize(std::io::stdout()).ok().map(|size| usize::from(size.ws_col));
        let said = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        terminal.filter(|columns| *columns > 0).or_else(said).unwrap_or(DEFAULT_WIDTH).clamp(40, 200)
    }

    /// One answer: `text` for people, `value` for scripts.
    pub(crate) fn print_result(&mut self, value: &impl Serialize, text: impl FnOnce(&mut Self)) {
        match self.format {
            OutputFormat::Text => text(self),
            OutputFormat::Json => match serde_json::to_string_pretty(value) {
                Ok(json) => self.print_line(&json),
                Err(error) => self.print_line(&json!({ "error": error.to_string() }).to_string()),
            },
        }
    }

    /// One of many answers that come one after the other: JSON in one line each.
    pub(crate) fn print_stream_item(&mut self, value: &impl Serialize, text: impl FnOnce(&mut Self)) {
        match self.format {
            OutputFormat::Text => text(self),
            OutputFormat::Json => match serde_json::to_string(value) {
                Ok(json) => self.print_line(&json),
                Err(error) => self.print_line(&json!({ "error": error.to_string() }).to_string()),
            },
        }
    }

    /// Whether anybody still reads. What would go on for ever ends when nobody does.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    pub(crate) fn print_heading(&mut self, text: &str) {
        self.print_line(&format!("\n{}", paint(TextTone::Strong, text)));
    }

    pub(crate) fn print_line(&mut self, text: &str) {
        // `anstream` takes the colours out when nobody would see them. A reader that has gone away
        // is no failure of ours.
        self.is_open &= writeln!(anstream::stdout().lock(), "{text}").is_ok();
    }

    /// Bytes for a file or a pipe, as they are.
    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) {
        let mut output = std::io::stdout().lock();
        self.is_open &= output.write_all(bytes).and_then(|()| output.flush()).is_ok();
    }

    /// Something beside the answer: for people, where it does not get into a pipe.
    pub(crate) fn print_note(&mut self, text: &str) {
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    }

    pub(crate) fn print_marked(&mut self, tone: TextTone, mark: &str, text: &str) {
        self.print_line(&format!("  {} {text}", paint(tone, mark)));
    }

    /// The failure and everything behind it, in one sentence; below it what else is known, and the cure.
    pub(crate) fn print_error(&mut self, failure: &ShepherdCliError, look: &DisplaySettings) {
        if let (OutputFormat::Json, ShepherdCliError::Refused(error)) = (self.format, failure) {
            self.print_result(&json!({ "error": error }), |_| {});
        }
        let mut error_output = anstream::stderr().lock();
        let error = paint(TextTone::Bad, "error");
        match failure {
            ShepherdCliError::Refused(refusal) if !refusal.reasons.is_empty() => {
                for reason in &refusal.reasons {
                    let _ = writeln!(error_output, "{error}: {}", humanize::reason(reason, look));
                }
            }
            _ => {
                let _ = writeln!(
                    error_output,
                    "{error}: {}",
                    text::escape_unsafe_lines(&ErrorChain(failure).to_string())
                );
            }
        }
        if let ShepherdCliError::Refused(error) = failure {
            for fault in &error.faults {
                let _ = writeln!(error_output, "{}", text::escape_unsafe_lines(fault));
            }
        }
        if let Some(cure) = failure.help() {
            let _ = writeln!(error_output, "{}: {cure}", paint(TextTone::Strong, "help"));
        }
    }
}
