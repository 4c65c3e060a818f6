//! Starting a server, in the sandbox.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use collieclaw_agent::config::McpConnection;
use collieclaw_agent::home::AgentHome;
use collieclaw_agent::security::SystemFacts;
use collieclaw_agent::tools::{SandboxAccess, ToolSandbox, WorkspaceAccess, next_tree_id, sandbox_level};
use collieclaw_gate::{GatePolicy, MachineFacts};
use rustix::pipe::{PipeFlags, pipe_with};
use ward_diag::ErrorChain;
use ward_process::sandbox::SandboxNetwork;
use ward_process::{OutputTarget, ProcessTree, StdinSource, StopLadder, Supervisor};

/// For how long a server is thought to be needed: what it may use of the processors follows from it.
const EXPECTED_LIFETIME: Duration = Duration::from_secs(60 * 60);

/// What a server is started on.
#[derive(Clone, Copy)]
pub struct McpStartContext<'g> {
    /// The operator's rules: what is closed, and the level.
    pub policy: &'g GatePolicy,
    /// Where the emergency stop is.
    pub home: &'g AgentHome,
    /// Our environment, of which it gets what the configuration names.
    pub variables: &'g BTreeMap<String, String>,
}

/// A server that runs, with the other ends of its streams.
pub(super) struct StartedServer {
    pub(super) input: OwnedFd,
    pub(super) output: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) processes: McpProcessControl,
    pub(super) sandbox: String,
}

/// What the processes for a server are ended with, from any thread.
#[derive(Clone)]
pub(super) struct McpProcessControl {
    trees: Arc<Mutex<Vec<ProcessTree>>>,
    supervisor: &'static Supervisor,
}

impl McpProcessControl {
    pub(super) fn new(tree: ProcessTree, supervisor: &'static Supervisor) -> Self {
        Self { trees: Arc::new(Mutex::new(vec![tree])), supervisor }
    }

    /// Takes over what others held: all of it ends together.
    pub(super) fn take_over(&self, others: &Self) {
        let taken = std::mem::take(&mut *others.trees());
        self.trees().extend(taken);
    }

    /// Ends all of them, now.
    pub(super) fn kill_all(&self) {
        // Whoever else ends them waits until they are ended.
        for mut tree in self.trees().drain(..) {
            // What does not end is ended with us: it dies with its supervisor.
            let _ = self.supervisor.stop(&mut tree, StopLadder::force());
        }
    }

    /// Whether one of them has no process left, and the others nothing more to do.
    pub(super) fn has_ended(&self) -> bool {
        let mut trees = self.trees();
        trees.is_empty() || trees.iter_mut().any(|tree| matches!(tree.poll_ended(), Ok(Some(_))))
    }

    fn trees(&self) -> MutexGuard<'_, Vec<ProcessTree>> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn start_server(
    connection: &McpConnection,
    ground: McpStartContext<'_>,
) -> Result<StartedServer, String> {
    let McpConnection::Program { command, args, env, network, workspace, programs } = connection else {
        return Err("it is no program".to_owned());
    };
    let program = if command.contains('/') {
        Some(PathBuf::from(command)).filter(|program| program.exists())
    } else {
        SystemFacts.find_program(command)
    };
    let program = program.ok_or_else(|| format!("there is no program `{command}` on this machine"))?;
    let used: WorkspaceAccess = workspace.limited_by(ground.policy.autonomy).into();
    let reach = SandboxAccess {
        workspace: used,
        network: if *network { SandboxNetwork::On } else { SandboxNetwork::Off },
        own_program: None,
        programs: programs.clone(),
        timeout: EXPECTED_LIFETIME,
    };
    let room = ToolSandbox::new(&reach, ground.policy)?;
    let words: Vec<String> = std::iter::once(command).chain(args).cloned().collect();
    let given = env.iter().filter_map(|name| Some((name.clone(), ground.variables.get(name)?.clone())));
    // Interpreters take code from the folder that they start in, and in the workspace the agent writes.
    let variables: Vec<(String, String)> =
        std::iter::once(("PYTHONSAFEPATH".to_owned(), "1".to_owned())).chain(given).collect();
    let folder = Path::new("/");
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|errno| format!("no pipe for it: {errno}"));
    let ((theirs, input), (output, out), (complaints, err)) = (pipe()?, pipe()?, pipe()?);
    let order = room
        .prepare_spawn(&program, &words, &variables, folder)
        .stdin(StdinSource::FromFd(theirs))
        .stdout(OutputTarget::ToFd(out))
        .stderr(OutputTarget::ToFd(err));
    let supervisor = room.supervisor();
    let tree = supervisor.spawn(next_tree_id()?, order).map_err(|error| ErrorChain(&error).to_string())?;
    let sandbox = sandbox_level(&tree);
    Ok(StartedServer {
        input,
        output,
        stderr: complaints,
        processes: McpProcessControl::new(tree, supervisor),
        sandbox,
    })
}
