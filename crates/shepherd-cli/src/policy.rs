//! Policies: is one valid, what does it say, what can be written in it; to begin with one, and to replace it (S7.4).

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use rustix::process::geteuid;
use serde::Serialize;
use shepherd_api::{Command as Order, Reply};
use shepherd_config::{Loaded, json_schema, load_bytes, show};
use shepherd_ipc::MAX_ADMIN_FRAME;
use ward_diag::Style;

use crate::context::Context;
use crate::failure::Failure;
use crate::screen::{Screen, Tone, paint};
use crate::{daemon, fit, household};

/// The policy to begin with: it needs nothing but this machine.
pub(crate) const STARTER: &str = include_str!("../../../policies/starter.toml");

#[derive(Subcommand)]
pub(crate) enum Command {
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
struct Checked {
    entries: usize,
    examples: usize,
    /// What does not fit this machine.
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Shown {
    policy: String,
}

#[derive(Serialize)]
struct Written<'p> {
    written: &'p Path,
}

pub(crate) fn run(command: &Command, context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    match command {
        Command::Check { file } => {
            let loaded = load(&file.display().to_string(), &read(file)?, screen)?;
            let checked = Checked {
                entries: loaded.policy.entries().len(),
                examples: loaded.examples,
                warnings: fit::warnings(&loaded, file),
            };
            screen.answer(&checked, |screen| {
                let (entries, examples) = (checked.entries, checked.examples);
                let told =
                    format!("{} is valid: {entries} entries, {examples} examples hold", file.display());
                screen.toned(Tone::Good, "✓", &told);
                for warning in &checked.warnings {
                    screen.remark(&format!("{}: {warning}", paint(Tone::Warn, "warning")));
                }
            });
        }
        Command::Show { file: Some(file) } => {
            shown(&load(&file.display().to_string(), &read(file)?, screen)?, screen);
        }
        Command::Show { file: None } => {
            let Reply::Policy { text, .. } = daemon::ask(context, Order::GetPolicy {})? else {
                return Err(Failure::StrangeReply);
            };
            let text = text.ok_or(Failure::StrangeReply)?;
            shown(&load("the daemon's policy", text.as_bytes(), screen)?, screen);
        }
        Command::Schema => {
            let schema = json_schema();
            screen.line(&serde_json::to_string_pretty(&schema).unwrap_or_default());
        }
        Command::Init { file } => {
            let file = match file {
                Some(file) => file.clone(),
                None => context.paths().map_err(Failure::Paths)?.policy,
            };
            if !write_starter(&file)? {
                return Err(Failure::PolicyExists { file });
            }
            screen.answer(&Written { written: &file }, |screen| {
                screen.toned(
                    Tone::Good,
                    "✓",
                    &format!("{}: read it, change it, it says how", file.display()),
                );
            });
        }
        Command::Set { file } => {
            let bytes = read(file)?;
            // Checked here first, so that faults are shown with their place in this file.
            load(&file.display().to_string(), &bytes, screen)?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let order = Order::SetPolicy { text };
            let length = serde_json::to_string(&order).map_or(0, |line| line.len()) + ROOM_AROUND;
            if length > MAX_ADMIN_FRAME {
                return Err(Failure::PolicyTooLong { file: file.clone(), limit: MAX_ADMIN_FRAME });
            }
            household::applied(&daemon::ask(context, order)?, screen)?;
        }
    }
    Ok(())
}

/// The policy to begin with. Nothing runs as root; its demonstrations need no more than nobody has.
fn starter(is_root: bool) -> String {
    let account = "[defaults]\n# Name the child's account here, or in a profile below: real programs need a home.\nuser = \"nobody\"\n";
    if is_root { STARTER.replacen("[defaults]\n", account, 1) } else { STARTER.to_owned() }
}

/// Bytes of a message around a command.
const ROOM_AROUND: usize = 128;

/// Writes the policy to begin with, unless there is something. Says whether it did.
pub(crate) fn write_starter(file: &Path) -> Result<bool, Failure> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(Failure::file(folder))?;
    }
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o644).open(file);
    match opened {
        Ok(mut opened) => {
            opened.write_all(starter(geteuid().is_root()).as_bytes()).map_err(Failure::file(file))?;
            Ok(true)
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Failure::file(file)(error)),
    }
}

fn shown(loaded: &Loaded, screen: &mut Screen) {
    let text = show(&loaded.policy);
    screen.answer(&Shown { policy: text.clone() }, |screen| screen.line(text.trim_end()));
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(|source| Failure::Policy { file: file.to_owned(), source })
}

fn load(name: &str, bytes: &[u8], screen: &mut Screen) -> Result<Loaded, Failure> {
    load_bytes(name, bytes).map_err(|report| {
        // The colours are taken out again where nobody would see them.
        screen.answer(&report, |screen| screen.line(report.render(Style::Coloured).trim_end()));
        let count = report.faults().len() + report.more();
        Failure::PolicyNotValid { count }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Root starts nothing as root, not even a demonstration.
    #[test]
    fn what_root_begins_with_names_an_account() {
        for (is_root, runs_as_nobody) in [(true, true), (false, false)] {
            let loaded = load_bytes("starter.toml", starter(is_root).as_bytes()).unwrap();
            let accounts = loaded.policy.entries().iter().map(|entry| entry.run.user.as_deref());
            assert!(accounts.into_iter().all(|account| (account == Some("nobody")) == runs_as_nobody));
        }
    }
}
