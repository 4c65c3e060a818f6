//! The only module that writes to the terminal: colours for people at one, JSON for scripts.

use std::error::Error;
use std::io::Write;

use serde::Serialize;

use crate::OutputFormat;
use crate::failure::Failure;

/// What a line means; its colour follows.
#[derive(Clone, Copy)]
pub(crate) enum Tone {
    Good,
    Bad,
    Faint,
}

pub(crate) struct Screen {
    format: OutputFormat,
}

impl Screen {
    pub(crate) fn new(format: OutputFormat) -> Self {
        Self { format }
    }

    /// One answer: `text` for people, `value` for scripts.
    pub(crate) fn answer(&mut self, value: &impl Serialize, text: impl FnOnce(&mut Self)) {
        match self.format {
            OutputFormat::Text => text(self),
            OutputFormat::Json => match serde_json::to_string_pretty(value) {
                Ok(json) => self.line(&json),
                Err(error) => self.line(&format!("{{\"error\": \"{error}\"}}")),
            },
        }
    }

    pub(crate) fn heading(&mut self, text: &str) {
        self.line(&format!("\n\x1b[1m{text}\x1b[0m"));
    }

    pub(crate) fn line(&mut self, text: &str) {
        // `anstream` takes the colours out when nobody would see them. A reader that has gone away
        // is no failure of ours.
        let _ = writeln!(anstream::stdout().lock(), "{text}");
    }

    pub(crate) fn toned(&mut self, tone: Tone, mark: &str, text: &str) {
        let colour = match tone {
            Tone::Good => 32,
            Tone::Bad => 31,
            Tone::Faint => 2,
        };
        self.line(&format!("  \x1b[{colour}m{mark}\x1b[0m {text}"));
    }

    /// The failure and everything behind it, in one sentence.
    pub(crate) fn failure(&mut self, failure: &Failure) {
        let mut text = failure.to_string();
        let mut source = failure.source();
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        let _ = writeln!(anstream::stderr().lock(), "\x1b[31merror\x1b[0m: {text}");
    }
}
