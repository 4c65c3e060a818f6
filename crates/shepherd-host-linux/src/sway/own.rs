//! A Sway that we start ourselves, and that ends with us.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ward_process::{
    Containment, Ladder, Lifetime, Membership, Order, Output, Supervisor, Tree, TreeId, find_program,
};

use super::Means;
use super::guests::Guests;
use super::link::Link;
use crate::environment;

/// Variables of the daemon's that a compositor gets besides those that every program gets: where its screen and its
/// seat are.
const PREFIXES: &[&str] = &["WLR_", "XDG_", "LIBSEAT_"];

/// How long it may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(1);

/// Bytes of what it says that are kept: errors, for a day of them.
const OUTPUT_LIMIT: u64 = 1 << 20;

/// A Sway in a tree of its own.
pub(super) struct OwnSway {
    supervisor: Supervisor,
    tree: Arc<Mutex<Tree>>,
    /// Of the tree, for those who only wait.
    readiness: OwnedFd,
    members: Membership,
    guests: Guests,
    socket: PathBuf,
    since: Instant,
}

impl OwnSway {
    /// # Errors
    /// With what went wrong, and what helps.
    pub(super) fn start(argv: &[String], means: &Means) -> Result<Self, String> {
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
        let supervisor = Supervisor::with(containment).map_err(|error| fault(&error))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let id = format!("compositor-{}-{now:x}", std::process::id());
        let socket = options.socket_folder.join(format!("shepherd-{id}.sock"));
        let mut order = Order::new(program)
            .name(name)
            .args(argv.iter().skip(1))
            .lifetime(Lifetime::DiesWithSupervisor)
            .stdout(Output::Record { path: means.log.clone(), limit: OUTPUT_LIMIT })
            .stderr_with_stdout();
        let base = environment::base(&options.environment, &options.search_path, None);
        for (name, value) in
            base.into_iter().chain(options.environment.iter().filter(is_ours_to_give).cloned())
        {
            order = order.env(name, value);
        }
        let id: TreeId = id.parse().map_err(|error| fault(&error))?;
        let tree = supervisor.spawn(id, order.env("SWAYSOCK", &socket)).map_err(|error| fault(&error))?;
        let readiness = tree.readiness().try_clone_to_owned().map_err(|error| fault(&error))?;
        let (members, guests) = (tree.membership(), means.guests.clone());
        let tree = Arc::new(Mutex::new(tree));
        guests.move_in(&tree);
        Ok(Self { supervisor, tree, readiness, members, guests, socket, since: Instant::now() })
    }

    /// Connects, if it listens by now.
    pub(super) fn connect(&self) -> io::Result<Link> {
        let link = Link::open(&self.socket)?;
        // Others can make sockets there, too.
        if self.members.contains(link.peer()) {
            self.guests.listens();
            Ok(link)
        } else {
            Err(io::Error::other("whoever listens at its socket is somebody else"))
        }
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
        let mut tree = self.tree();
        !matches!((tree.program_exit(), tree.poll_ended()), (Ok(None), Ok(None)))
    }

    /// Whoever panicked with it has left a tree that can be ended.
    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_ours_to_give((name, _): &&(OsString, OsString)) -> bool {
    name.to_str().is_some_and(|name| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
}

impl Drop for OwnSway {
    fn drop(&mut self) {
        // What can't be stopped is killed when its handle is dropped.
        let _ = self.supervisor.stop(&mut self.tree(), Ladder::polite(GRACE));
        self.guests.move_out();
        let _ = std::fs::remove_file(&self.socket);
    }
}
