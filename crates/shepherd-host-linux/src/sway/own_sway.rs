//! A Sway that the daemon starts itself. It ends with the daemon, unless a session runs: the session goes on without
//! the daemon, and so does the Sway that shows its windows (S9.1).

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::PidfdFlags;
use serde::{Deserialize, Serialize};
use ward_process::{
    Containment, OutputTarget, ProcessSpec, ProcessTree, ReattachError, StopLadder, Supervisor, TreeId,
    TreeMembership, TreeRecord, UserIdentity, find_program,
};

use super::SwayContext;
use super::connection::SwayConnection;
use super::sway_children::SwayChildren;
use super::sway_folders::SwayFolders;
use crate::environment;
use crate::launch_error::LaunchError;
use crate::options::LinuxHostOptions;
use crate::start_job::find_user;
use crate::user::UnixUser;

/// The prefixes of the daemon's variables that a compositor gets in addition: they describe its screen and its seat.
const VARIABLE_PREFIXES: &[&str] = &["WLR_", "XDG_", "LIBSEAT_"];

/// The time that Sway gets to end on request.
const GRACE: Duration = Duration::from_secs(1);

/// The bytes of output that are kept: a day of errors.
const OUTPUT_LIMIT: u64 = 1 << 20;

/// The time in which a reattached Sway must answer. If it works, it already listens.
const READY_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest record that is read. Real records are much smaller.
const MAX_RECORD: u64 = 1 << 20;

pub(super) struct OwnSway {
    supervisor: Supervisor,
    tree: Arc<Mutex<ProcessTree>>,
    /// The readiness descriptor of the tree, which can be polled without the lock.
    readiness: OwnedFd,
    members: TreeMembership,
    sway_children: SwayChildren,
    details: SwayDetails,
    /// The path of the record for a later daemon.
    record: PathBuf,
    since: Instant,
    on_drop: DropAction,
}

struct SwayDetails {
    argv: Vec<String>,
    user: Option<String>,
    /// The folders of a Sway that runs as a user of its own.
    folders: Option<SwayFolders>,
    socket: PathBuf,
    origin: SwayOrigin,
}

/// The origin of a Sway, which determines how the daemon knows whether Sway itself still runs.
enum SwayOrigin {
    /// This daemon started Sway, and the supervisor reports its exit.
    Started,
    /// An earlier daemon started Sway. The pidfd is that of the process that answers at the socket.
    Reattached(Option<OwnedFd>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DropAction {
    End,
    Detach,
}

/// The record by which a later daemon reattaches Sway.
#[derive(Serialize, Deserialize)]
struct SwayRecord {
    tree: TreeRecord,
    argv: Vec<String>,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    folders: Option<SwayFolders>,
    socket: PathBuf,
}

impl OwnSway {
    /// Starts a Sway.
    ///
    /// # Errors
    /// Returns the problem and its cure as a sentence.
    pub(super) fn start(argv: &[String], user: Option<&str>, context: &SwayContext) -> Result<Self, String> {
        let options = &context.options;
        let failed = |error: &dyn std::error::Error| format!("could not start `{}`: {error}", argv.join(" "));
        let account = user.map(find_compositor_user).transpose()?.flatten();
        let identity = account.as_ref().map(|user| UserIdentity::new(user.uid, user.gid, &user.gids));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let id = format!("compositor-{}-{now:x}", std::process::id());
        let mut spec = process_spec(argv, account.as_ref(), options)?;
        let name = format!("shepherd-{id}");
        // Inside a PID namespace, Sway would not know the process ids of its clients.
        let containment = match context.containment {
            Containment::Cgroup => Containment::Cgroup,
            _ => Containment::Subreaper,
        };
        let supervisor = Supervisor::with_containment(containment).map_err(|error| failed(&error))?;
        let id: TreeId = id.parse().map_err(|error| failed(&error))?;
        let mut folders = None;
        if let Some(identity) = identity {
            let made = SwayFolders::make(&options.socket_folder, &name, &identity)
                .map_err(|error| format!("could not create the folders of the compositor: {error}"))?;
            spec = spec.identity(identity).env("XDG_RUNTIME_DIR", made.runtime_folder());
            folders = Some(made);
        }
        let socket = folders
            .as_ref()
            .map_or_else(|| options.socket_folder.join(format!("{name}.sock")), SwayFolders::ipc_socket);
        let log = context.folder.compositor_log_path();
        let spec = spec
            .env("SWAYSOCK", &socket)
            .stdout(OutputTarget::Record { path: log, limit: OUTPUT_LIMIT })
            .stderr_with_stdout();
        let record = context.folder.compositor_record_path();
        let (argv, user) = (argv.to_vec(), user.map(str::to_owned));
        let details = SwayDetails { argv, user, folders, socket, origin: SwayOrigin::Started };
        let spawned =
            supervisor.spawn_recorded(id, spec, |tree| write_record(&record, &details.record(tree.clone())));
        let tree = spawned.map_err(|error| {
            details.remove_sockets();
            failed(&error)
        })?;
        Self::supervise(context, supervisor, tree, details).map_err(|error| failed(&error))
    }

    /// Reattaches the Sway that an earlier daemon has left, if it still runs.
    ///
    /// # Errors
    /// Fails if Sway may still run, but can't be reattached.
    pub(super) fn reattach(context: &SwayContext) -> Result<Option<Self>, String> {
        let path = context.folder.compositor_record_path();
        let Some(SwayRecord { tree: record, argv, user, folders, socket }) = read_record(&path) else {
            return Ok(None);
        };
        let failed = |error: &dyn std::error::Error| {
            format!("could not reattach the Sway of an earlier daemon, which may still run: {error}")
        };
        let supervisor = Supervisor::with_containment(record.containment).map_err(|error| failed(&error))?;
        let details = SwayDetails { argv, user, folders, socket, origin: SwayOrigin::Reattached(None) };
        match supervisor.reattach(&record) {
            Ok(tree) => {
                Self::supervise(context, supervisor, tree, details).map(Some).map_err(|error| failed(&error))
            }
            Err(ReattachError::Gone(_)) => {
                details.remove_sockets();
                let _ = std::fs::remove_file(&path);
                Ok(None)
            }
            Err(error) => Err(failed(&error)),
        }
    }

    /// Starts to watch a Sway. A Sway that can't be watched is killed.
    fn supervise(
        context: &SwayContext,
        supervisor: Supervisor,
        mut tree: ProcessTree,
        details: SwayDetails,
    ) -> io::Result<Self> {
        let readiness = tree.readiness_fd().try_clone_to_owned().inspect_err(|_| {
            // If a process survives, the next daemon finds it by the record.
            let _ = supervisor.stop(&mut tree, StopLadder::force());
        })?;
        let (members, sway_children) = (tree.membership(), context.sway_children.clone());
        let (record, on_drop) = (context.folder.compositor_record_path(), DropAction::End);
        let tree = Arc::new(Mutex::new(tree));
        sway_children.set_sway(&tree);
        let since = Instant::now();
        Ok(Self { supervisor, tree, readiness, members, sway_children, details, record, since, on_drop })
    }

    pub(super) fn was_started_with(&self, argv: &[String], user: Option<&str>) -> bool {
        self.details.argv == argv && self.details.user.as_deref() == user
    }

    /// Returns the folders of a Sway that runs as a user of its own.
    pub(super) fn folders(&self) -> Option<&SwayFolders> {
        self.details.folders.as_ref()
    }

    /// Connects to Sway, if it listens by now.
    pub(super) fn connect(&mut self) -> io::Result<SwayConnection> {
        let runtime_folder = self.folders().map(SwayFolders::runtime_folder);
        let connection = SwayConnection::open(&self.details.socket, runtime_folder)?;
        // Other users can create sockets in that folder. The pidfd is opened first, so that the process id can't be
        // reused before the check.
        let peer = rustix::process::Pid::from_raw(connection.sway().pid).ok_or(io::ErrorKind::NotFound)?;
        let peer = rustix::process::pidfd_open(peer, PidfdFlags::empty())?;
        if !self.members.contains(connection.sway().pid) {
            return Err(io::Error::other("another process listens at its socket"));
        }
        if let SwayOrigin::Reattached(sway) = &mut self.details.origin {
            *sway = Some(peer);
        }
        self.sway_children.set_ready(connection.sway().pid);
        Ok(connection)
    }

    pub(super) fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// Returns a descriptor that is readable when Sway may have ended.
    pub(super) fn readiness(&self) -> BorrowedFd<'_> {
        self.readiness.as_fd()
    }

    /// Returns whether Sway has ended. A Sway that can't be watched counts as ended. The programs that it started don't
    /// count.
    pub(super) fn has_ended(&self) -> bool {
        let mut tree = self.lock_tree();
        let tree_ended = !matches!(tree.poll_ended(), Ok(None));
        tree_ended
            || match &self.details.origin {
                SwayOrigin::Started => !matches!(tree.program_exit(), Ok(None)),
                SwayOrigin::Reattached(sway) => sway.as_ref().is_some_and(has_exited),
            }
    }

    /// Returns whether a reattached Sway has not answered in time, and so is of no use any more.
    pub(super) fn is_unresponsive(&self) -> bool {
        matches!(self.details.origin, SwayOrigin::Reattached(None)) && self.age() > READY_TIMEOUT
    }

    /// Lets Sway go on without this daemon, so that the next one can reattach it.
    pub(super) fn detach(mut self) {
        self.on_drop = DropAction::Detach;
    }

    /// Locks the tree. After a panic in another thread the tree can still be stopped, so poisoning is ignored.
    fn lock_tree(&self) -> MutexGuard<'_, ProcessTree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SwayDetails {
    fn record(&self, tree: TreeRecord) -> SwayRecord {
        let Self { argv, user, folders, socket, origin: _ } = self;
        let (argv, user, folders, socket) = (argv.clone(), user.clone(), folders.clone(), socket.clone());
        SwayRecord { tree, argv, user, folders, socket }
    }

    /// Removes the IPC socket, and the folders of a Sway that runs as a user of its own.
    fn remove_sockets(&self) {
        match &self.folders {
            Some(folders) => folders.remove(),
            None => _ = std::fs::remove_file(&self.socket),
        }
    }
}

/// Finds the user that Sway is to run as, unless it is the daemon's own user.
fn find_compositor_user(name: &str) -> Result<Option<UnixUser>, String> {
    let user = find_user(name).map_err(|LaunchError { message, help }| format!("{message}; {help}"))?;
    let own = rustix::process::geteuid();
    match own.as_raw() == user.uid {
        true => Ok(None),
        false if own.is_root() => Ok(Some(user)),
        false => Err(format!(
            "only root can start the compositor as user `{name}`; run the daemon as root, or remove `user`"
        )),
    }
}

/// Returns the program of Sway with its arguments and its environment.
fn process_spec(
    argv: &[String],
    user: Option<&UnixUser>,
    options: &LinuxHostOptions,
) -> Result<ProcessSpec, String> {
    let name = argv.first().map_or("", String::as_str);
    let program = find_program(OsStr::new(name), &options.search_path)
        .ok_or_else(|| format!("program `{name}` not found; install it, or give its absolute path"))?;
    let mut spec = ProcessSpec::new(program).argv0(name).args(argv.iter().skip(1));
    let base = environment::base(&options.environment, &options.search_path, user);
    for (name, value) in
        base.into_iter().chain(options.environment.iter().filter(is_compositor_variable).cloned())
    {
        spec = spec.env(name, value);
    }
    Ok(spec)
}

/// Writes the record. The file is not synced: it names a tree of this boot, and a power failure that loses the file
/// also ends the tree.
fn write_record(path: &Path, record: &SwayRecord) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(&serde_json::to_vec(record)?)
}

/// Reads the record. A half-written record belongs to a Sway that never ran.
fn read_record(path: &Path) -> Option<SwayRecord> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(MAX_RECORD).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn has_exited(pidfd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}

fn is_compositor_variable((name, _): &&(OsString, OsString)) -> bool {
    name.to_str().is_some_and(|name| VARIABLE_PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
}

impl Drop for OwnSway {
    fn drop(&mut self) {
        if self.on_drop == DropAction::Detach {
            return;
        }
        let stopped = self.supervisor.stop(&mut self.lock_tree(), StopLadder::polite(GRACE));
        self.sway_children.clear_sway();
        // If a process survives its kill, the next daemon finds it by the record.
        if stopped.is_ok() {
            let _ = std::fs::remove_file(&self.record);
        }
        self.details.remove_sockets();
    }
}
