//! Starting a program: from an order to a tree that runs, on a thread of its own.

use std::ffi::OsString;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::MemfdFlags;
use shepherd_core::policy::{PolicyEntry, ResourceLimits};
use shepherd_host_api::{HostEvent, HostSpawnRequest, SpawnFailure};
use shepherd_util::ErrorChain;
use ward_process::{
    EscapeePolicy, LimitEnforcement, LimitReport, OutputTarget, ProcessSpec, SpawnError, StdinSource,
    Supervisor, TreeId, TreeLimits, UserIdentity, find_program, sandbox,
};

use crate::conflicting_program;
use crate::environment;
use crate::handle::LinuxSessionHandle;
use crate::launch_command::{LaunchCommand, LaunchCommandBuilder, LaunchResources};
use crate::options::LinuxHostOptions;
use crate::socket_folder;
use crate::state_folder::StateFolder;
use crate::sway::CompositorAccess;
use crate::unresolved::UnresolvedSessions;
use crate::user::UnixUser;
use crate::worker::{RunningSession, StartedSession};

/// Bytes of output that are kept of a session unless its entry says otherwise: enough for a day of chatter.
const OUTPUT_LIMIT: u64 = 1 << 20;

/// All that a start needs to know.
pub(crate) struct StartJob {
    pub(crate) order: HostSpawnRequest,
    pub(crate) options: Arc<LinuxHostOptions>,
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) folder: StateFolder,
    pub(crate) resources: Arc<LaunchResources>,
    /// To the compositor, if there is one.
    pub(crate) compositor: CompositorAccess,
    pub(crate) unresolved: UnresolvedSessions,
}

/// What is wrong, and what helps; whose fault it is comes on top.
pub(crate) struct LaunchError {
    pub(crate) message: String,
    pub(crate) help: String,
}

impl LaunchError {
    pub(crate) fn new(fault: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { message: fault.into(), help: cure.into() }
    }
}

impl StartJob {
    pub(crate) fn run(self) -> Result<StartedSession, SpawnFailure> {
        self.try_start().map_err(|LaunchError { message: fault, help: cure }| SpawnFailure {
            detail: format!("entry `{}`: {fault}; {cure}", self.order.entry.entry_id),
        })
    }

    fn try_start(&self) -> Result<StartedSession, LaunchError> {
        if let Some((session_id, doubt)) = self.unresolved.first() {
            return Err(LaunchError::new(
                format!("the program of session {session_id} may still run: {doubt}"),
                "wait until it is found, run the daemon as the same user as before, or restart the machine",
            ));
        }
        let entry = &self.order.entry;
        let user = self.user_for(entry)?;
        let mut base = environment::base(&self.options.environment, &self.options.search_path, user.as_ref());
        let display = self.compositor.prepare_session(&self.order.session_id);
        base.extend(display.map(|display| ("WAYLAND_DISPLAY".into(), display.into())));
        let sockets = self.options.socket_folder.join(format!("shepherd-{}", self.order.session_id));
        let kitchen =
            LaunchCommandBuilder { resources: &self.resources, environment: base, socket_folder: &sockets };
        let recipe = kitchen.build(&entry.kind)?;
        let identity = user.map(|user| UserIdentity::new(user.uid, user.gid, &user.gids));
        if let Some(rival) = recipe
            .conflicting_program
            .filter(|rival| conflicting_program::is_running(rival, uid_of(identity.as_ref())))
        {
            return Err(LaunchError::new(
                format!("`{rival}` runs already, outside of any session, and would take it over"),
                "end that one first, and let nothing else start it",
            ));
        }
        let sockets = match recipe.needs_socket_folder {
            true => Some(make_socket_folder(sockets, identity.as_ref())?),
            false => None,
        };
        self.spawn_tree(entry, recipe, identity.as_ref(), sockets.clone()).inspect_err(|_| {
            if let Some(sockets) = sockets {
                let _ = sandbox::remove_folder(&sockets);
            }
        })
    }

    fn spawn_tree(
        &self,
        entry: &PolicyEntry,
        recipe: LaunchCommand,
        identity: Option<&UserIdentity>,
        sockets: Option<PathBuf>,
    ) -> Result<StartedSession, LaunchError> {
        let session_id = &self.order.session_id;
        let log = self.folder.log_path(session_id);
        let (asks, mut shortcomings) = (recipe.stop_methods.clone(), recipe.shortcomings.clone());
        let order = self.tree_order(entry, recipe, identity, &log)?;
        let id: TreeId = session_id
            .as_str()
            .parse()
            .map_err(|error| LaunchError::new(format!("{error}"), "this is a fault of the daemon"))?;
        let mut written = None;
        let spawned = self.supervisor.spawn_recorded(id, order, |record| {
            let handle =
                LinuxSessionHandle { tree: record.clone(), asks: asks.clone(), sockets: sockets.clone() };
            let text = handle.encode().map_err(io::Error::other)?;
            self.folder.write_handle(session_id, &text)?;
            written = Some(text);
            Ok(())
        });
        let (tree, handle) = match (spawned, written) {
            (Ok(tree), Some(handle)) => (tree, handle),
            (Ok(_), None) => {
                return Err(LaunchError::new("it was not written down", "this is a fault of the daemon"));
            }
            (Err(error), written) => {
                if written.is_some() {
                    self.folder.remove_handle(session_id);
                }
                return Err(explain_spawn_error(&error));
            }
        };
        shortcomings.extend(unenforced_limits(identity, tree.limit_reports()));
        let event =
            HostEvent::Spawned { session_id: session_id.clone(), handle, output: Some(log), shortcomings };
        let user = uid_of(identity);
        Ok(StartedSession { running: RunningSession::new(tree, asks, user, sockets), event })
    }

    fn tree_order(
        &self,
        entry: &PolicyEntry,
        recipe: LaunchCommand,
        identity: Option<&UserIdentity>,
        log: &Path,
    ) -> Result<ProcessSpec, LaunchError> {
        let LaunchCommand { argv, environment, directory, input, .. } = recipe;
        let name = argv.first().ok_or_else(|| LaunchError::new("it names no program", "name one"))?;
        let program = resolve_program(name, &environment)?;
        let directory = directory.unwrap_or_else(|| environment::home(&environment));
        let mut order = ProcessSpec::new(program)
            .argv0(name)
            .args(argv.iter().skip(1))
            .directory(directory)
            .limits(tree_limits(entry.run.limits))
            .escapees(EscapeePolicy::Held)
            .stdout(OutputTarget::Record {
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
            Some(text) => Ok(order.stdin(memfd_input(&text).map_err(|error| {
                LaunchError::new(format!("could not prepare its input ({error})"), "free some memory")
            })?)),
            None => Ok(order),
        }
    }

    /// Whom to run as, if not as ourselves.
    fn user_for(&self, entry: &PolicyEntry) -> Result<Option<UnixUser>, LaunchError> {
        let Some(name) = &entry.run.user else { return Ok(None) };
        let user = find_user(name)?;
        let own = rustix::process::geteuid();
        if own.as_raw() == user.uid {
            return Ok(None);
        }
        if !own.is_root() {
            return Err(LaunchError::new(
                format!("it is to run as `{name}`, and only root can run something as somebody else"),
                "run the daemon as root, or take `user` away",
            ));
        }
        Ok(Some(user))
    }
}

/// Somebody whom a policy names.
pub(crate) fn find_user(name: &str) -> Result<UnixUser, LaunchError> {
    UnixUser::find_on_system(name)
        .map_err(|error| {
            LaunchError::new(format!("the users of this machine can't be read ({error})"), "mend it")
        })?
        .ok_or_else(|| {
            LaunchError::new(
                format!("it is to run as `{name}`, who is no user of this machine"),
                "name one that `/etc/passwd` lists",
            )
        })
}

/// Looks a program up where the entry says, or where programs are.
pub(crate) fn resolve_program(
    name: &OsString,
    environment: &[(OsString, OsString)],
) -> Result<PathBuf, LaunchError> {
    let path = environment::get(environment, "PATH").unwrap_or_default();
    find_program(name, path).ok_or_else(|| {
        let shown = name.to_string_lossy();
        let fault = if shown.contains('/') {
            format!("`{shown}` is no whole path")
        } else {
            format!("there is no program `{shown}` in {}", path.to_string_lossy())
        };
        LaunchError::new(fault, "install it, or give its whole path")
    })
}

/// The number of the user that a program runs as.
pub(crate) fn uid_of(identity: Option<&UserIdentity>) -> u32 {
    identity.map_or_else(|| rustix::process::geteuid().as_raw(), UserIdentity::user)
}

fn make_socket_folder(folder: PathBuf, identity: Option<&UserIdentity>) -> Result<PathBuf, LaunchError> {
    match socket_folder::make(&folder, identity) {
        Ok(()) => Ok(folder),
        Err(error) => Err(LaunchError::new(
            format!("could not make `{}` for its control socket ({error})", folder.display()),
            "free some space there",
        )),
    }
}

/// A text to be read, of any length, with nobody at the other end who would have to wait.
fn memfd_input(text: &[u8]) -> io::Result<StdinSource> {
    let mut file = std::fs::File::from(rustix::fs::memfd_create("payload", MemfdFlags::CLOEXEC)?);
    file.write_all(text)?;
    file.rewind()?;
    Ok(StdinSource::FromFd(file.into()))
}

fn tree_limits(limits: ResourceLimits) -> TreeLimits {
    TreeLimits {
        processes: limits.processes.map(u64::from),
        memory: limits.memory,
        processor_percent: limits.cpu_percent,
        processor_seconds: None,
        file_size: limits.file_size,
        open_files: limits.open_files.map(u64::from),
    }
}

fn unenforced_limits(identity: Option<&UserIdentity>, reports: &[LimitReport]) -> Vec<String> {
    let mut sentences = Vec::new();
    if uid_of(identity) == 0 {
        sentences.push("It runs as root, who can leave every containment: name a user for it.".to_owned());
    }
    for LimitReport { limit, kept } in reports {
        match kept {
            LimitEnforcement::Not { reason } => {
                sentences.push(format!("Its bound on `{limit}` is not kept: {reason}."));
            }
            LimitEnforcement::ByResourceLimit if *limit == "memory" => sentences.push(
                "Its bound on `memory` is kept for the address space of each process, not for all together."
                    .to_owned(),
            ),
            LimitEnforcement::ByResourceLimit | LimitEnforcement::ByCgroup => {}
        }
    }
    sentences
}

/// Says what went wrong and what helps.
fn explain_spawn_error(error: &SpawnError) -> LaunchError {
    let cure = match error {
        SpawnError::NulByte { .. } | SpawnError::RelativeProgram { .. } | SpawnError::ZeroLimit { .. } => {
            "correct the entry"
        }
        SpawnError::Start { .. } => "see that program and folder are there and open to the user it runs as",
        SpawnError::NotRecorded(_) | SpawnError::Stream { .. } => {
            "see that the data folder can be written and has space left"
        }
        SpawnError::Killed { .. } => "look who kills programs here: the kernel does when memory is short",
        SpawnError::CannotDieWithSupervisor(_)
        | SpawnError::Sandbox(_)
        | SpawnError::Cgroup { .. }
        | SpawnError::Fork(_) => "`shepherd doctor` says what this machine can't do",
    };
    LaunchError::new(ErrorChain(error).to_string(), cure)
}
