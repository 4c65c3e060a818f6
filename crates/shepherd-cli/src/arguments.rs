//! The command line: global options and subcommands.

use std::io::Write;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};
use ward_cli::OutputArgs;
use ward_terminal::escape_lines;

use crate::{
    audit, entries, generate, grants, household, pam_check, pin, policy, requests, session, session_log, up,
    usage, week,
};

/// A test parses every example.
const EXAMPLES: &str = "\
Examples:
  shepherd                               open the live view; without a daemon, try a temporary one
  shepherd up                            run the daemon here, with a starter policy if you have none
  shepherd watch                         open the live view
  shepherd list --at \"sat 10:00\"         show what could be launched on Saturday at 10:00
  shepherd why tuxmath --at 18:00        show every rule for an entry and its result
  shepherd week tuxmath                  show when an entry can be launched this week
  shepherd launch tuxmath --wait         start an entry and wait until it ends
  shepherd grant 30m --entry tuxmath --for anna --why \"tidied up\"
  shepherd request tuxmath 15m --note \"nearly done\"
  shepherd usage --week                  show the time used in the last seven days
  shepherd policy check policy.toml      check a policy and show how to fix mistakes
  shepherd audit verify                  check that nobody has changed the log

TIME is `18:30`, `sat 10:00`, `tomorrow 9:00`, `2026-12-24 10:00` or an RFC 3339 timestamp.
Exit codes: 0 success, 1 the answer is no, 2 mistake in the command line, 3 failure elsewhere.";

#[derive(Parser)]
#[command(
    name = "shepherd",
    version,
    about = "Decide what may run on this computer, when and for how long",
    after_help = EXAMPLES
)]
pub(crate) struct ShepherdArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Path of the daemon's socket [default: SHEPHERD_SOCKET, else the machine's daemon, else your own]
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) socket: Option<PathBuf>,
    /// Child whose profile is used, by id or label [default: your own]
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) profile: Option<String>,
    /// File with the administrator's PIN [default: ask in the terminal when the PIN is needed]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) pin_file: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Option<ShepherdCommand>,
}

impl ShepherdArgs {
    /// Returns true for commands that run in the terminal and print no result for scripts.
    pub(crate) fn is_interactive(&self) -> bool {
        matches!(
            self.command,
            None | Some(
                ShepherdCommand::Demo
                    | ShepherdCommand::Tour
                    | ShepherdCommand::Watch
                    | ShepherdCommand::Up(_)
                    | ShepherdCommand::Policy(policy::PolicyCommand::Init { interactive: true, .. })
            )
        )
    }
}

/// Prints an error of the command line and exits. A word that is no command may be an entry.
pub(crate) fn exit_with_advice(error: &clap::Error) -> ! {
    let is_no_command =
        error.kind() == ErrorKind::InvalidSubcommand && error.get(ContextKind::SuggestedSubcommand).is_none();
    if is_no_command
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && std::env::args().nth(1).as_ref() == Some(word)
    {
        let advice = format!("\nTo start a program, type `shepherd launch {word}`.\n");
        // Standard error may be closed.
        let _ = error.print().and_then(|()| write!(std::io::stderr(), "{}", escape_lines(&advice)));
        std::process::exit(error.exit_code());
    }
    error.exit()
}

#[derive(Subcommand)]
pub(crate) enum ShepherdCommand {
    /// Run the daemon in the foreground; write a starter policy if there is none
    Up(up::UpArgs),
    /// Try Shepherd with a temporary daemon that leaves nothing behind (default without a daemon)
    Demo,
    /// Show how programs are stopped, sandboxed and logged, without a daemon
    Tour,
    /// Open the live view; launch and stop entries with keys (default with a daemon)
    Watch,
    /// Show what is running
    Status,
    /// List entries that can be launched now, and why others can't
    List(entries::ListArgs),
    /// Show every rule for an entry and its result
    Why(entries::WhyArgs),
    /// Show when entries can be launched in the next seven days
    Week(week::WeekArgs),
    /// Start an entry
    #[command(aliases = ["start", "run", "play"])]
    Launch(session::LaunchArgs),
    /// Stop a running entry
    Stop(session::StopArgs),
    /// Show what the program of a session wrote, such as its error messages
    Log(session_log::LogArgs),
    /// Give a running entry more time
    Extend(session::ExtendArgs),
    /// Grant extra time or longer hours
    Grant(grants::GrantArgs),
    /// List current and future grants
    Grants,
    /// Revoke a grant
    Revoke(grants::RevokeArgs),
    /// Ask a parent for more time
    Request(requests::RequestArgs),
    /// List requests for more time
    Requests,
    /// Answer a request for more time
    Decide(requests::DecideArgs),
    /// Show or switch the household's mode
    Mode(household::ModeArgs),
    /// Confirm that the clock is right after it was wrong
    #[command(subcommand)]
    Clock(household::ClockCommand),
    /// Make the daemon read its policy again
    Reload,
    /// Show the time used, as bars
    Usage(usage::UsageArgs),
    /// Check, show, create and replace policies
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Show and verify the tamper-evident log
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Set or remove the administrator's PIN
    #[command(subcommand)]
    Pin(pin::PinCommand),
    /// Check whether the daemon is healthy; exit code 1 if it is not
    Health,
    /// Print the daemon's metrics in the Prometheus text format
    Metrics,
    /// Show what this machine can enforce and what would help
    Doctor,
    /// Tell PAM whether an account may log in now; exit code 1 if it may not
    PamCheck(pam_check::PamCheckArgs),
    /// Print completions for a shell
    Completions(generate::CompletionsArgs),
    /// Print the manual page, or write one for every command
    Man(generate::ManArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Splits a line into words like a shell, as far as the examples need it.
    fn split_shell_words(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        for (number, part) in line.split('"').enumerate() {
            if number % 2 == 1 {
                words.push(part.to_owned());
            } else {
                words.extend(part.split_whitespace().map(str::to_owned));
            }
        }
        words
    }

    #[test]
    fn the_command_line_definition_is_consistent() {
        ShepherdArgs::command().debug_assert();
    }

    #[test]
    fn every_example_in_every_help_parses() {
        let mut seen = 0;
        let mut open = vec![ShepherdArgs::command()];
        while let Some(command) = open.pop() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in help.lines().filter(|line| line.starts_with("  shepherd")) {
                let example = line.trim().split("   ").next().unwrap();
                let words = split_shell_words(example);
                if let Err(error) = ShepherdArgs::try_parse_from(&words) {
                    panic!("{example}: {error}");
                }
                seen += 1;
            }
            open.extend(command.get_subcommands().cloned());
        }
        assert!(seen > 20, "{seen}");
    }

    #[test]
    fn every_example_in_the_document_parses() {
        let document = include_str!("../../../docs/cli.md");
        let examples = document.lines().filter_map(|line| line.trim().strip_prefix("$ "));
        let mut seen = 0;
        for line in examples.filter(|line| line.starts_with("shepherd")) {
            let example = line.split(" | ").next().unwrap().split(" #").next().unwrap();
            // clap reports `--help` as an error with exit code 0.
            if let Err(error) = ShepherdArgs::try_parse_from(split_shell_words(example))
                && error.exit_code() != 0
            {
                panic!("{example}: {error}");
            }
            seen += 1;
        }
        assert!(seen > 20, "{seen}");
    }
}
