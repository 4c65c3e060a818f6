//! What can be said on the command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use shepherd_util::ProfileId;

use crate::{audit, entries, generate, grants, household, pin, policy, requests, session, up, usage, week};

/// Each is parsed by a test, so that none is wrong.
const EXAMPLES: &str = "\
Examples:
  shepherd                               try it: a daemon of your own, live, in a minute
  shepherd up                            run the daemon here, with a starter policy if there is none
  shepherd watch                         the live view
  shepherd list --at \"sat 10:00\"         what could be launched then
  shepherd why tuxmath --at 18:00        every rule about it, and how it comes out
  shepherd week tuxmath                  when it could be launched, drawn
  shepherd launch tuxmath --wait         start it and wait until it ends
  shepherd grant 30m --entry tuxmath --for anna --why \"tidied up\"
  shepherd request tuxmath 15m --note \"nearly done\"
  shepherd usage --week                  what was used, as bars
  shepherd policy check policy.toml      is it valid, and if not, what would be right?
  shepherd audit verify                  has the log been tampered with?

TIME is `18:30`, `sat 10:00`, `tomorrow 9:00`, `2026-12-24 10:00` or RFC 3339.
Exit codes: 0 done, 1 the answer is no, 2 the command line is wrong, 3 something outside failed.";

#[derive(Parser)]
#[command(
    name = "shepherd",
    version,
    about = "One authority over what runs on this machine, when and for how long",
    after_help = EXAMPLES
)]
pub(crate) struct ShepherdArgs {
    /// How to answer.
    #[arg(long, value_enum, default_value_t, global = true)]
    pub(crate) output: OutputFormat,
    /// Where the daemon listens. Default: SHEPHERD_SOCKET, else the daemon of this user, else that of the machine.
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) socket: Option<PathBuf>,
    /// Whose time it is about. Default: whoever asks.
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) profile: Option<ProfileId>,
    /// A file with the administrator's PIN. Without it, the PIN is asked for at a terminal when it is needed.
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) pin_file: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Option<ShepherdCommand>,
}

impl ShepherdArgs {
    /// Whether what is asked for is something to look at, and no answer.
    pub(crate) fn is_interactive(&self) -> bool {
        matches!(
            self.command,
            None | Some(
                ShepherdCommand::Demo
                    | ShepherdCommand::Tour
                    | ShepherdCommand::Watch
                    | ShepherdCommand::Up(_)
            )
        )
    }
}

#[derive(Subcommand)]
pub(crate) enum ShepherdCommand {
    /// Runs the daemon here, in the foreground. Writes a starter policy if there is none.
    Up(up::UpArgs),
    /// Tries everything out with a daemon of its own, and leaves nothing running. The default.
    Demo,
    /// Shows the ground under both products at work, without a daemon.
    Tour,
    /// The live view: what runs, what could, what happens; launch and stop with keys.
    Watch,
    /// What is running.
    Status,
    /// What could be launched, and why not.
    List(entries::ListArgs),
    /// Every rule about an entry, what it looked at and how it came out.
    Why(entries::WhyArgs),
    /// When entries could be launched, drawn: the coming seven days.
    Week(week::WeekArgs),
    /// Starts an entry.
    Launch(session::LaunchArgs),
    /// Ends what is running.
    Stop(session::StopArgs),
    /// Gives what is running more time.
    Extend(session::ExtendArgs),
    /// Gives time, or a longer window, that the policy does not give by itself.
    Grant(grants::GrantArgs),
    /// All grants that hold or will hold.
    Grants,
    /// Takes a grant back.
    Revoke(grants::RevokeArgs),
    /// Asks the parents for time.
    Request(requests::RequestArgs),
    /// What was asked for.
    Requests,
    /// Answers a request.
    Decide(requests::DecideArgs),
    /// Says or switches the household's mode.
    Mode(household::ModeArgs),
    /// Looks after the clock.
    #[command(subcommand)]
    Clock(household::ClockCommand),
    /// Makes the daemon read its policy again.
    Reload,
    /// How much was used, as bars.
    Usage(usage::UsageArgs),
    /// Reads, writes and replaces policies.
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Reads and checks the tamper-evident log.
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Sets or removes the administrator's PIN.
    #[command(subcommand)]
    Pin(pin::PinCommand),
    /// Whether the daemon is well. Exit code 1 if it is not.
    Health,
    /// What the daemon counts, in the text format of Prometheus.
    Metrics,
    /// What this machine can enforce, what it can't, and what would help.
    Doctor,
    /// Prints completions for a shell.
    Completions(generate::CompletionsArgs),
    /// Prints the manual page, or writes one for every command.
    Man(generate::ManArgs),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people.
    #[default]
    Text,
    /// For scripts: one JSON value.
    Json,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_holds_together() {
        ShepherdArgs::command().debug_assert();
    }

    #[test]
    fn every_example_in_every_help_can_be_said() {
        let mut seen = 0;
        let mut open = vec![ShepherdArgs::command()];
        while let Some(command) = open.pop() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in help.lines().filter(|line| line.starts_with("  shepherd")) {
                let said = line.trim().split("   ").next().unwrap();
                let words = crate::text::split_shell_words(said);
                if let Err(error) = ShepherdArgs::try_parse_from(&words) {
                    panic!("{said}: {error}");
                }
                seen += 1;
            }
            open.extend(command.get_subcommands().cloned());
        }
        assert!(seen > 20, "{seen}");
    }

    #[test]
    fn every_example_in_the_document_can_be_said() {
        let document = include_str!("../../../docs/cli.md");
        let examples = document.lines().filter_map(|line| line.trim().strip_prefix("$ "));
        let mut seen = 0;
        for line in examples.filter(|line| line.starts_with("shepherd")) {
            let said = line.split(" | ").next().unwrap().split(" #").next().unwrap();
            // To ask for help is an error of its own, with exit code 0.
            if let Err(error) = ShepherdArgs::try_parse_from(crate::text::split_shell_words(said))
                && error.exit_code() != 0
            {
                panic!("{said}: {error}");
            }
            seen += 1;
        }
        assert!(seen > 20, "{seen}");
    }
}
