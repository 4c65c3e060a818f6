//! Ctrl-C ends the turn that is going on, and nothing else. Ctrl-Z does nothing: a program that sleeps can neither keep
//! time nor hear the emergency stop, while what it started goes on.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use collieclaw_providers::cancel::{CancelFlag, CancelReason};
use signal_hook::consts::{SIGINT, SIGTSTP};
use signal_hook::iterator::Signals;

/// Where the flag of the present turn is.
#[derive(Clone, Default)]
pub(crate) struct InterruptHandler {
    current_turn: Arc<Mutex<Option<CancelFlag>>>,
}

impl InterruptHandler {
    /// From now on Ctrl-C doesn't end the program, and Ctrl-Z doesn't stop it.
    pub(crate) fn install() -> io::Result<Self> {
        let interrupt = Self::default();
        let mut signals = Signals::new([SIGINT, SIGTSTP])?;
        let turn = Arc::clone(&interrupt.current_turn);
        std::thread::Builder::new().name("interrupt".to_owned()).spawn(move || {
            for signal in signals.forever() {
                if signal != SIGINT {
                    continue;
                }
                let turn = turn.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if let Some(turn) = turn {
                    turn.raise(CancelReason::Operator);
                }
            }
        })?;
        Ok(interrupt)
    }

    pub(crate) fn set_turn(&self, turn: Option<CancelFlag>) {
        *self.current_turn.lock().unwrap_or_else(PoisonError::into_inner) = turn;
    }
}
