//! Starts the program of an entry, on its own thread.

use std::ffi::{OsStr, OsString};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::MemfdFlags;
use shepherd_core::policy::{PolicyEntry, ResourceLimits};
use shepherd_host_api::{HostEvent, HostSpawnRequest, SpawnFailure};
use ward_process::{
    EscapeePolicy, LimitEnforcement, LimitReport, OutputTarget, ProcessSpec, StdinSource, Supervisor, TreeId,
    TreeLimits, UserIdentity, find_program, sandbox,
};

use crate::conflicting_program;
use crate::environment;
use crate::handle::LinuxSessionHandle;
use crate::launch_command::{LaunchCommand, LaunchCommandBuilder, LaunchResources};
use crate::launch_error::LaunchError;
use crate::options::{LinuxHostOptions, RunAsRoot};
use crate::socket_folder;
use crate::start_permission::StartPermission;
use crate::state_folder::StateFolder;
use crate::sway::CompositorAccess;
use crate::unresolved::UnresolvedSessions;
use crate::user::UnixUser;
use crate::worker::{RunningSession, StartedSession, WorkerMessage};

/// The bytes of output that are kept of a session by default: enough for a day of a talkative program.
const OUTPUT_LIMIT: u64 = 1 << 20;

pub(crate) struct StartJob {
    pub(crate) request: HostSpawnRequest,
    pub(crate) options: Arc<LinuxHostOptions>,
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) folder: StateFolder,
    pub(crate) resources: Arc<LaunchResources>,
    pub(crate) compositor: CompositorAccess,
    pub(crate) unresolved: UnresolvedSessions,
    pub(crate) permission: StartPermission,
}

impl StartJob {
    pub(crate) fn run(self) -> WorkerMessage {
        let outcome = self.try_start().map_err(|LaunchError { message, help }| SpawnFailure {
            detail: format!("entry `{}`: {message}; {help}", self.request.entry.entry_id),
        });
        let session_id = self.request.session_id;
        // A failure is reported only when the program should run.
        match self.permission.wait_until_permitted() {
            true => WorkerMessage::Started(session_id, outcome.map(Box::new)),
            false => WorkerMessage::Abandoned(session_id),
        }
    }

    fn try_start(&self) -> Result<StartedSession, LaunchError> {
        if let Some((session_id, detail)) = self.unresolved.first() {
            return Err(LaunchError::new(
                format!("the program of session {session_id} may still run: {detail}"),
                "wait until it is found, run the daemon as the same user as before, or restart the machine",
            ));
        }
        let entry = &self.request.entry;
        let user = self.user_for(entry)?;
        let mut base = environment::base(&self.options.environment, &self.options.search_path, user.as_ref());
        let identity = user.map(|user| UserIdentity::new(user.uid, user.gid, &user.gids));
        let uid = uid_of(identity.as_ref());
        let display = self.compositor.prepare_session(&self.request.session_id, uid);
        // The compositor comes first: its windows can be brought to the front.
        let shown_on = if display.variables.is_empty() {
            let of_client = self.request.display.as_ref().map(|named| named.variables_for(uid));
            let variables = of_client.unwrap_or_default().into_iter();
            variables.map(|(name, value)| (name.into(), value.into())).collect()
        } else {
            display.variables
        };
        environment::replace_display(&mut base, shown_on);
        let sockets = self.options.socket_folder.join(format!("shepherd-{}", self.request.session_id));
        let builder =
            LaunchCommandBuilder { resources: &self.resources, environment: base, socket_folder: &sockets };
        let mut command = builder.build(&entry.kind)?;
        command.shortcomings.extend(display.shortcomings);
        if let Some(conflicting) =
            command.conflicting_program.filter(|program| conflicting_program::is_running(program, uid))
        {
            return Err(LaunchError::new(
                format!(
                    "`{conflicting}` is already running outside of any session and would take over the launch"
                ),
                "quit it first, and let nothing else start it",
            ));
        }
        let sockets = match command.needs_socket_folder {
            true => Some(make_socket_folder(sockets, identity.as_ref())?),
            false => None,
        };
        self.spawn_tree(entry, command, identity.as_ref(), sockets.clone()).inspect_err(|_| {
            if let Some(sockets) = sockets {
                let _ = sandbox::remove_folder(&sockets);
            }
        })
    }

    fn spawn_tree(
        &self,
        entry: &PolicyEntry,
        command: LaunchCommand,
        identity: Option<&UserIdentity>,
        sockets: Option<PathBuf>,
    ) -> Result<StartedSession, LaunchError> {
        let session_id = &self.request.session_id;
        let log = self.folder.log_path(session_id);
        let (stop_methods, mut shortcomings) = (command.stop_methods.clone(), command.shortcomings.clone());
        let spec = self.process_spec(entry, command, identity, &log)?;
        let id: TreeId = session_id
            .as_str()
            .parse()
            .map_err(|error| LaunchError::new(format!("{error}"), "this is a bug in the daemon"))?;
        let mut recorded = None;
        let spawned = self.supervisor.spawn_recorded(id, spec, |record| {
            if !self.permission.wait_until_permitted() {
                return Err(io::Error::other("the launch was taken back"));
            }
            let (asks, sockets) = (stop_methods.clone(), sockets.clone());
            let handle = LinuxSessionHandle { tree: record.clone(), asks, sockets };
            let text = handle.encode().map_err(io::Error::other)?;
            self.folder.write_handle(session_id, &text)?;
            recorded = Some(text);
            Ok(())
        });
        let (tree, handle) = match (spawned, recorded) {
            (Ok(tree), Some(handle)) => (tree, handle),
            (Ok(_), None) => {
                return Err(LaunchError::new("its handle was not recorded", "this is a bug in the daemon"));
            }
            (Err(error), recorded) => {
                if recorded.is_some() {
                    self.folder.remove_handle(session_id);
                }
                return Err(LaunchError::from_spawn(&error));
            }
        };
        shortcomings.extend(unenforced_limits(identity, tree.limit_reports()));
        let event =
            HostEvent::Spawned { session_id: session_id.clone(), handle, output: Some(log), shortcomings };
        let user = uid_of(identity);
        Ok(StartedSession { running: RunningSession::new(tree, stop_methods, user, sockets), event })
    }

    fn process_spec(
        &self,
        entry: &PolicyEntry,
        command: LaunchCommand,
        identity: Option<&UserIdentity>,
        log: &Path,
    ) -> Result<ProcessSpec, LaunchError> {
        let LaunchCommand { argv, environment, directory, input, .. } = command;
        let name = argv.first().ok_or_else(LaunchError::empty_command)?;
        let program = resolve_program(name, &environment)?;
        let directory = directory.unwrap_or_else(|| environment::home(&environment));
        let mut spec = ProcessSpec::new(program)
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
            spec = spec.env(name, value);
        }
        if let Some(identity) = identity {
            spec = spec.identity(identity.clone());
        }
        match input {
            Some(text) => Ok(spec.stdin(memfd_input(&text).map_err(|error| {
                LaunchError::new(format!("could not prepare its standard input: {error}"), "free some memory")
            })?)),
            None => Ok(spec),
        }
    }

    /// Returns the user to run as, unless it is the daemon's own user.
    fn user_for(&self, entry: &PolicyEntry) -> Result<Option<UnixUser>, LaunchError> {
        let Some(name) = &entry.run.user else { return Ok(None) };
        let user = find_user(name)?;
        refuse_root(&user, self.options.as_root)?;
        let own = rustix::process::geteuid();
        if own.as_raw() == user.uid {
            return Ok(None);
        }
        if !own.is_root() {
            return Err(LaunchError::new(
                format!("only root can run it as user `{name}`"),
                "run the daemon as root, or remove `user`",
            ));
        }
        Ok(Some(user))
    }
}

/// Finds the user that an entry names.
pub(crate) fn find_user(name: &str) -> Result<UnixUser, LaunchError> {
    UnixUser::find_on_system(name)
        .map_err(|error| {
            LaunchError::new(
                format!("could not read the users of this machine: {error}"),
                "repair `/etc/passwd` and `/etc/group`",
            )
        })?
        .ok_or_else(|| {
            let help =
                format!("create the login with `sudo adduser {name}`, or correct the name in the policy");
            LaunchError::new(format!("no such user `{name}` on this machine"), help)
        })
}

/// Fails for root under any name, because no limit can be enforced on root.
pub(crate) fn refuse_root(user: &UnixUser, as_root: RunAsRoot) -> Result<(), LaunchError> {
    match as_root {
        RunAsRoot::Never if user.uid == 0 => Err(LaunchError::new(
            format!("user `{}` is root, and no limit can be enforced on root", user.name),
            "name the child's login",
        )),
        RunAsRoot::Never | RunAsRoot::WithoutAccount => Ok(()),
    }
}

/// Returns the absolute path of a program, which may be searched in `PATH`.
pub(crate) fn resolve_program(
    name: &OsString,
    environment: &[(OsString, OsString)],
) -> Result<PathBuf, LaunchError> {
    let path = environment::get(environment, "PATH").unwrap_or_default();
    find_program(name, path).ok_or_else(|| {
        let shown = name.to_string_lossy();
        if shown.contains('/') {
            let message = format!("`{shown}` is not an absolute path");
            return LaunchError::new(message, "write the whole path, such as \"/home/anna/game/start\"");
        }
        let lower = shown.to_lowercase();
        let help = if let Some(launcher) = shown.strip_suffix(".desktop") {
            format!("write the command behind `Exec=` in the file `{launcher}.desktop`, with each word in quotes of its own")
        } else if *lower != *shown && find_program(OsStr::new(&lower), path).is_some() {
            format!("did you mean `{lower}`?")
        } else {
            "install it, or give its absolute path".to_owned()
        };
        LaunchError::new(format!("program `{shown}` not found in {}", path.to_string_lossy()), help)
    })
}

/// Returns the id of the user that a program runs as.
pub(crate) fn uid_of(identity: Option<&UserIdentity>) -> u32 {
    identity.map_or_else(|| rustix::process::geteuid().as_raw(), UserIdentity::user)
}

fn make_socket_folder(folder: PathBuf, identity: Option<&UserIdentity>) -> Result<PathBuf, LaunchError> {
    match socket_folder::make(&folder, identity) {
        Ok(()) => Ok(folder),
        Err(error) => Err(LaunchError::new(
            format!("could not create `{}` for the control socket: {error}", folder.display()),
            "free some space there",
        )),
    }
}

/// Puts a text of any length into a memory file. A pipe would need a thread that writes to it.
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
        watched_memory: None,
        processor_percent: limits.cpu_percent,
        processor_seconds: None,
        file_size: limits.file_size,
        open_files: limits.open_files.map(u64::from),
    }
}

fn unenforced_limits(identity: Option<&UserIdentity>, reports: &[LimitReport]) -> Vec<String> {
    let mut sentences = Vec::new();
    if uid_of(identity) == 0 {
        sentences.push(
            "It runs as root, and root can escape from every containment. Set `user` for this entry."
                .to_owned(),
        );
    }
    for LimitReport { limit, kept } in reports {
        match kept {
            LimitEnforcement::Not { reason } => {
                sentences.push(format!("Its limit on `{limit}` is not enforced: {reason}."));
            }
            LimitEnforcement::ByResourceLimit if *limit == "memory" => sentences.push(
                "Its limit on `memory` applies to each process's address space, not to all processes together."
                    .to_owned(),
            ),
            LimitEnforcement::ByResourceLimit | LimitEnforcement::ByWatching | LimitEnforcement::ByCgroup => {}
        }
    }
    sentences
}
