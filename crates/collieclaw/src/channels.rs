//! The terminal channel: the interactive prompt, and the operator who approves calls at a terminal.

mod repl;
mod streaming_operator;
mod terminal;

use collieclaw_agent::runtime::TurnError;
use thiserror::Error;

pub use repl::Repl;
pub use terminal::{SpinnerAwareWriter, TerminalOperator, TerminalVerbosity};

/// A failure that ends the interactive prompt.
#[derive(Debug, Error)]
pub enum ReplError {
    #[error("could not use the terminal")]
    Terminal(#[from] rustyline::error::ReadlineError),
    /// The system has no free file descriptor or thread.
    #[error("could not set up the prompt")]
    Setup(#[from] std::io::Error),
    /// A turn failed with an error after which the session can't continue.
    #[error(transparent)]
    Turn(#[from] TurnError),
}
