//! `shepherd up`: runs the daemon in this process, in the foreground.

use std::path::{Path, PathBuf};
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
                  Stop it with Ctrl-C or SIGTERM. A running program then goes on, and the next `shepherd up` takes it \
                  over, unless the policy has `on_shutdown = \"end-sessions\"`. To run it as a service: `systemctl enable --now \
                  shepherdd`."
)]
pub(crate) struct UpArgs {
    /// Policy file; a starter policy is written if the file does not exist
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Folder for the database, the audit log and the session logs
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Run entries without an account as root; only for trying things out, because time limits can't be enforced
    #[arg(long)]
    allow_root: bool,
    /// Stop when this process ends; used by the demonstration
    #[arg(long, value_name = "PID", hide = true, value_parser = clap::value_parser!(i32).range(1..))]
    end_with: Option<i32>,
    /// Remove this folder at the end; used by the demonstration
    #[arg(long, value_name = "DIR", hide = true, requires = "end_with")]
    remove: Option<PathBuf>,
}

pub(crate) fn run(
    up: &UpArgs,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<ExitCode, ShepherdCliError> {
    let options = shepherdd::DaemonOptions {
        policy: up.policy.clone(),
        data_dir: up.data_dir.clone(),
        socket: context.socket_override().cloned(),
        allow_root: up.allow_root,
        ..shepherdd::DaemonOptions::default()
    };
    let paths = options.paths(context.environment(), geteuid().is_root())?;
    let parent_runs = up.end_with.and_then(Pid::from_raw).map_or(Ok(true), exit_with_parent)?;
    // The demonstration talks to its own daemon. A socket that was named is this daemon's, however its path is written.
    let is_own_socket = up.end_with.is_some() || context.socket_override().is_some();
    let chosen = context.socket().ok().filter(|chosen| !is_own_socket && *chosen != paths.socket);
    let code =
        if parent_runs { serve(&options, &paths, chosen.as_deref(), output)? } else { ExitCode::SUCCESS };
    if let Some(folder) = &up.remove {
        // The demonstration removes the folder as well, and may have done so already.
        let _ = std::fs::remove_dir_all(folder);
    }
    Ok(code)
}

fn serve(
    options: &shepherdd::DaemonOptions,
    paths: &ShepherdPaths,
    other_service: Option<&Path>,
    output: &mut ConsoleOutput,
) -> Result<ExitCode, ShepherdCliError> {
    if write_starter_policy(&paths.policy)? {
        output.print_note(&format!("Wrote a starter policy to {}.", paths.policy.display()));
    }
    if let Some(service) = other_service {
        output.print_note(&format!(
            "Commands use the service of this computer, at {}. To use this daemon, add `--socket {}` to a command.",
            service.display(),
            paths.socket.display()
        ));
    }
    output.print_note(&format!("Listening at {}. Press Ctrl-C to stop.", paths.socket.display()));
    Ok(shepherdd::run(options))
}

/// Makes this process stop when its parent ends. Returns true if the parent is still running.
fn exit_with_parent(parent: Pid) -> Result<bool, ShepherdCliError> {
    set_parent_process_death_signal(Some(Signal::TERM))
        .map_err(|error| ShepherdCliError::io("follow the parent process")(error.into()))?;
    // The parent may have ended before the signal was set.
    Ok(getppid() == Some(parent))
}
