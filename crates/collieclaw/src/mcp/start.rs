//! Starting a server, in the sandbox.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use collieclaw_gate::{Facts, GatePolicy};
use rustix::pipe::{PipeFlags, pipe_with};
use ward_diag::Chain;
use ward_process::sandbox::Network;
use ward_process::{Input, Ladder, Output, Supervisor, Tree};

use crate::config::McpConnection;
use crate::home::Home;
use crate::security::SystemFacts;
use crate::tools::room::{self, Reach, Room};
use crate::tools::shell::{level, next_id};

/// For how long a server is thought to be needed: what it may use of the processors follows from it.
const A_WHILE: Duration = Duration::from_secs(60 * 60);

/// What a server is started on.
#[derive(Clone, Copy)]
pub struct Ground<'g> {
    /// The operator's rules: what is closed, and the level.
    pub policy: &'g GatePolicy,
    /// Where the emergency stop is.
    pub home: &'g Home,
    /// Our environment, of which it gets what the configuration names.
    pub variables: &'g BTreeMap<String, String>,
}

/// A server that runs, with the other ends of its streams.
pub(super) struct Started {
    pub(super) input: OwnedFd,
    pub(super) output: OwnedFd,
    pub(super) complaints: OwnedFd,
    pub(super) reins: Reins,
    pub(super) sandbox: String,
}

/// What the processes for a server are ended with, from any thread.
#[derive(Clone)]
pub(super) struct Reins {
    trees: Arc<Mutex<Vec<Tree>>>,
    supervisor: &'static Supervisor,
}

impl Reins {
    pub(super) fn new(tree: Tree, supervisor: &'static Supervisor) -> Self {
        Self { trees: Arc::new(Mutex::new(vec![tree])), supervisor }
    }

    /// Takes over what others held: all of it ends together.
    pub(super) fn take_over(&self, others: &Self) {
        let taken = std::mem::take(&mut *others.trees());
        self.trees().extend(taken);
    }

    /// Ends all of them, now.
    pub(super) fn end(&self) {
        // Whoever else ends them waits until they are ended.
        for mut tree in self.trees().drain(..) {
            // What does not end is ended with us: it dies with its supervisor.
            let _ = self.supervisor.stop(&mut tree, Ladder::force());
        }
    }

    /// Whether one of them has no process left, and the others nothing more to do.
    pub(super) fn is_over(&self) -> bool {
        let mut trees = self.trees();
        trees.is_empty() || trees.iter_mut().any(|tree| matches!(tree.poll_ended(), Ok(Some(_))))
    }

    fn trees(&self) -> MutexGuard<'_, Vec<Tree>> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn start(connection: &McpConnection, ground: Ground<'_>) -> Result<Started, String> {
    let McpConnection::Program { command, args, env, network, workspace, programs } = connection else {
        return Err("it is no program".to_owned());
    };
    let program = if command.contains('/') {
        Some(PathBuf::from(command)).filter(|program| program.exists())
    } else {
        SystemFacts.program(command)
    };
    let program = program.ok_or_else(|| format!("there is no program `{command}` on this machine"))?;
    let used: room::Ground = workspace.at(ground.policy.autonomy).into();
    let reach = Reach {
        workspace: used,
        network: if *network { Network::On } else { Network::Off },
        own: None,
        programs: programs.clone(),
        time: A_WHILE,
    };
    let room = Room::new(&reach, ground.policy)?;
    let words: Vec<String> = std::iter::once(command).chain(args).cloned().collect();
    let given = env.iter().filter_map(|name| Some((name.clone(), ground.variables.get(name)?.clone())));
    // Interpreters take code from the folder that they start in, and in the workspace the agent writes.
    let variables: Vec<(String, String)> =
        std::iter::once(("PYTHONSAFEPATH".to_owned(), "1".to_owned())).chain(given).collect();
    let folder = Path::new("/");
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|errno| format!("no pipe for it: {errno}"));
    let ((theirs, input), (output, out), (complaints, err)) = (pipe()?, pipe()?, pipe()?);
    let order = room
        .order(&program, &words, &variables, folder)
        .stdin(Input::From(theirs))
        .stdout(Output::To(out))
        .stderr(Output::To(err));
    let supervisor = room.supervisor();
    let tree = supervisor.spawn(next_id()?, order).map_err(|error| Chain(&error).to_string())?;
    let sandbox = level(&tree);
    Ok(Started { input, output, complaints, reins: Reins::new(tree, supervisor), sandbox })
}
