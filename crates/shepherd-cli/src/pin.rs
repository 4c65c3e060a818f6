//! The administrator's PIN: asked for without showing it, set and removed.

use std::io::{BufRead, IsTerminal, Read, Write};
use std::path::Path;

use clap::Subcommand;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use shepherd_api::{Command as Order, MAX_PIN_LENGTH, Pin, Reply};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;

use crate::context::Context;
use crate::daemon;
use crate::failure::Failure;
use crate::screen::{Screen, Tone};

/// Bytes that are read of a file with a PIN: the longest PIN, and the end of its line.
const MOST_READ: u64 = 4 * MAX_PIN_LENGTH as u64 + 2;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Sets or changes the PIN; it is asked for twice, or read from a file.
    #[command(
        after_help = "Examples:\n  shepherd pin set\n  shepherd pin set --from new-pin.txt --pin-file old-pin.txt"
    )]
    Set {
        /// A file with the new PIN.
        #[arg(long, value_name = "FILE")]
        from: Option<std::path::PathBuf>,
    },
    /// Removes the PIN: whoever the policy calls an administrator is one again without it.
    Remove,
}

pub(crate) fn run(command: &Command, context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    let pin = match command {
        Command::Set { from: Some(file) } => Some(read_file(file)?),
        Command::Set { from: None } => Some(ask_twice()?),
        Command::Remove => None,
    };
    let reply = daemon::ask(context, Order::SetPin { pin })?;
    let Reply::PinChanged { set } = reply else { return Err(Failure::StrangeReply) };
    screen.answer(&reply, |screen| {
        let told =
            if set { "from now on administration needs the PIN" } else { "no PIN is asked for any more" };
        screen.toned(Tone::Good, "✓", told);
    });
    Ok(())
}

/// The first line of a file.
pub(crate) fn read_file(file: &Path) -> Result<Pin, Failure> {
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(Failure::file(file))?;
    opened.take(MOST_READ).read_to_string(&mut text).map_err(Failure::file(file))?;
    Ok(Pin::try_from(text.lines().next().unwrap_or_default().to_owned())?)
}

/// Asks at the terminal; nothing typed is `None`.
pub(crate) fn ask(question: &str) -> Result<Option<Pin>, Failure> {
    let line = ask_hidden(question)?;
    if line.is_empty() { Ok(None) } else { Ok(Some(Pin::try_from(line)?)) }
}

fn ask_twice() -> Result<Pin, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::NoTerminal);
    }
    let pin = Pin::try_from(ask_hidden("New PIN: ")?)?;
    let again = ask_hidden("Again: ")?;
    if pin.reveal() == again { Ok(pin) } else { Err(Failure::PinsDiffer) }
}

/// A line that is not shown while it is typed.
fn ask_hidden(question: &str) -> Result<String, Failure> {
    let input = std::io::stdin().lock();
    let mut line = String::new();
    {
        let _hidden = Hidden::begin()?;
        // Standard error: whoever redirected the answer still sees the question.
        let _ = write!(std::io::stderr(), "{question}").and_then(|()| std::io::stderr().flush());
        let mut bounded = input.take(MOST_READ);
        bounded.read_line(&mut line).map_err(Failure::io("read the PIN"))?;
    }
    let _ = writeln!(std::io::stderr());
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// While this lives, the terminal does not show what is typed. A signal that ends us makes it show it again first.
struct Hidden {
    was: Termios,
    signals: Handle,
}

impl Hidden {
    fn begin() -> Result<Self, Failure> {
        let was =
            tcgetattr(std::io::stdin()).map_err(|error| Failure::io("ask the terminal")(error.into()))?;
        let mut signals =
            Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP]).map_err(Failure::io("hear signals"))?;
        let (handle, shown) = (signals.handle(), was.clone());
        std::thread::spawn(move || {
            for signal in signals.forever() {
                show(&shown);
                let _ = emulate_default_handler(signal);
            }
        });
        let mut hidden = was.clone();
        hidden.local_modes &= !LocalModes::ECHO;
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &hidden)
            .map_err(|error| Failure::io("hide the PIN")(error.into()))?;
        Ok(Self { was, signals: handle })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        self.signals.close();
        show(&self.was);
    }
}

fn show(was: &Termios) {
    // There is nobody to tell, and the terminal may be gone.
    let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, was);
}
