//! The daemon in the foreground, in this very process.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use rustix::process::{Pid, Signal, geteuid, getppid, set_parent_process_death_signal};
use shepherd_util::Paths;

use crate::context::Context;
use crate::failure::Failure;
use crate::policy::write_starter;
use crate::screen::Screen;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  shepherd up\n  shepherd up --policy ./policy.toml --data-dir ./data --socket ./shepherd.sock\n\n\
                  It is ended with Ctrl-C or SIGTERM. As a service: `systemctl enable --now shepherdd`."
)]
pub(crate) struct Up {
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

pub(crate) fn run(up: &Up, context: &Context, screen: &mut Screen) -> Result<ExitCode, Failure> {
    let options = shepherdd::Options {
        policy: up.policy.clone(),
        data_dir: up.data_dir.clone(),
        socket: context.given_socket().cloned(),
        allow_root: up.allow_root,
        ..shepherdd::Options::default()
    };
    let paths = options.paths(context.environment(), geteuid().is_root())?;
    let wanted = up.end_with.and_then(Pid::from_raw).map_or(Ok(true), ends_with)?;
    let ended = if wanted { serve(&options, &paths, screen)? } else { ExitCode::SUCCESS };
    if let Some(folder) = &up.remove {
        // The demonstration removes it as well; whoever comes second finds it gone.
        let _ = std::fs::remove_dir_all(folder);
    }
    Ok(ended)
}

fn serve(options: &shepherdd::Options, paths: &Paths, screen: &mut Screen) -> Result<ExitCode, Failure> {
    if write_starter(&paths.policy)? {
        screen.remark(&format!("There was no policy; {} is one to begin with.", paths.policy.display()));
    }
    screen.remark(&format!("Listening at {}. Ctrl-C ends it.", paths.socket.display()));
    Ok(shepherdd::run(options))
}

/// Makes this process end in order when its parent does. Says whether the parent is still there.
fn ends_with(parent: Pid) -> Result<bool, Failure> {
    set_parent_process_death_signal(Some(Signal::TERM))
        .map_err(|error| Failure::io("end with the parent")(error.into()))?;
    // It may have ended before we asked.
    Ok(getppid() == Some(parent))
}
