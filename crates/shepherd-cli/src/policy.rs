//! `shepherd policy`: checks, shows, creates and replaces policies (S7.4).

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use rustix::process::geteuid;
use serde::Serialize;
use shepherd_api::{Command as Order, CommandReply};
use shepherd_config::{LoadedPolicy, describe_policy, json_schema, load_bytes};
use shepherd_ipc::MAX_ADMIN_FRAME;
use ward_diag::{FaultReport, ReportStyle};
use ward_terminal::{TextTone, format_count};

use crate::context::CommandContext;
use crate::daemon::{self, DaemonConnection};
use crate::error::ShepherdCliError;
use crate::output::ConsoleOutput;
use crate::policy_restore::{self, RestoreArgs};
use crate::{household, policy_questions, policy_warnings};

/// The starter policy. It works on any machine.
pub(crate) const STARTER_POLICY: &str = include_str!("../../../policies/starter.toml");

#[derive(Subcommand)]
pub(crate) enum PolicyCommand {
    /// Check a policy and show every mistake with its place and fix; exit code 1 if it is not valid
    ///
    /// Also warns about accounts and programs that this machine does not have. Such a policy is still valid.
    #[command(after_help = "Examples:\n  shepherd policy check\n  shepherd policy check policy.toml")]
    Check {
        /// Policy file [default: the daemon's policy file]
        file: Option<PathBuf>,
    },
    /// Show in plain sentences what a policy allows
    #[command(after_help = "Examples:\n  shepherd policy show policy.toml\n  shepherd policy show")]
    Show {
        /// Policy file [default: the policy of the daemon]
        file: Option<PathBuf>,
    },
    /// Print the JSON Schema of policies, for editors
    Schema,
    /// Write a starter policy, or a policy of your answers to eight questions
    #[command(
        after_help = "Examples:\n  shepherd policy init\n  shepherd policy init ./policy.toml\n  sudo shepherd policy init \
                      --interactive"
    )]
    Init {
        /// Ask about children, logins, bedtime, time, programs, parents, PIN and notifications
        #[arg(long)]
        interactive: bool,
        /// File to write [default: the daemon's policy file]
        file: Option<PathBuf>,
    },
    /// Put the policy in force back into the daemon's policy file, after a mistake in the file
    Restore(RestoreArgs),
    /// Replace the daemon's policy with a valid one
    #[command(after_help = "Examples:\n  shepherd policy set policy.toml")]
    Set {
        /// File with the new policy
        file: PathBuf,
    },
}

#[derive(Serialize)]
struct PolicyCheckReport {
    entries: usize,
    examples: usize,
    /// Parts of the policy that do not fit this machine.
    warnings: Vec<String>,
    /// True if the daemon uses exactly this file. Absent if it is not the daemon's file, or if nobody can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_force: Option<bool>,
}

#[derive(Serialize)]
struct PolicyShowReport {
    policy: String,
}

#[derive(Serialize)]
struct PolicyInitReport<'p> {
    written: &'p Path,
}

pub(crate) fn run(
    command: &PolicyCommand,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    match command {
        PolicyCommand::Check { file } => {
            let file = match file {
                Some(file) => file,
                None => &context.policy_file().map_err(ShepherdCliError::Paths)?,
            };
            let bytes = read(file)?;
            let loaded = load(&file.display().to_string(), &bytes, output)?;
            let checked = PolicyCheckReport {
                entries: loaded.policy.entries().len(),
                examples: loaded.examples,
                warnings: policy_warnings::collect_warnings(&loaded, file, context),
                in_force: policy_warnings::is_in_force(file, &bytes, context),
            };
            output.print_result(&checked, |output| {
                let entries = format_count(checked.entries, "entry", "entries");
                let examples = match checked.examples {
                    0 => "no examples".to_owned(),
                    1 => "1 example passed".to_owned(),
                    number => format!("{number} examples passed"),
                };
                let result = format!("{} is valid: {entries}, {examples}", file.display());
                output.print_marked(TextTone::Good, "✓", &result);
                policy_warnings::print_warnings(&checked.warnings, output);
                if checked.in_force == Some(false) {
                    let reload = if geteuid().is_root() { "sudo shepherd reload" } else { "shepherd reload" };
                    let note = format!("not in force yet: `{reload}` lets Shepherd read the file");
                    output.print_marked(TextTone::Warn, "!", &note);
                }
            });
        }
        PolicyCommand::Show { file: Some(file) } => {
            print_policy(&load(&file.display().to_string(), &read(file)?, output)?, output);
        }
        PolicyCommand::Show { file: None } => {
            let reply = daemon::send_command(context, &Order::GetPolicy {})?;
            let CommandReply::Policy { text, .. } = reply else {
                return Err(ShepherdCliError::UnexpectedReply);
            };
            let text = text.ok_or(ShepherdCliError::NoPolicy)?;
            print_policy(&load("the daemon's policy", text.as_bytes(), output)?, output);
        }
        PolicyCommand::Schema => {
            let schema = json_schema();
            output.print_line(&serde_json::to_string_pretty(&schema).unwrap_or_default());
        }
        PolicyCommand::Init { file, interactive } => {
            let file = match file {
                Some(file) => file.clone(),
                None => {
                    let own = context.paths().map_err(ShepherdCliError::Paths)?.policy;
                    choose_policy_file(own, context.service_policy())?
                }
            };
            if *interactive {
                return policy_questions::run(&file, context, output);
            }
            if !write_starter_policy(&file)? {
                return Err(ShepherdCliError::PolicyExists { file });
            }
            output.print_result(&PolicyInitReport { written: &file }, |output| {
                output.print_marked(
                    TextTone::Good,
                    "✓",
                    &format!("wrote {}; read it and change it to suit your family", file.display()),
                );
            });
        }
        PolicyCommand::Set { file } => {
            let bytes = read(file)?;
            // Checked here first, so that faults are shown with their line in this file.
            load(&file.display().to_string(), &bytes, output)?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            set_policy(text, file, &mut DaemonConnection::connect(context)?, output)?;
        }
        PolicyCommand::Restore(restore) => policy_restore::run(restore, context, output)?,
    }
    Ok(())
}

/// Sends a policy to the daemon, which puts it into force and into its policy file. `file` names it in an error.
pub(crate) fn set_policy(
    text: String,
    file: &Path,
    daemon: &mut DaemonConnection<'_>,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    let order = Order::SetPolicy { text };
    let length = serde_json::to_string(&order).map_or(0, |line| line.len()) + FRAME_OVERHEAD;
    if length > MAX_ADMIN_FRAME {
        return Err(ShepherdCliError::PolicyTooLong { file: file.to_owned(), limit: MAX_ADMIN_FRAME });
    }
    let reply = daemon.send_command(&order).map_err(ShepherdCliError::after_new_rules)?;
    household::print_policy_applied(&reply, daemon, output)
}

/// Returns the starter policy. For root it runs the examples as `nobody`, because programs must not run as root.
fn starter_policy(is_root: bool) -> String {
    let account = "[defaults]\n# Replace `nobody` with the child's account, or set it in a profile below: real programs need a home folder.\nuser = \"nobody\"\n";
    if is_root { STARTER_POLICY.replacen("[defaults]\n", account, 1) } else { STARTER_POLICY.to_owned() }
}

/// Returns the policy file of a daemon that this user would start, unless nothing reads it because the service runs.
fn choose_policy_file(own: PathBuf, service: Option<PathBuf>) -> Result<PathBuf, ShepherdCliError> {
    match service.filter(|service| *service != own) {
        Some(file) => Err(ShepherdCliError::ServiceHasPolicy { file }),
        None => Ok(own),
    }
}

/// Size of a message without its command, in bytes.
const FRAME_OVERHEAD: usize = 128;

/// Writes the starter policy unless the file exists. Returns true if the policy was written.
pub(crate) fn write_starter_policy(file: &Path) -> Result<bool, ShepherdCliError> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(ShepherdCliError::file(folder))?;
    }
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o644).open(file);
    match opened {
        Ok(mut opened) => {
            opened
                .write_all(starter_policy(geteuid().is_root()).as_bytes())
                .map_err(ShepherdCliError::file(file))?;
            Ok(true)
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(ShepherdCliError::file(file)(error)),
    }
}

fn print_policy(loaded: &LoadedPolicy, output: &mut ConsoleOutput) {
    let text = describe_policy(&loaded.policy);
    output.print_result(&PolicyShowReport { policy: text.clone() }, |output| {
        output.print_line(text.trim_end());
    });
}

fn read(file: &Path) -> Result<Vec<u8>, ShepherdCliError> {
    std::fs::read(file).map_err(|source| ShepherdCliError::Policy { file: file.to_owned(), source })
}

fn load(name: &str, bytes: &[u8], output: &mut ConsoleOutput) -> Result<LoadedPolicy, ShepherdCliError> {
    load_bytes(name, bytes).map_err(|report| {
        // Printing removes the colours if the output is not a terminal.
        output.print_result(&report, |output| {
            output.print_line(report.render(ReportStyle::Coloured).trim_end());
        });
        not_valid(&report)
    })
}

fn not_valid(report: &FaultReport) -> ShepherdCliError {
    let count = report.faults().len() + report.omitted_count();
    ShepherdCliError::PolicyNotValid { count, incomplete: report.is_incomplete() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The starter policy runs nothing as root.
    #[test]
    fn the_number_of_mistakes_is_open_only_after_a_syntax_error() {
        let closing_line = |text: &str| {
            let report = load_bytes("policy.toml", text.as_bytes()).unwrap_err();
            not_valid(&report).to_string()
        };
        assert_eq!(closing_line("config_version = 1\nx = 1\n"), "the policy is not valid: 1 mistake");
        assert_eq!(
            closing_line("config_version = 1\ntimezone = \"Europe\n"),
            "the policy is not valid: 1 mistake; there may be more, which show when it is corrected"
        );
        assert_eq!(
            closing_line("config_version = 1\ntimezone = \"Europe\nx = 1\n"),
            "the policy is not valid: 2 mistakes; there may be more, which show when these are corrected"
        );
    }

    #[test]
    fn the_starter_policy_of_root_names_an_account() {
        for (is_root, runs_as_nobody) in [(true, true), (false, false)] {
            let loaded = load_bytes("starter.toml", starter_policy(is_root).as_bytes()).unwrap();
            let accounts = loaded.policy.entries().iter().map(|entry| entry.run.user.as_deref());
            assert!(accounts.into_iter().all(|account| (account == Some("nobody")) == runs_as_nobody));
        }
    }

    #[test]
    fn no_policy_is_written_where_the_running_service_does_not_read_it() {
        let (own, service) = (PathBuf::from("/nowhere/own.toml"), PathBuf::from("/nowhere/service.toml"));
        assert_eq!(choose_policy_file(own.clone(), None).unwrap(), own);
        assert_eq!(choose_policy_file(own.clone(), Some(own.clone())).unwrap(), own, "root writes there");
        let refused = choose_policy_file(own, Some(service)).unwrap_err();
        assert!(refused.to_string().ends_with("reads its rules from /nowhere/service.toml"), "{refused}");
        assert!(refused.help().unwrap().starts_with("`sudo shepherd policy init` writes"));
    }
}
