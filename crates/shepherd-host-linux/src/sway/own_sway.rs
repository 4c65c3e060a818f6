//! A Sway that we start ourselves. It ends with us, unless a session runs: that one goes on without us, and so does what
//! shows its windows (S9.1).

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
    TreeMembership, TreeRecord, find_program,
};

use super::SwayContext;
use super::connection::SwayConnection;
use super::sway_children::SwayChildren;
use crate::environment;

/// Variables of the daemon's that a compositor gets besides those that every program gets: where its screen and its
/// seat are.
const VARIABLE_PREFIXES: &[&str] = &["WLR_", "XDG_", "LIBSEAT_"];

/// How long it may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(1);

/// Bytes of what it says that are kept: errors, for a day of them.
const OUTPUT_LIMIT: u64 = 1 << 20;

/// How long one that was taken back may take to answer: it listens already, if it works.
const READY_TIMEOUT: Duration = Duration::from_secs(10);

/// No record of ours comes near it.
const MAX_RECORD: u64 = 1 << 20;

/// A Sway in a tree of its own.
pub(super) struct OwnSway {
    supervisor: Supervisor,
    tree: Arc<Mutex<ProcessTree>>,
    /// Of the tree, for those who only wait.
    readiness: OwnedFd,
    members: TreeMembership,
    sway_children: SwayChildren,
    details: SwayDetails,
    /// Where it is written down.
    record: PathBuf,
    since: Instant,
    on_drop: DropAction,
}

/// What is known of it besides its tree.
struct SwayDetails {
    /// By what it was started.
    argv: Vec<String>,
    /// Where it listens.
    socket: PathBuf,
    origin: SwayOrigin,
}

/// How we came by it, and so how we know whether Sway itself still runs.
enum SwayOrigin {
    /// We started it, and are told.
    Started,
    /// An earlier daemon did. Who answers at its socket is Sway.
    Reattached(Option<OwnedFd>),
}

/// What becomes of it when we let go of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DropAction {
    End,
    Detach,
}

/// What is written down of it.
#[derive(Serialize, Deserialize)]
struct SwayRecord {
    tree: TreeRecord,
    argv: Vec<String>,
    socket: PathBuf,
}

impl OwnSway {
    /// # Errors
    /// With what went wrong, and what helps.
    pub(super) fn start(argv: &[String], means: &SwayContext) -> Result<Self, String> {
        let options = &means.options;
        let fault =
            |error: &dyn std::error::Error| format!("`{}` can't be started ({error})", argv.join(" "));
        let name = argv.first().map_or("", String::as_str);
        let program = find_program(OsStr::new(name), &options.search_path)
            .ok_or_else(|| format!("there is no program `{name}`; install it, or give its whole path"))?;
        // Inside a PID namespace it could not tell whose a window is.
        let containment = match means.containment {
            Containment::Cgroup => Containment::Cgroup,
            _ => Containment::Subreaper,
        };
        let supervisor = Supervisor::with_containment(containment).map_err(|error| fault(&error))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let id = format!("compositor-{}-{now:x}", std::process::id());
        let socket = options.socket_folder.join(format!("shepherd-{id}.sock"));
        let log = means.folder.compositor_log_path();
        let mut order = ProcessSpec::new(program)
            .argv0(name)
            .args(argv.iter().skip(1))
            .stdout(OutputTarget::Record { path: log, limit: OUTPUT_LIMIT })
            .stderr_with_stdout();
        let base = environment::base(&options.environment, &options.search_path, None);
        for (name, value) in
            base.into_iter().chain(options.environment.iter().filter(is_compositor_variable).cloned())
        {
            order = order.env(name, value);
        }
        let id: TreeId = id.parse().map_err(|error| fault(&error))?;
        let order = order.env("SWAYSOCK", &socket);
        let record = means.folder.compositor_record_path();
        let spawned = supervisor.spawn_recorded(id, order, |tree| {
            let (tree, argv, socket) = (tree.clone(), argv.to_vec(), socket.clone());
            write_record(&record, &SwayRecord { tree, argv, socket })
        });
        let tree = spawned.map_err(|error| fault(&error))?;
        let argv = argv.to_vec();
        Self::supervise(means, supervisor, tree, SwayDetails { argv, socket, origin: SwayOrigin::Started })
            .map_err(|error| fault(&error))
    }

    /// The one that an earlier daemon has left, if it still runs.
    ///
    /// # Errors
    /// When it may run, but can't be held.
    pub(super) fn reattach(means: &SwayContext) -> Result<Option<Self>, String> {
        let path = means.folder.compositor_record_path();
        let Some(SwayRecord { tree: record, argv, socket }) = read_record(&path) else { return Ok(None) };
        let fault = |error: &dyn std::error::Error| {
            format!("the Sway of an earlier daemon may still run, but can't be taken back ({error})")
        };
        let supervisor = Supervisor::with_containment(record.containment).map_err(|error| fault(&error))?;
        match supervisor.reattach(&record) {
            Ok(tree) => {
                let known = SwayDetails { argv, socket, origin: SwayOrigin::Reattached(None) };
                Self::supervise(means, supervisor, tree, known).map(Some).map_err(|error| fault(&error))
            }
            Err(ReattachError::Gone(_)) => {
                let _ = std::fs::remove_file(&socket);
                let _ = std::fs::remove_file(&path);
                Ok(None)
            }
            Err(error) => Err(fault(&error)),
        }
    }

    /// One that can't be watched is ended.
    fn supervise(
        means: &SwayContext,
        supervisor: Supervisor,
        mut tree: ProcessTree,
        known: SwayDetails,
    ) -> io::Result<Self> {
        let readiness = tree.readiness_fd().try_clone_to_owned().inspect_err(|_| {
            // What outlives that is looked for by the next daemon.
            let _ = supervisor.stop(&mut tree, StopLadder::force());
        })?;
        let (members, guests) = (tree.membership(), means.sway_children.clone());
        let (record, on_drop) = (means.folder.compositor_record_path(), DropAction::End);
        let tree = Arc::new(Mutex::new(tree));
        guests.set_sway(&tree);
        let since = Instant::now();
        Ok(Self {
            supervisor,
            tree,
            readiness,
            members,
            sway_children: guests,
            details: known,
            record,
            since,
            on_drop,
        })
    }

    /// By what it was started.
    pub(super) fn argv(&self) -> &[String] {
        &self.details.argv
    }

    /// Connects, if it listens by now.
    pub(super) fn connect(&mut self) -> io::Result<SwayConnection> {
        let link = SwayConnection::open(&self.details.socket)?;
        // Others can make sockets there, too. Looked at after the number was pinned.
        let peer = rustix::process::Pid::from_raw(link.peer_pid()).ok_or(io::ErrorKind::NotFound)?;
        let peer = rustix::process::pidfd_open(peer, PidfdFlags::empty())?;
        if !self.members.contains(link.peer_pid()) {
            return Err(io::Error::other("whoever listens at its socket is somebody else"));
        }
        if let SwayOrigin::Reattached(sway) = &mut self.details.origin {
            *sway = Some(peer);
        }
        self.sway_children.set_ready();
        Ok(link)
    }

    pub(super) fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// Readable when it may have ended.
    pub(super) fn readiness(&self) -> BorrowedFd<'_> {
        self.readiness.as_fd()
    }

    /// One that can't be watched counts as ended, and is. What it started does not keep it alive.
    pub(super) fn has_ended(&self) -> bool {
        let mut tree = self.lock_tree();
        let tree_ended = !matches!(tree.poll_ended(), Ok(None));
        tree_ended
            || match &self.details.origin {
                SwayOrigin::Started => !matches!(tree.program_exit(), Ok(None)),
                SwayOrigin::Reattached(sway) => sway.as_ref().is_some_and(has_exited),
            }
    }

    /// One that was taken back and does not answer is of no use any more.
    pub(super) fn is_unresponsive(&self) -> bool {
        matches!(self.details.origin, SwayOrigin::Reattached(None)) && self.age() > READY_TIMEOUT
    }

    /// It goes on without us, to be taken back.
    pub(super) fn detach(mut self) {
        self.on_drop = DropAction::Detach;
    }

    /// Whoever panicked with it has left a tree that can be ended.
    fn lock_tree(&self) -> MutexGuard<'_, ProcessTree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Not synced: it names a tree of this boot, and whatever a disk loses, that tree is lost as well.
fn write_record(path: &Path, record: &SwayRecord) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(&serde_json::to_vec(record)?)
}

/// One that is half written is none: its Sway never ran.
fn read_record(path: &Path) -> Option<SwayRecord> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(MAX_RECORD).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn has_exited(pidfd: &OwnedFd) -> bool {
    let mut waiting = [PollFd::new(pidfd, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut waiting, Some(&now)).is_ok_and(|ready| ready > 0)
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
        // What outlives its kill is looked for by the next daemon.
        if stopped.is_ok() {
            let _ = std::fs::remove_file(&self.record);
        }
        let _ = std::fs::remove_file(&self.details.socket);
    }
}
