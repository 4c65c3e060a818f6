//! Policies: is one valid, what does it say, what can be written in it; to begin with one, and to replace it (S7.4).

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
use ward_diag::ReportStyle;

use crate::context::CommandContext;
use crate::error::ShepherdCliError;
use crate::output::{ConsoleOutput, TextTone, paint};
use crate::{daemon, household, policy_warnings};

/// The policy to begin with: it needs nothing but this machine.
pub(crate) const STARTER_POLICY: &str = include_str!("../../../policies/starter.toml");

#[derive(Subcommand)]
pub(crate) enum PolicyCommand {
    /// Says whether a policy is valid, with every fault, its place and its cure. Exit code 1 if it is not.
    ///
    /// Warns of accounts and programs that this machine does not have; that makes no policy invalid.
    #[command(after_help = "Examples:\n  shepherd policy check policy.toml")]
    Check {
        /// The policy.
        file: PathBuf,
    },
    /// Says in plain sentences what a policy allows.
    #[command(after_help = "Examples:\n  shepherd policy show policy.toml\n  shepherd policy show")]
    Show {
        /// The policy; that of the daemon if absent.
        file: Option<PathBuf>,
    },
    /// Prints the JSON Schema of the format, for editors.
    Schema,
    /// Writes a policy to begin with.
    #[command(after_help = "Examples:\n  shepherd policy init\n  shepherd policy init ./policy.toml")]
    Init {
        /// Where; where the daemon looks for it if absent.
        file: Option<PathBuf>,
    },
    /// Replaces the daemon's policy with this one, if it is valid.
    #[command(after_help = "Examples:\n  shepherd policy set policy.toml")]
    Set {
        /// The new policy.
        file: PathBuf,
    },
}

#[derive(Serialize)]
struct PolicyCheckReport {
    entries: usize,
    examples: usize,
    /// What does not fit this machine.
    warnings: Vec<String>,
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
    screen: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    match command {
        PolicyCommand::Check { file } => {
            let loaded = load(&file.display().to_string(), &read(file)?, screen)?;
            let checked = PolicyCheckReport {
                entries: loaded.policy.entries().len(),
                examples: loaded.examples,
                warnings: policy_warnings::collect_warnings(&loaded, file),
            };
            screen.print_result(&checked, |screen| {
                let (entries, examples) = (checked.entries, checked.examples);
                let told =
                    format!("{} is valid: {entries} entries, {examples} examples hold", file.display());
                screen.print_marked(TextTone::Good, "✓", &told);
                for warning in &checked.warnings {
                    screen.print_note(&format!("{}: {warning}", paint(TextTone::Warn, "warning")));
                }
            });
        }
        PolicyCommand::Show { file: Some(file) } => {
            print_policy(&load(&file.display().to_string(), &read(file)?, screen)?, screen);
        }
        PolicyCommand::Show { file: None } => {
            let CommandReply::Policy { text, .. } = daemon::send_command(context, Order::GetPolicy {})?
            else {
                return Err(ShepherdCliError::UnexpectedReply);
            };
            let text = text.ok_or(ShepherdCliError::UnexpectedReply)?;
            print_policy(&load("the daemon's policy", text.as_bytes(), screen)?, screen);
        }
        PolicyCommand::Schema => {
            let schema = json_schema();
            screen.print_line(&serde_json::to_string_pretty(&schema).unwrap_or_default());
        }
        PolicyCommand::Init { file } => {
            let file = match file {
                Some(file) => file.clone(),
                None => context.paths().map_err(ShepherdCliError::Paths)?.policy,
            };
            if !write_starter_policy(&file)? {
                return Err(ShepherdCliError::PolicyExists { file });
            }
            screen.print_result(&PolicyInitReport { written: &file }, |screen| {
                screen.print_marked(
                    TextTone::Good,
                    "✓",
                    &format!("{}: read it, change it, it says how", file.display()),
                );
            });
        }
        PolicyCommand::Set { file } => {
            let bytes = read(file)?;
            // Checked here first, so that faults are shown with their place in this file.
            load(&file.display().to_string(), &bytes, screen)?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let order = Order::SetPolicy { text };
            let length = serde_json::to_string(&order).map_or(0, |line| line.len()) + FRAME_OVERHEAD;
            if length > MAX_ADMIN_FRAME {
                return Err(ShepherdCliError::PolicyTooLong { file: file.clone(), limit: MAX_ADMIN_FRAME });
            }
            household::print_policy_applied(&daemon::send_command(context, order)?, screen)?;
        }
    }
    Ok(())
}

/// The policy to begin with. Nothing runs as root; its demonstrations need no more than nobody has.
fn starter_policy(is_root: bool) -> String {
    let account = "[defaults]\n# Name the child's account here, or in a profile below: real programs need a home.\nuser = \"nobody\"\n";
    if is_root { STARTER_POLICY.replacen("[defaults]\n", account, 1) } else { STARTER_POLICY.to_owned() }
}

/// Bytes of a message around a command.
const FRAME_OVERHEAD: usize = 128;

/// Writes the policy to begin with, unless there is something. Says whether it did.
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

fn print_policy(loaded: &LoadedPolicy, screen: &mut ConsoleOutput) {
    let text = describe_policy(&loaded.policy);
    screen.print_result(&PolicyShowReport { policy: text.clone() }, |screen| {
        screen.print_line(text.trim_end());
    });
}

fn read(file: &Path) -> Result<Vec<u8>, ShepherdCliError> {
    std::fs::read(file).map_err(|source| ShepherdCliError::Policy { file: file.to_owned(), source })
}

fn load(name: &str, bytes: &[u8], screen: &mut ConsoleOutput) -> Result<LoadedPolicy, ShepherdCliError> {
    load_bytes(name, bytes).map_err(|report| {
        // The colours are taken out again where nobody would see them.
        screen.print_result(&report, |screen| {
            screen.print_line(report.render(ReportStyle::Coloured).trim_end());
        });
        let count = report.faults().len() + report.omitted_count();
        ShepherdCliError::PolicyNotValid { count }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Root starts nothing as root, not even a demonstration.
    #[test]
    fn what_root_begins_with_names_an_account() {
        for (is_root, runs_as_nobody) in [(true, true), (false, false)] {
            let loaded = load_bytes("starter.toml", starter_policy(is_root).as_bytes()).unwrap();
            let accounts = loaded.policy.entries().iter().map(|entry| entry.run.user.as_deref());
            assert!(accounts.into_iter().all(|account| (account == Some("nobody")) == runs_as_nobody));
        }
    }
}
