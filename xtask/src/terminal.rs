//! Colours for terminal output, left out if the output is not a terminal.

use std::io::{IsTerminal, stdout};
use std::time::Duration;

const BOLD: &str = "1";
const GREEN: &str = "32";
const RED: &str = "31";
const YELLOW: &str = "33";

/// Formats text as a heading.
pub(crate) fn heading(text: &str) -> String {
    paint(text, BOLD)
}

/// Formats text about a success.
pub(crate) fn success(text: &str) -> String {
    paint(text, GREEN)
}

/// Formats text about a failure.
pub(crate) fn failure(text: &str) -> String {
    paint(text, RED)
}

/// Formats text about a problem that isn't a failure.
pub(crate) fn warning(text: &str) -> String {
    paint(text, YELLOW)
}

/// Formats seconds with one decimal, right-aligned for a column.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:>6.1} s", duration.as_secs_f64())
}

fn paint(text: &str, colour: &str) -> String {
    let wanted = stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    if wanted { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
}
