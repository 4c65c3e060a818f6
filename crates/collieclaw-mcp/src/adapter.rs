//! Starts `collieclaw-mcp`, the adapter program for MCP, in a sandbox without access to the user's files.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use collieclaw_agent::tools::{SandboxAccess, ToolSandbox, ToolchainAccess, WorkspaceAccess, next_tree_id};
use collieclaw_gate::GatePolicy;
use collieclaw_mcp_ipc::{AdapterHandshake, AdapterLineReader, AdapterTask, VERSION};
use ward_diag::ErrorChain;
use ward_process::sandbox::SandboxNetwork;
use ward_process::{OutputTarget, StdinSource};

use super::failure::McpFailure;
use super::server_process::McpProcessControl;

/// Messages for an adapter that ended unexpectedly.
pub(super) const ADAPTER_ENDED: &str = "collieclaw-mcp has ended";
pub(super) const ADAPTER_FAILED: &str = "collieclaw-mcp failed";

/// The time for the adapter to read the handshake. A working adapter reads it at once.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The adapter's file name, next to our own program.
const PROGRAM: &str = "collieclaw-mcp";

/// A time limit that is never reached: the adapter ends with us.
const ADAPTER_LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A running adapter.
pub(super) struct McpAdapter {
    pub(super) socket: UnixStream,
    pub(super) processes: McpProcessControl,
}

impl McpAdapter {
    /// Starts the adapter for a task. The adapter's standard error is the connection to us, so a panic
    /// message arrives as well.
    pub(super) fn start(
        task: AdapterTask,
        policy: &GatePolicy,
        stdin: StdinSource,
        stdout: OutputTarget,
    ) -> Result<Self, McpFailure> {
        let program = locate_adapter()?;
        let network = if matches!(task, AdapterTask::AskAddress { .. }) {
            SandboxNetwork::On
        } else {
            SandboxNetwork::Off
        };
        let access = SandboxAccess {
            workspace: WorkspaceAccess::Closed,
            network,
            own_program: Some(program.clone()),
            programs: Vec::new(),
            toolchain: ToolchainAccess::default(),
            timeout: ADAPTER_LIFETIME,
        };
        let sandbox = ToolSandbox::new(&access, policy)?;
        let (socket, adapter_socket) =
            UnixStream::pair().map_err(|error| format!("could not create a socket: {error}"))?;
        let command = sandbox
            .prepare_spawn(&program, &[PROGRAM.to_owned()], &[], "/".as_ref())
            .stdin(stdin)
            .stdout(stdout)
            .stderr(OutputTarget::ToFd(adapter_socket.into()));
        let supervisor = sandbox.supervisor();
        let tree =
            supervisor.spawn(next_tree_id()?, command).map_err(|error| ErrorChain(&error).to_string())?;
        let processes = McpProcessControl::new(tree, supervisor);
        let handshake = AdapterHandshake { version: VERSION.to_owned(), task };
        if collieclaw_mcp_ipc::send_line(&socket, &handshake, Instant::now() + HANDSHAKE_TIMEOUT).is_err() {
            let output = AdapterLineReader::new(socket).read_trailing_output(Vec::new());
            processes.kill_all();
            return Err(McpFailure::Other(format!("{ADAPTER_FAILED}: {output}")));
        }
        Ok(Self { socket, processes })
    }
}

/// Returns the path of `collieclaw-mcp`.
///
/// # Errors
/// Fails if the program is missing.
pub fn locate_adapter() -> Result<PathBuf, McpFailure> {
    let ours = std::env::current_exe().map_err(|error| format!("could not find our own program: {error}"))?;
    let program = ours.with_file_name(PROGRAM);
    let missing = match program.metadata() {
        Ok(file) if file.is_file() && file.permissions().mode() & 0o111 != 0 => return Ok(program),
        Ok(_) => format!("{} is missing: the file at this path is not a program", program.display()),
        Err(_) => format!("{} is missing (the adapter program for MCP)", program.display()),
    };
    Err(McpFailure::AdapterUnusable(missing))
}
