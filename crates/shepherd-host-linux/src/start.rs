//! Starting a program: from an order to a tree that runs, on a thread of its own.

use std::ffi::OsString;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::MemfdFlags;
use shepherd_core::policy::{Entry, RunLimits};
use shepherd_host_api::{HostEvent, SpawnFailure, SpawnOrder};
use shepherd_util::Chain;
use ward_process::{
    Identity, Input, Kept, Leavers, LimitReport, Limits, Order, Output, SpawnError, Supervisor, TreeId,
    find_program, sandbox,
};

use crate::doubts::Doubts;
use crate::environment;
use crate::folder::StateFolder;
use crate::handle::Handle;
use crate::options::LinuxHostOptions;
use crate::recipe::{Catalogue, Kitchen, Recipe};
use crate::rival;
use crate::socket_folder;
use crate::sway::Entrance;
use crate::user::User;
use crate::worker::{Running, Started};

/// Bytes of output that are kept of a session unless its entry says otherwise: enough for a day of chatter.
const OUTPUT_LIMIT: u64 = 1 << 20;

/// All that a start needs to know.
pub(crate) struct Start {
    pub(crate) order: SpawnOrder,
    pub(crate) options: Arc<LinuxHostOptions>,
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) folder: StateFolder,
    pub(crate) catalogue: Arc<Catalogue>,
    /// To the compositor, if there is one.
    pub(crate) entrance: Entrance,
    pub(crate) doubts: Doubts,
}

/// What is wrong, and what helps; whose fault it is comes on top.
pub(crate) struct Fault {
    pub(crate) fault: String,
    pub(crate) cure: String,
}

impl Fault {
    pub(crate) fn new(fault: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { fault: fault.into(), cure: cure.into() }
    }
}

impl Start {
    pub(crate) fn carry_out(self) -> Result<Started, SpawnFailure> {
        self.try_out().map_err(|Fault { fault, cure }| SpawnFailure {
            detail: format!("entry `{}`: {fault}; {cure}", self.order.entry.entry_id),
        })
    }

    fn try_out(&self) -> Result<Started, Fault> {
        if let Some((session_id, doubt)) = self.doubts.first() {
            return Err(Fault::new(
                format!("the program of session {session_id} may still run: {doubt}"),
                "wait until it is found, run the daemon as the same user as before, or restart the machine",
            ));
        }
        let entry = &self.order.entry;
        let user = self.user(entry)?;
        let mut base = environment::base(&self.options.environment, &self.options.search_path, user.as_ref());
        let display = self.entrance.enter(&self.order.session_id);
        base.extend(display.map(|display| ("WAYLAND_DISPLAY".into(), display.into())));
        let sockets = self.options.socket_folder.join(format!("shepherd-{}", self.order.session_id));
        let kitchen = Kitchen { catalogue: &self.catalogue, environment: base, sockets: &sockets };
        let recipe = kitchen.recipe(&entry.kind)?;
        let identity = user.map(|user| Identity::new(user.user, user.group, &user.groups));
        if let Some(rival) = recipe.rival.filter(|rival| rival::runs(rival, user_of(identity.as_ref()))) {
            return Err(Fault::new(
                format!("`{rival}` runs already, outside of any session, and would take it over"),
                "end that one first, and let nothing else start it",
            ));
        }
        let sockets = match recipe.needs_sockets {
            true => Some(make_socket_folder(sockets, identity.as_ref())?),
            false => None,
        };
        self.start(entry, recipe, identity.as_ref(), sockets.clone()).inspect_err(|_| {
            if let Some(sockets) = sockets {
                let _ = sandbox::remove_folder(&sockets);
            }
        })
    }

    fn start(
        &self,
        entry: &Entry,
        recipe: Recipe,
        identity: Option<&Identity>,
        sockets: Option<PathBuf>,
    ) -> Result<Started, Fault> {
        let session_id = &self.order.session_id;
        let log = self.folder.log_path(session_id);
        let (asks, mut shortcomings) = (recipe.asks.clone(), recipe.shortcomings.clone());
        let order = self.order(entry, recipe, identity, &log)?;
        let id: TreeId = session_id
            .as_str()
            .parse()
            .map_err(|error| Fault::new(format!("{error}"), "this is a fault of the daemon"))?;
        let mut written = None;
        let spawned = self.supervisor.spawn_recorded(id, order, |record| {
            let handle = Handle { tree: record.clone(), asks: asks.clone(), sockets: sockets.clone() };
            let text = handle.to_text().map_err(io::Error::other)?;
            self.folder.write(session_id, &text)?;
            written = Some(text);
            Ok(())
        });
        let (tree, handle) = match (spawned, written) {
            (Ok(tree), Some(handle)) => (tree, handle),
            (Ok(_), None) => {
                return Err(Fault::new("it was not written down", "this is a fault of the daemon"));
            }
            (Err(error), written) => {
                if written.is_some() {
                    self.folder.forget(session_id);
                }
                return Err(explain(&error));
            }
        };
        shortcomings.extend(unkept(identity, tree.limit_reports()));
        let event =
            HostEvent::Spawned { session_id: session_id.clone(), handle, output: Some(log), shortcomings };
        let user = user_of(identity);
        Ok(Started { running: Running::new(tree, asks, user, sockets), event })
    }

    fn order(
        &self,
        entry: &Entry,
        recipe: Recipe,
        identity: Option<&Identity>,
        log: &Path,
    ) -> Result<Order, Fault> {
        let Recipe { argv, environment, directory, input, .. } = recipe;
        let name = argv.first().ok_or_else(|| Fault::new("it names no program", "name one"))?;
        let program = find(name, &environment)?;
        let directory = directory.unwrap_or_else(|| environment::home(&environment));
        let mut order = Order::new(program)
            .name(name)
            .args(argv.iter().skip(1))
            .directory(directory)
            .limits(limits(entry.run.limits))
            .leavers(Leavers::Held)
            .stdout(Output::Record {
                path: log.to_owned(),
                limit: entry.run.output_limit.unwrap_or(OUTPUT_LIMIT),
            })
            .stderr_with_stdout();
        for (name, value) in environment {
            order = order.env(name, value);
        }
        if let Some(identity) = identity {
            order = order.identity(identity.clone());
        }
        match input {
            Some(text) => Ok(order.stdin(in_memory(&text).map_err(|error| {
                Fault::new(format!("could not prepare its input ({error})"), "free some memory")
            })?)),
            None => Ok(order),
        }
    }

    /// Whom to run as, if not as ourselves.
    fn user(&self, entry: &Entry) -> Result<Option<User>, Fault> {
        let Some(name) = &entry.run.user else { return Ok(None) };
        let user = account(name)?;
        let own = rustix::process::geteuid();
        if own.as_raw() == user.user {
            return Ok(None);
        }
        if !own.is_root() {
            return Err(Fault::new(
                format!("it is to run as `{name}`, and only root can run something as somebody else"),
                "run the daemon as root, or take `user` away",
            ));
        }
        Ok(Some(user))
    }
}

/// Somebody whom a policy names.
pub(crate) fn account(name: &str) -> Result<User, Fault> {
    User::find_here(name)
        .map_err(|error| Fault::new(format!("the users of this machine can't be read ({error})"), "mend it"))?
        .ok_or_else(|| {
            Fault::new(
                format!("it is to run as `{name}`, who is no user of this machine"),
                "name one that `/etc/passwd` lists",
            )
        })
}

/// Looks a program up where the entry says, or where programs are.
pub(crate) fn find(name: &OsString, environment: &[(OsString, OsString)]) -> Result<PathBuf, Fault> {
    let path = environment::get(environment, "PATH").unwrap_or_default();
    find_program(name, path).ok_or_else(|| {
        let shown = name.to_string_lossy();
        let fault = if shown.contains('/') {
            format!("`{shown}` is no whole path")
        } else {
            format!("there is no program `{shown}` in {}", path.to_string_lossy())
        };
        Fault::new(fault, "install it, or give its whole path")
    })
}

/// The number of the user that a program runs as.
pub(crate) fn user_of(identity: Option<&Identity>) -> u32 {
    identity.map_or_else(|| rustix::process::geteuid().as_raw(), Identity::user)
}

fn make_socket_folder(folder: PathBuf, identity: Option<&Identity>) -> Result<PathBuf, Fault> {
    match socket_folder::make(&folder, identity) {
        Ok(()) => Ok(folder),
        Err(error) => Err(Fault::new(
            format!("could not make `{}` for its control socket ({error})", folder.display()),
            "free some space there",
        )),
    }
}

/// A text to be read, of any length, with nobody at the other end who would have to wait.
fn in_memory(text: &[u8]) -> io::Result<Input> {
    let mut file = std::fs::File::from(rustix::fs::memfd_create("payload", MemfdFlags::CLOEXEC)?);
    file.write_all(text)?;
    file.rewind()?;
    Ok(Input::From(file.into()))
}

fn limits(limits: RunLimits) -> Limits {
    Limits {
        processes: limits.processes.map(u64::from),
        memory: limits.memory,
        processor_percent: limits.cpu_percent,
        processor_seconds: None,
        file_size: limits.file_size,
        open_files: limits.open_files.map(u64::from),
    }
}

fn unkept(identity: Option<&Identity>, reports: &[LimitReport]) -> Vec<String> {
    let mut sentences = Vec::new();
    if user_of(identity) == 0 {
        sentences.push("It runs as root, who can leave every containment: name a user for it.".to_owned());
    }
    for LimitReport { limit, kept } in reports {
        match kept {
            Kept::Not { reason } => sentences.push(format!("Its bound on `{limit}` is not kept: {reason}.")),
            Kept::ByResourceLimit if *limit == "memory" => sentences.push(
                "Its bound on `memory` is kept for the address space of each process, not for all together."
                    .to_owned(),
            ),
            Kept::ByResourceLimit | Kept::ByCgroup => {}
        }
    }
    sentences
}

/// Says what went wrong and what helps.
fn explain(error: &SpawnError) -> Fault {
    let cure = match error {
        SpawnError::Nul { .. } | SpawnError::RelativeProgram { .. } | SpawnError::ZeroLimit { .. } => {
            "correct the entry"
        }
        SpawnError::Start { .. } => "see that program and folder are there and open to the user it runs as",
        SpawnError::NotRecorded(_) | SpawnError::Stream { .. } => {
            "see that the data folder can be written and has space left"
        }
        SpawnError::Killed { .. } => "look who kills programs here: the kernel does when memory is short",
        SpawnError::NoPromise(_)
        | SpawnError::Sandbox(_)
        | SpawnError::Cgroup { .. }
        | SpawnError::Fork(_) => "`shepherd doctor` says what this machine can't do",
    };
    Fault::new(Chain(error).to_string(), cure)
}
