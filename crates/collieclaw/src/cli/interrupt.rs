//! Ctrl-C ends the turn that is going on, and nothing else.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use collieclaw::cancel::{Cancel, Why};
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;

/// Where the flag of the present turn is.
#[derive(Clone, Default)]
pub(crate) struct Interrupt {
    turn: Arc<Mutex<Option<Cancel>>>,
}

impl Interrupt {
    /// From now on Ctrl-C doesn't end the program.
    pub(crate) fn listen() -> io::Result<Self> {
        let interrupt = Self::default();
        let mut signals = Signals::new([SIGINT])?;
        let turn = Arc::clone(&interrupt.turn);
        std::thread::Builder::new().name("interrupt".to_owned()).spawn(move || {
            for _ in signals.forever() {
                let turn = turn.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if let Some(turn) = turn {
                    turn.raise(Why::Operator);
                }
            }
        })?;
        Ok(interrupt)
    }

    pub(crate) fn set(&self, turn: Option<Cancel>) {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = turn;
    }
}
