//! Confirmation of a lasting change: with `--yes`, or with a question at the terminal.

use std::io::{BufRead, IsTerminal, Write};

use super::failure::CommandFailure;
use super::output::OutputPrinter;

/// The presence of `--yes` on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfirmMode {
    AssumeYes,
    Ask,
}

impl From<bool> for ConfirmMode {
    fn from(yes: bool) -> Self {
        if yes { Self::AssumeYes } else { Self::Ask }
    }
}

/// Asks at the terminal, below the text already shown. Any answer except yes counts as no.
pub(crate) fn confirm(
    shown: &str,
    question: &str,
    mode: ConfirmMode,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    if mode == ConfirmMode::AssumeYes || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        screen.print_remark(&format!("{}\n", shown.trim_end()));
        return if mode == ConfirmMode::AssumeYes {
            Ok(())
        } else {
            Err(CommandFailure::NoOperatorToConfirm)
        };
    }
    let mut err = anstream::stderr().lock();
    let io_error = |error| CommandFailure::Io { what: "show the question".to_owned(), source: error };
    writeln!(err, "{}\n", shown.trim_end()).map_err(io_error)?;
    // Discards input typed before the question was visible.
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
    write!(err, "{question} [y/N] ").and_then(|()| err.flush()).map_err(io_error)?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(CommandFailure::io("read the answer"))?;
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(CommandFailure::NotConfirmed),
    }
}
