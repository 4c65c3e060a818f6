//! `shepherd pin`, and the hidden prompt for the administrator's PIN.

use std::io::{BufRead, IsTerminal, Read, Write};
use std::path::Path;

use clap::Subcommand;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use shepherd_api::{AdminPin, Command as Order, CommandReply, MAX_PIN_LENGTH};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;
use ward_terminal::TextTone;

use crate::context::CommandContext;
use crate::daemon;
use crate::error::ShepherdCliError;
use crate::output::ConsoleOutput;

/// Bytes read of a PIN: the longest PIN and a line ending.
const MAX_PIN_BYTES: u64 = 4 * MAX_PIN_LENGTH as u64 + 2;

#[derive(Subcommand)]
pub(crate) enum PinCommand {
    /// Set or change the PIN; asks for it twice, or reads it from a file
    #[command(
        after_help = "Examples:\n  shepherd pin set\n  shepherd pin set --from new-pin.txt --pin-file old-pin.txt"
    )]
    Set {
        /// File with the new PIN
        #[arg(long, value_name = "FILE")]
        from: Option<std::path::PathBuf>,
    },
    /// Remove the PIN; administrators named in the policy no longer need it
    Remove,
}

pub(crate) fn run(
    command: &PinCommand,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let pin = match command {
        PinCommand::Set { from: Some(file) } => Some(read_file(file)?),
        PinCommand::Set { from: None } => Some(prompt_new_pin()?),
        PinCommand::Remove => None,
    };
    let reply = daemon::send_command(context, &Order::SetPin { pin })?;
    let CommandReply::PinChanged { set } = reply else { return Err(ShepherdCliError::UnexpectedReply) };
    output.print_result(&reply, |output| {
        let result = if set {
            "administrators need the PIN from now on"
        } else {
            "administrators no longer need a PIN"
        };
        output.print_marked(TextTone::Good, "✓", result);
    });
    Ok(())
}

/// Reads the PIN from the first line of a file.
pub(crate) fn read_file(file: &Path) -> Result<AdminPin, ShepherdCliError> {
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(ShepherdCliError::file(file))?;
    opened.take(MAX_PIN_BYTES).read_to_string(&mut text).map_err(ShepherdCliError::file(file))?;
    Ok(AdminPin::try_from(text.lines().next().unwrap_or_default().to_owned())?)
}

/// Asks for the PIN in the terminal. Returns `None` for an empty line.
pub(crate) fn prompt_pin(question: &str) -> Result<Option<AdminPin>, ShepherdCliError> {
    let line = prompt_hidden(question)?;
    if line.is_empty() { Ok(None) } else { Ok(Some(AdminPin::try_from(line)?)) }
}

fn prompt_new_pin() -> Result<AdminPin, ShepherdCliError> {
    if !std::io::stdin().is_terminal() {
        return Err(ShepherdCliError::NoTerminalForPin);
    }
    let pin = AdminPin::try_from(prompt_hidden("New PIN: ")?)?;
    let again = prompt_hidden("Repeat the new PIN: ")?;
    if pin.reveal() == again { Ok(pin) } else { Err(ShepherdCliError::PinsDiffer) }
}

/// Reads a line without showing it.
pub(crate) fn prompt_hidden(question: &str) -> Result<String, ShepherdCliError> {
    let input = std::io::stdin().lock();
    let mut line = String::new();
    {
        let _hidden = TerminalEchoGuard::disable_echo()?;
        // Standard error, so that the prompt is visible even if the output is redirected.
        let _ = write!(std::io::stderr(), "{question}").and_then(|()| std::io::stderr().flush());
        let mut bounded = input.take(MAX_PIN_BYTES);
        bounded.read_line(&mut line).map_err(ShepherdCliError::io("read the PIN"))?;
    }
    let _ = writeln!(std::io::stderr());
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// Hides typed characters until it is dropped. A signal that ends the process restores the terminal first.
struct TerminalEchoGuard {
    original: Termios,
    signals: Handle,
}

impl TerminalEchoGuard {
    fn disable_echo() -> Result<Self, ShepherdCliError> {
        let original = tcgetattr(std::io::stdin())
            .map_err(|error| ShepherdCliError::io("read the terminal settings")(error.into()))?;
        let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])
            .map_err(ShepherdCliError::io("handle signals"))?;
        let (handle, shown) = (signals.handle(), original.clone());
        std::thread::spawn(move || {
            for signal in signals.forever() {
                restore_terminal(&shown);
                let _ = emulate_default_handler(signal);
            }
        });
        let mut hidden = original.clone();
        hidden.local_modes &= !LocalModes::ECHO;
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &hidden)
            .map_err(|error| ShepherdCliError::io("hide the PIN")(error.into()))?;
        Ok(Self { original, signals: handle })
    }
}

impl Drop for TerminalEchoGuard {
    fn drop(&mut self) {
        self.signals.close();
        restore_terminal(&self.original);
    }
}

fn restore_terminal(original: &Termios) {
    // An error is ignored, because the terminal may be gone.
    let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, original);
}
