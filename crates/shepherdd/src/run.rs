//! Puts the daemon together and runs it.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit};
use shepherd_host_linux::{AsRoot, HostError, LinuxHost, LinuxHostOptions};
use shepherd_ipc::BindError;
use shepherd_store::{Claim, OpenError, SqliteStore, Store as _};
use shepherd_util::{BootIdError, Chain, Clock, Environment, SystemClock};

use crate::begin::{self, Store};
use crate::options::{Options, OptionsError};
use crate::{log, policy_source};

/// The exit code when something outside failed.
const FAILED: u8 = 3;

/// How long to wait for another daemon's lock. One that was killed while it started a program leaves its locks to the
/// child until that runs the program, or finds that nobody wants it to.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// Why there is no daemon.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Options(#[from] OptionsError),
    #[error("can't make the folder {}", path.display())]
    Folder { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    InUse(OpenError),
    #[error("can't tell which boot of the machine this is")]
    Boot(#[from] BootIdError),
    #[error("can't prepare to start programs")]
    Host(#[from] HostError),
    #[error(transparent)]
    Socket(#[from] BindError),
    #[error("can't set up the loop")]
    Loop(#[from] std::io::Error),
}

/// Runs the daemon until a signal ends it. Says on standard error why, if it could not.
#[must_use]
pub fn run(options: &Options) -> ExitCode {
    let log = match log::start() {
        Ok(log) => log,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "shepherdd: can't log: {error}");
            return ExitCode::from(FAILED);
        }
    };
    log::abort_on_panic(log.clone());
    let environment: Environment =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect();
    let ended = match run_with(options, environment) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{}", Chain(&error));
            ExitCode::from(FAILED)
        }
    };
    log.flush(log::LAST_WORDS);
    ended
}

fn run_with(options: &Options, environment: Environment) -> Result<(), StartError> {
    let paths = &options.paths(&environment, rustix::process::geteuid().is_root())?;
    let knocking = options.knocking()?;
    let as_root = if options.allow_root { AsRoot::UnlessNamed } else { AsRoot::Never };
    make_folder(&paths.data, PRIVATE)?;
    if let Some(folder) = paths.socket.parent() {
        make_folder(folder, TO_THE_SOCKET)?;
    }
    let policy = policy_source::read_meanwhile(&paths.policy);
    // First, because it tells whether another daemon is at work here.
    let claim = claim_store(&paths.data)?;
    let host = LinuxHostOptions {
        environment: environment.into_iter().map(|(name, value)| (name.into(), value)).collect(),
        as_root,
        ..LinuxHostOptions::new(paths.data.clone())
    };
    let host = std::thread::Builder::new().name("host".to_owned()).spawn(move || LinuxHost::new(host))?;
    // Here and not there, because it takes most memory: the heap of another thread grows page by page.
    let store = open_store(claim);
    let host = host.join().map_err(|_| std::io::Error::other("the host broke down"))??;
    // After the host, whose programs get what we have been given ourselves.
    make_room_for_clients();
    // One thread: the loop is the only one who knows the state.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (service, inputs) = begin::begin(paths, knocking, store, Box::new(host), policy()).await?;
        Ok(service.run(inputs).await?)
    })
}

/// Every client is a descriptor, and the usual limit is for programs that have few.
fn make_room_for_clients() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = rustix::process::setrlimit(Resource::Nofile, most) {
        tracing::warn!(%error, "the number of clients stays small");
    }
}

/// Whether another daemon is at work here is known at once. What else may be wrong with the store is no reason not to
/// run.
fn claim_store(folder: &Path) -> Result<Result<Claim, OpenError>, StartError> {
    let deadline = Instant::now() + LOCK_PATIENCE;
    loop {
        match SqliteStore::claim(folder) {
            Err(OpenError::InUse { .. }) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error @ OpenError::InUse { .. }) => return Err(StartError::InUse(error)),
            claimed => return Ok(claimed),
        }
    }
}

/// A store that can't be opened is no reason not to run: what an earlier daemon started has to end on time. But
/// nothing is granted.
fn open_store(claim: Result<Claim, OpenError>) -> Store {
    let (store, opened) = match claim.and_then(|claim| claim.open(SystemClock.now().wall)) {
        Ok(open) => open,
        Err(error) => return Store::Broken(Chain(&error).to_string()),
    };
    match store.load() {
        Ok(stored) => Store::Open { store: Box::new(store), opened, stored: Box::new(stored) },
        Err(error) => Store::Broken(Chain(&error).to_string()),
    }
}

/// Nobody but the daemon's user has to see what it keeps.
const PRIVATE: u32 = 0o700;

/// Whoever may connect has to get to the socket, and is asked for credentials there.
const TO_THE_SOCKET: u32 = 0o755;

/// Makes a folder with this mode, whatever the mask says. One that exists is somebody's choice and stays as it is.
fn make_folder(path: &Path, mode: u32) -> Result<(), StartError> {
    if path.is_dir() {
        return Ok(());
    }
    let made = std::fs::DirBuilder::new().recursive(true).mode(mode).create(path);
    let made = made.and_then(|()| std::fs::set_permissions(path, Permissions::from_mode(mode)));
    made.map_err(|source| StartError::Folder { path: path.to_owned(), source })
}
