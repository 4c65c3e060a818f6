//! How people reach the agent.

mod repl;
mod streaming_operator;
mod terminal;

use collieclaw_agent::runtime::TurnError;
use thiserror::Error;

pub use repl::Repl;
pub use terminal::{SpinnerAwareWriter, TerminalOperator, TerminalVerbosity};

/// Why the prompt can't go on.
#[derive(Debug, Error)]
pub enum ReplError {
    /// The terminal can't be used.
    #[error("the terminal can't be used")]
    Terminal(#[from] rustyline::error::ReadlineError),
    /// The machine gives no descriptor or thread.
    #[error("the channel can't be set up")]
    Setup(#[from] std::io::Error),
    /// A turn failed in a way that ends everything.
    #[error(transparent)]
    Turn(#[from] TurnError),
}
