//! Puts the daemon together and runs it.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit};
use shepherd_host_linux::{HostSetupError, LinuxHost, LinuxHostOptions, RunAsRoot};
use shepherd_ipc::BindError;
use shepherd_store::{SqliteStore, Store as _, StoreClaim, StoreOpenError};
use shepherd_util::{BootIdError, Clock, EnvironmentVariables, ErrorChain, SystemClock};

use crate::options::{DaemonOptions, DaemonOptionsError};
use crate::policy_copy::PolicyCopy;
use crate::service::TimeSyncSource;
use crate::startup::{self, StartupStore};
use crate::{log, policy_source};

/// The exit code for a failure outside the daemon.
const EXIT_FAILED: u8 = 3;

/// The time to wait for another daemon's lock. A daemon that was killed while it started a program leaves its locks to
/// the child until the child executes the program or exits.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// The error for a daemon that can't start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Options(#[from] DaemonOptionsError),
    #[error("could not create the folder {}", path.display())]
    Folder { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    InUse(StoreOpenError),
    #[error("could not read the boot id")]
    Boot(#[from] BootIdError),
    #[error("could not set up the host")]
    Host(#[from] HostSetupError),
    #[error(transparent)]
    Socket(#[from] BindError),
    #[error("could not set up the event loop")]
    Loop(#[from] std::io::Error),
}

/// Runs the daemon until a signal ends it. If it can't start, standard error says why.
#[must_use]
pub fn run(options: &DaemonOptions) -> ExitCode {
    if options.release_controllers {
        return release_controllers();
    }
    let log = match log::start() {
        Ok(log) => log,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "shepherdd: could not start logging: {error}");
            return ExitCode::from(EXIT_FAILED);
        }
    };
    log::abort_on_panic(log.clone());
    let environment: EnvironmentVariables =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect();
    let ended = match run_with(options, environment) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{}", ErrorChain(&error));
            ExitCode::from(EXIT_FAILED)
        }
    };
    log.flush(log::FLUSH_TIMEOUT);
    ended
}

fn release_controllers() -> ExitCode {
    match shepherd_host_linux::release_controllers() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ =
                writeln!(std::io::stderr(), "shepherdd: could not release the cgroup controllers: {error}");
            ExitCode::from(EXIT_FAILED)
        }
    }
}

fn run_with(options: &DaemonOptions, environment: EnvironmentVariables) -> Result<(), StartError> {
    let paths = &options.paths(&environment, rustix::process::geteuid().is_root())?;
    let socket_access = options.socket_access()?;
    let time_sync = if options.ignore_time_sync { TimeSyncSource::Nobody } else { TimeSyncSource::System };
    let as_root = if options.allow_root { RunAsRoot::WithoutAccount } else { RunAsRoot::Never };
    make_folder(&paths.data, PRIVATE_FOLDER_MODE)?;
    if let Some(folder) = paths.socket.parent() {
        make_folder(folder, SOCKET_FOLDER_MODE)?;
    }
    let policy = policy_source::read_in_background(&paths.policy);
    // This comes first, because it shows whether another daemon runs here.
    let claim = claim_store(&paths.data)?;
    let host = LinuxHostOptions {
        environment: environment.into_iter().map(|(name, value)| (name.into(), value)).collect(),
        as_root,
        ..LinuxHostOptions::new(paths.data.clone())
    };
    let host = std::thread::Builder::new().name("host".to_owned()).spawn(move || LinuxHost::new(host))?;
    // This runs on the main thread because it needs the most memory: the heap of another thread grows page by page.
    let store = open_store(claim);
    let host = host.join().map_err(|_| std::io::Error::other("the thread of the host panicked"))??;
    // This comes after the host, so that its programs inherit the original limits.
    raise_descriptor_limit();
    // One thread is enough, because only the loop accesses the state.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let copy = PolicyCopy::new(&paths.data, &paths.policy);
        let policy = policy_source::choose_start_policy(policy(), &copy, SystemClock.now().wall);
        let (mut service, inputs) =
            startup::start_service(paths, socket_access, store, Box::new(host), policy).await?;
        service.time_sync.source = time_sync;
        Ok(service.run(inputs).await?)
    })
}

/// Raises the limit of file descriptors: every client needs one, and the usual limit is low.
fn raise_descriptor_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = rustix::process::setrlimit(Resource::Nofile, most) {
        tracing::warn!(%error, "could not raise the limit of file descriptors, so fewer clients can connect");
    }
}

/// Claims the store's folder. Another daemon is noticed at once; the daemon also runs with any other fault of the
/// store.
fn claim_store(folder: &Path) -> Result<Result<StoreClaim, StoreOpenError>, StartError> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match SqliteStore::claim(folder) {
            Err(StoreOpenError::InUse { .. }) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error @ StoreOpenError::InUse { .. }) => return Err(StartError::InUse(error)),
            claimed => return Ok(claimed),
        }
    }
}

/// Opens the store. If that fails, the daemon still runs, because sessions of an earlier daemon have to end on time,
/// but it grants nothing.
fn open_store(claim: Result<StoreClaim, StoreOpenError>) -> StartupStore {
    let (store, opened) = match claim.and_then(|claim| claim.open(SystemClock.now().wall)) {
        Ok(open) => open,
        Err(error) => return StartupStore::Unavailable(ErrorChain(&error).to_string()),
    };
    match store.load() {
        Ok(stored) => StartupStore::Open { store: Box::new(store), opened, stored: Box::new(stored) },
        Err(error) => StartupStore::Unavailable(ErrorChain(&error).to_string()),
    }
}

/// The mode of folders that only the daemon's user reads.
const PRIVATE_FOLDER_MODE: u32 = 0o700;

/// The mode of the socket's folder: clients have to reach the socket, which checks their credentials.
const SOCKET_FOLDER_MODE: u32 = 0o755;

/// Creates a folder with this mode, whatever the umask. An existing folder stays as it is.
fn make_folder(path: &Path, mode: u32) -> Result<(), StartError> {
    if path.is_dir() {
        return Ok(());
    }
    let made = std::fs::DirBuilder::new().recursive(true).mode(mode).create(path);
    let made = made.and_then(|()| std::fs::set_permissions(path, Permissions::from_mode(mode)));
    made.map_err(|source| StartError::Folder { path: path.to_owned(), source })
}
