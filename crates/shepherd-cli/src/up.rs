//! The daemon in the foreground, in this very process.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use rustix::process::{Pid, Signal, geteuid, getppid, set_parent_process_death_signal};
use shepherd_util::ShepherdPaths;

use crate::context::CommandContext;
use crate::error::ShepherdCliError;
use crate::output::ConsoleOutput;
use crate::policy::write_starter_policy;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  shepherd up\n  shepherd up --policy ./policy.toml --data-dir ./data --socket ./shepherd.sock\n\n\
                  It is ended with Ctrl-C or SIGTERM. As a service: `systemctl enable --now shepherdd`."
)]
pub(crate) struct UpArgs {
    /// The policy file. A starter policy is written if there is none.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// The folder for database, audit log and session logs.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Lets what names no account run as root, if you are root: for trying things out, since nothing can hold such a
    /// program.
    #[arg(long)]
    allow_root: bool,
    /// Ends with this process, whatever ends it: for the demonstration.
    #[arg(long, value_name = "PID", hide = true, value_parser = clap::value_parser!(i32).range(1..))]
    end_with: Option<i32>,
    /// Removes this folder at the end: for the demonstration.
    #[arg(long, value_name = "DIR", hide = true, requires = "end_with")]
    remove: Option<PathBuf>,
}

pub(crate) fn run(
    up: &UpArgs,
    context: &CommandContext,
    screen: &mut ConsoleOutput,
) -> Result<ExitCode, ShepherdCliError> {
    let options = shepherdd::DaemonOptions {
        policy: up.policy.clone(),
        data_dir: up.data_dir.clone(),
        socket: context.socket_override().cloned(),
        allow_root: up.allow_root,
        ..shepherdd::DaemonOptions::default()
    };
    let paths = options.paths(context.environment(), geteuid().is_root())?;
    let wanted = up.end_with.and_then(Pid::from_raw).map_or(Ok(true), exit_with_parent)?;
    let ended = if wanted { serve(&options, &paths, screen)? } else { ExitCode::SUCCESS };
    if let Some(folder) = &up.remove {
        // The demonstration removes it as well; whoever comes second finds it gone.
        let _ = std::fs::remove_dir_all(folder);
    }
    Ok(ended)
}

fn serve(
    options: &shepherdd::DaemonOptions,
    paths: &ShepherdPaths,
    screen: &mut ConsoleOutput,
) -> Result<ExitCode, ShepherdCliError> {
    if write_starter_policy(&paths.policy)? {
        screen.print_note(&format!("There was no policy; {} is one to begin with.", paths.policy.display()));
    }
    screen.print_note(&format!("Listening at {}. Ctrl-C ends it.", paths.socket.display()));
    Ok(shepherdd::run(options))
}

/// Makes this process end in order when its parent does. Says whether the parent is still there.
fn exit_with_parent(parent: Pid) -> Result<bool, ShepherdCliError> {
    set_parent_process_death_signal(Some(Signal::TERM))
        .map_err(|error| ShepherdCliError::io("end with the parent")(error.into()))?;
    // It may have ended before we asked.
    Ok(getppid() == Some(parent))
}
