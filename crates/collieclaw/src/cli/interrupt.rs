//! Signal handling: Ctrl-C cancels only the current turn. Ctrl-Z is ignored, because a stopped process could neither
//! enforce timeouts nor notice the emergency stop while its children keep running.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use collieclaw_providers::cancel::{CancelFlag, CancelReason};
use signal_hook::consts::{SIGINT, SIGTSTP};
use signal_hook::iterator::Signals;

/// The cancel flag of the current turn.
#[derive(Clone, Default)]
pub(crate) struct InterruptHandler {
    current_turn: Arc<Mutex<Option<CancelFlag>>>,
}

impl InterruptHandler {
    /// Installs the handlers: from now on Ctrl-C doesn't end the program, and Ctrl-Z doesn't suspend it.
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
