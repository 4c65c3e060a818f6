//! Starts MCP servers in the sandbox and kills their processes.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use collieclaw_agent::config::McpConnection;
use collieclaw_agent::home::AgentHome;
use collieclaw_agent::security::SystemFacts;
use collieclaw_agent::tools::{
    MAX_MEMORY, SandboxAccess, ToolSandbox, ToolchainAccess, WorkspaceAccess, exceeds_memory,
    needs_memory_watch, next_tree_id, sandbox_level,
};
use collieclaw_gate::{GatePolicy, MachineFacts};
use rustix::pipe::{PipeFlags, pipe_with};
use ward_diag::ErrorChain;
use ward_process::sandbox::SandboxNetwork;
use ward_process::{OutputTarget, ProcessTree, SpawnError, StdinSource, StopLadder, Supervisor};

use super::failure::McpFailure;

/// The expected lifetime of a server, which determines its CPU limit.
const EXPECTED_LIFETIME: Duration = Duration::from_secs(60 * 60);

/// The interval at which the memory of a server is measured if the kernel doesn't limit it.
const MEMORY_INTERVAL: Duration = Duration::from_millis(500);

/// Variables that programs take the place of their own files from. See the XDG base directory specification.
const STATE_VARIABLES: [&str; 2] = ["XDG_DATA_HOME", "XDG_STATE_HOME"];

/// The environment that a server is started in.
#[derive(Clone, Copy)]
pub struct McpStartContext<'g> {
    /// The name of the server in the configuration.
    pub server: &'g str,
    /// The policy with the forbidden paths and the autonomy level.
    pub policy: &'g GatePolicy,
    /// The home folder with the emergency stop.
    pub home: &'g AgentHome,
    /// Our environment variables; a server gets the variables that its configuration names.
    pub variables: &'g BTreeMap<String, String>,
}

/// A started server with our ends of its streams.
pub(super) struct StartedServer {
    pub(super) input: OwnedFd,
    pub(super) output: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) processes: McpProcessControl,
    pub(super) sandbox: String,
}

/// A handle that kills a server's processes from any thread.
#[derive(Clone)]
pub(super) struct McpProcessControl {
    trees: Arc<Mutex<Vec<ProcessTree>>>,
    supervisor: &'static Supervisor,
}

impl McpProcessControl {
    pub(super) fn new(tree: ProcessTree, supervisor: &'static Supervisor) -> Self {
        Self { trees: Arc::new(Mutex::new(vec![tree])), supervisor }
    }

    /// Takes over the processes of another handle, so that all of them are killed together.
    pub(super) fn take_over(&self, others: &Self) {
        let trees = std::mem::take(&mut *others.trees());
        self.trees().extend(trees);
    }

    pub(super) fn kill_all(&self) {
        // The lock is held meanwhile, so a second caller returns only when the processes are dead.
        for mut tree in self.trees().drain(..) {
            // A process that survives is killed together with its supervisor when we exit.
            let _ = self.supervisor.stop(&mut tree, StopLadder::force());
        }
    }

    /// Returns true if any tree has no process left; the other trees are useless without it.
    pub(super) fn has_ended(&self) -> bool {
        let mut trees = self.trees();
        trees.is_empty() || trees.iter_mut().any(|tree| matches!(tree.poll_ended(), Ok(Some(_))))
    }

    /// Starts a thread that kills the processes if they use too much memory, where the kernel doesn't limit it.
    pub(super) fn watch_memory(&self) -> io::Result<()> {
        if !self.trees().iter().any(needs_memory_watch) {
            return Ok(());
        }
        let (trees, supervisor) = (Arc::downgrade(&self.trees), self.supervisor);
        let watch = move || {
            while let Some(trees) = trees.upgrade() {
                let control = Self { trees, supervisor };
                let exceeds = {
                    let trees = control.trees();
                    if trees.is_empty() {
                        return;
                    }
                    exceeds_memory(&trees.iter().collect::<Vec<_>>(), MAX_MEMORY)
                };
                if exceeds {
                    control.kill_all();
                }
                drop(control);
                std::thread::sleep(MEMORY_INTERVAL);
            }
        };
        std::thread::Builder::new().name("mcp-memory".to_owned()).spawn(watch).map(drop)
    }

    fn trees(&self) -> MutexGuard<'_, Vec<ProcessTree>> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn spawn_failure(error: &SpawnError) -> McpFailure {
    let why = ErrorChain(error).to_string();
    match error {
        SpawnError::Start { source, .. }
            if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) =>
        {
            McpFailure::FileNotReadable(why)
        }
        _ => McpFailure::Other(why),
    }
}

/// Returns access to the folder in which the server may keep files, and creates the folder.
fn state_access(context: McpStartContext<'_>) -> Result<ToolchainAccess, McpFailure> {
    let folder = context.home.mcp_state(context.server);
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(|error| {
        McpFailure::Other(format!("could not create the folder {}: {error}", folder.display()))
    })?;
    let environment = STATE_VARIABLES.map(|name| (name.to_owned(), folder.clone().into())).to_vec();
    Ok(ToolchainAccess { write: vec![folder], environment, ..ToolchainAccess::default() })
}

pub(super) fn start_server(
    connection: &McpConnection,
    context: McpStartContext<'_>,
) -> Result<StartedServer, McpFailure> {
    let McpConnection::Program { command, args, env, network, workspace, programs } = connection else {
        return Err(McpFailure::Other(
            "the server is configured with a `url`, not with a `command`".to_owned(),
        ));
    };
    let program = if command.contains('/') {
        Some(PathBuf::from(command)).filter(|program| program.exists())
    } else {
        SystemFacts.find_program(command)
    };
    let program = program.ok_or_else(|| McpFailure::NoSuchProgram(command.clone()))?;
    let workspace: WorkspaceAccess = workspace.limited_by(context.policy.autonomy).into();
    let access = SandboxAccess {
        workspace,
        network: if *network { SandboxNetwork::On } else { SandboxNetwork::Loopback },
        own_program: None,
        programs: programs.clone(),
        toolchain: state_access(context)?,
        timeout: EXPECTED_LIFETIME,
    };
    let sandbox = ToolSandbox::new(&access, context.policy)?;
    let argv: Vec<String> = std::iter::once(command).chain(args).cloned().collect();
    let given = env.iter().filter_map(|name| Some((name.clone(), context.variables.get(name)?.clone())));
    // Interpreters load code from their start folder, and the agent can write to the workspace.
    let variables: Vec<(String, String)> =
        std::iter::once(("PYTHONSAFEPATH".to_owned(), "1".to_owned())).chain(given).collect();
    let folder = Path::new("/");
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|errno| format!("could not create a pipe: {errno}"));
    let ((stdin, input), (output, stdout), (stderr, stderr_end)) = (pipe()?, pipe()?, pipe()?);
    let spawn = sandbox
        .prepare_spawn(&program, &argv, &variables, folder)
        .stdin(StdinSource::FromFd(stdin))
        .stdout(OutputTarget::ToFd(stdout))
        .stderr(OutputTarget::ToFd(stderr_end));
    let supervisor = sandbox.supervisor();
    let tree = supervisor.spawn(next_tree_id()?, spawn).map_err(|error| spawn_failure(&error))?;
    let sandbox = sandbox_level(&tree);
    Ok(StartedServer { input, output, stderr, processes: McpProcessControl::new(tree, supervisor), sandbox })
}
