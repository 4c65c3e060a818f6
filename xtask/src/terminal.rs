//! Colours for terminal output, left out if the output is not a terminal.

use std::io::{IsTerminal, stdout};
use std::time::Duration;

use ward_terminal::TextTone;

/// Formats text as a heading.
pub(crate) fn heading(text: &str) -> String {
    paint_if_wanted(TextTone::Strong, text)
}

/// Formats text about a success.
pub(crate) fn success(text: &str) -> String {
    paint_if_wanted(TextTone::Good, text)
}

/// Formats text about a failure.
pub(crate) fn failure(text: &str) -> String {
    paint_if_wanted(TextTone::Bad, text)
}

/// Formats text about a problem that isn't a failure.
pub(crate) fn warning(text: &str) -> String {
    paint_if_wanted(TextTone::Warn, text)
}

/// Formats seconds with one decimal, right-aligned for a column.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:>6.1} s", duration.as_secs_f64())
}

fn paint_if_wanted(tone: TextTone, text: &str) -> String {
    let wanted = stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    if wanted { ward_terminal::paint(tone, text) } else { text.to_owned() }
}
