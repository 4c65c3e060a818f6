//! The program `shepherd-notify`, which a desktop starts at each login.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use shepherd_notify::{NotifierError, NotifierOptions, VoiceOptions};
use shepherd_util::{ProfileId, ShepherdPaths};

/// Show Shepherd's warnings as notifications on this desktop
#[derive(Parser)]
#[command(
    name = "shepherd-notify",
    version,
    after_help = "A desktop starts this program at each login. It runs until the login ends, shows warnings to a child, and \
                  children's requests to a parent."
)]
struct NotifyArgs {
    /// Socket of the daemon [default: the machine's daemon]
    #[arg(long, value_name = "PATH", env = "SHEPHERD_SOCKET", hide_env_values = true)]
    socket: Option<PathBuf>,
    /// Show the notifications of this profile, for a login that several children share
    #[arg(long, value_name = "NAME")]
    profile: Option<ProfileId>,
    /// Write messages to this terminal, for a login without a desktop
    #[arg(long)]
    terminal: bool,
    /// Read messages aloud with `spd-say` or `espeak-ng`, if installed
    #[arg(long)]
    speak: bool,
    /// Play a sound with each message, with `canberra-gtk-play` or `paplay`, if installed
    #[arg(long)]
    sound: bool,
}

fn main() -> ExitCode {
    match start(NotifyArgs::parse()) {
        // The login has ended, or another instance shows everything already.
        Ok(()) | Err(NotifierError::AlreadyRunning) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            if let Some(help) = error.help() {
                print_help(help);
            }
            ExitCode::from(3)
        }
    }
}

fn start(arguments: NotifyArgs) -> Result<(), NotifierError> {
    let socket = match arguments.socket {
        Some(socket) => socket,
        None => ShepherdPaths::system(&std::collections::BTreeMap::new())?.socket,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let voice = VoiceOptions { speaks: arguments.speak, sounds: arguments.sound };
    let options = NotifierOptions::new(socket, report).for_profile(arguments.profile).with_voice(voice);
    let options = if arguments.terminal { options.on_console() } else { options };
    runtime.block_on(shepherd_notify::run(options))
}

#[expect(clippy::print_stderr, reason = "a program may print its own failures")]
fn report(error: &dyn Error) {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    eprintln!("error: {error}{cause}");
}

#[expect(clippy::print_stderr, reason = "a program may print its own failures")]
fn print_help(help: &str) {
    eprintln!("help: {help}");
}
