//! `shepherd policy restore`: puts the policy in force back into the daemon's policy file.

use std::io::{BufRead, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use rustix::termios::{QueueSelector, tcflush};
use shepherd_api::{Command, CommandReply};
use shepherd_config::load_bytes;

use crate::context::CommandContext;
use crate::daemon::DaemonConnection;
use crate::error::ShepherdCliError;
use crate::output::ConsoleOutput;
use crate::policy::set_policy;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  sudo shepherd policy restore\n\nYour changes of the file since then are lost. If the file has \
                  no mistake, you are asked first."
)]
pub(crate) struct RestoreArgs {
    /// Replace the file without a question, even if it has no mistake
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(
    restore: &RestoreArgs,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    // Both commands use one connection, which needs the PIN only once.
    let mut daemon = DaemonConnection::connect(context)?;
    let CommandReply::Policy { text, path, .. } = daemon.send_command(&Command::GetPolicy {})? else {
        return Err(ShepherdCliError::UnexpectedReply);
    };
    let text = text.ok_or(ShepherdCliError::NoPolicy)?;
    if let Some(file) = path.map(PathBuf::from)
        && !restore.yes
        && has_other_rules(&file, &text)?
        && !confirm_replacement(&file)?
    {
        return Err(ShepherdCliError::ValidPolicyKept { file });
    }
    set_policy(text, Path::new("the policy"), &mut daemon, output)
}

/// Returns true if a file has valid rules that aren't in force.
fn has_other_rules(file: &Path, in_force: &str) -> Result<bool, ShepherdCliError> {
    match std::fs::read(file) {
        Ok(bytes) => Ok(bytes != in_force.as_bytes() && load_bytes("", &bytes).is_ok()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(source) => Err(ShepherdCliError::Policy { file: file.to_owned(), source }),
    }
}

/// Asks at the terminal. Any answer except yes counts as no, and so does the lack of a terminal.
fn confirm_replacement(file: &Path) -> Result<bool, ShepherdCliError> {
    let mut error_output = std::io::stderr().lock();
    if !std::io::stdin().is_terminal() || !error_output.is_terminal() {
        return Ok(false);
    }
    // Discards input typed before the question was visible.
    let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
    let file = file.display();
    let question = format!(
        "{file} has no mistake, but rules that are not in force yet.\nReplace it with the rules in force? [y/N] "
    );
    let shown = error_output.write_all(question.as_bytes()).and_then(|()| error_output.flush());
    shown.map_err(ShepherdCliError::io("show the question"))?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(ShepherdCliError::io("read the answer"))?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}
