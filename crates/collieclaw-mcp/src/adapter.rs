//! Starting `collieclaw-mcp`, which speaks the protocol for us, in a sandbox that shows it nothing of anyone's.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use collieclaw_agent::tools::{SandboxAccess, ToolSandbox, WorkspaceAccess, next_tree_id};
use collieclaw_gate::GatePolicy;
use collieclaw_mcp_ipc::{AdapterHandshake, AdapterLineReader, AdapterTask, VERSION};
use ward_diag::ErrorChain;
use ward_process::sandbox::SandboxNetwork;
use ward_process::{OutputTarget, StdinSource};

use super::server_process::McpProcessControl;

/// What is told of it when nobody ended it.
pub(super) const ADAPTER_ENDED: &str = "the program that speaks the protocol has ended";
pub(super) const BROKE_OFF: &str = "the program that speaks the protocol broke off";

/// It listens at once, or never.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Its name, beside ours.
const PROGRAM: &str = "collieclaw-mcp";

/// It is ours and ends with us, however long that is.
const ADAPTER_LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// One that runs.
pub(super) struct McpAdapter {
    /// The line to it.
    pub(super) socket: UnixStream,
    pub(super) processes: McpProcessControl,
}

impl McpAdapter {
    /// Starts it for a task, with what it reads and writes in that. Its standard error is the line to us, so that also the
    /// words of a panic arrive.
    pub(super) fn start(
        task: AdapterTask,
        policy: &GatePolicy,
        input: StdinSource,
        output: OutputTarget,
    ) -> Result<Self, String> {
        let program = locate_program()?;
        let network = if matches!(task, AdapterTask::AskAddress { .. }) {
            SandboxNetwork::On
        } else {
            SandboxNetwork::Off
        };
        let reach = SandboxAccess {
            workspace: WorkspaceAccess::Closed,
            network,
            own_program: Some(program.clone()),
            programs: Vec::new(),
            timeout: ADAPTER_LIFETIME,
        };
        let room = ToolSandbox::new(&reach, policy)?;
        let (line, theirs) = UnixStream::pair().map_err(|error| format!("no line to it: {error}"))?;
        let order = room
            .prepare_spawn(&program, &[PROGRAM.to_owned()], &[], "/".as_ref())
            .stdin(input)
            .stdout(output)
            .stderr(OutputTarget::ToFd(theirs.into()));
        let supervisor = room.supervisor();
        let tree =
            supervisor.spawn(next_tree_id()?, order).map_err(|error| ErrorChain(&error).to_string())?;
        let reins = McpProcessControl::new(tree, supervisor);
        let greeting = AdapterHandshake { version: VERSION.to_owned(), task };
        if collieclaw_mcp_ipc::send_line(&line, &greeting, Instant::now() + HANDSHAKE_TIMEOUT).is_err() {
            let said = AdapterLineReader::new(line).read_trailing_output(Vec::new());
            reins.kill_all();
            return Err(format!("{BROKE_OFF}: {said}"));
        }
        Ok(Self { socket: line, processes: reins })
    }
}

/// Where it lies.
///
/// # Errors
/// When it is not there.
pub fn locate_program() -> Result<PathBuf, String> {
    let ours = std::env::current_exe()
        .map_err(|error| format!("where our own program lies is not known: {error}"))?;
    let program = ours.with_file_name(PROGRAM);
    match program.metadata() {
        Ok(file) if file.is_file() && file.permissions().mode() & 0o111 != 0 => Ok(program),
        Ok(_) => Err(format!("{} is missing: what lies there is no program", program.display())),
        Err(_) => Err(format!("{} is missing, the program that speaks the protocol", program.display())),
    }
}
