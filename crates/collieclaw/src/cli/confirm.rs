//! A yes before something that stays.

use std::io::{BufRead, IsTerminal, Write};

use super::failure::Failure;
use super::screen::Screen;

/// Whether the yes was given on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    Yes,
    Nothing,
}

impl From<bool> for Said {
    fn from(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::Nothing }
    }
}

/// Asks at the terminal, below what was shown there. Anything but a yes is a no.
pub(crate) fn confirm(shown: &str, question: &str, said: Said, screen: &Screen) -> Result<(), Failure> {
    if said == Said::Yes || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        screen.remark(&format!("{}\n", shown.trim_end()));
        return if said == Said::Yes { Ok(()) } else { Err(Failure::NobodyToConfirm) };
    }
    let mut err = anstream::stderr().lock();
    let told = |error| Failure::Io { what: "show what is asked".to_owned(), source: error };
    writeln!(err, "{}\n", shown.trim_end()).map_err(told)?;
    // What was typed before the question was shown is no answer to it.
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
    write!(err, "{question} [y/N] ").and_then(|()| err.flush()).map_err(told)?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(Failure::io("read the answer"))?;
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::NotConfirmed),
    }
}
