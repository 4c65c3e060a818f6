//! The sandbox for programs: commands of the shell tool, plugins and MCP servers. It defines their access,
//! limits and environment.

mod environment;
mod system_files;
mod toolchain_trees;
mod trees;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use collieclaw_gate::GatePolicy;
use ward_diag::ErrorChain;
use ward_process::sandbox::{Sandbox, SandboxNetwork};
use ward_process::{Containment, ProcessSpec, Supervisor, TreeLifetime, TreeLimits};

use super::toolchain_access::ToolchainAccess;
use crate::config::WorkspaceUse;
pub(crate) use trees::VCS_CONFIG_PATHS;

/// The maximum number of processes and threads of a command: enough for a build, but too few to exhaust the
/// machine.
pub(crate) const MAX_PROCESSES: u64 = 512;

/// The memory limit of a command with all its processes. Nothing limits the address space, which many language
/// runtimes use generously; `memory_watch` compares the used memory with this limit.
pub const MAX_MEMORY: u64 = 4 << 30;

/// The port of the proxy on the loopback interface of a sandbox, the usual one of HTTP proxies.
pub(crate) const PROXY_PORT: u16 = 3128;

const MAX_FILE_SIZE: u64 = 1 << 30;

/// Package managers and test runners open thousands of files at once.
const MAX_OPEN_FILES: u64 = 4096;

/// The limit of processor time as a multiple of the time limit, because a command may use several processors.
const CPU_TIME_FACTOR: u64 = 8;

/// The access of a program beyond the read-only system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxAccess {
    pub workspace: WorkspaceAccess,
    pub network: SandboxNetwork,
    /// The program, or a folder of CollieClaw that contains it, which may be read and executed.
    pub own_program: Option<PathBuf>,
    /// Other folders from which programs may be read and executed, except for closed paths in them.
    pub programs: Vec<PathBuf>,
    /// Toolchains in the user's home.
    pub toolchain: ToolchainAccess,
    /// The time limit, from which the limit of processor time is derived.
    pub timeout: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceAccess {
    Closed,
    Read,
    /// Read and write access.
    Write,
    /// Read and write access, and permission to run programs in the workspace.
    Execute,
}

impl From<WorkspaceUse> for WorkspaceAccess {
    fn from(used: WorkspaceUse) -> Self {
        match used {
            WorkspaceUse::None => Self::Closed,
            WorkspaceUse::Read => Self::Read,
            WorkspaceUse::Write => Self::Write,
        }
    }
}

/// The parts of a sandbox that are the same for all programs. They are created once.
struct SandboxBase {
    supervisor: Supervisor,
    system: Sandbox,
    umask: u32,
}

/// A sandbox that programs can be started in.
pub struct ToolSandbox {
    host: &'static SandboxBase,
    sandbox: Sandbox,
    limits: TreeLimits,
    environment: Vec<(OsString, OsString)>,
}

impl ToolSandbox {
    /// Creates a sandbox.
    ///
    /// # Errors
    /// Fails with the reason why this machine offers no sandbox.
    pub fn new(access: &SandboxAccess, policy: &GatePolicy) -> Result<Self, String> {
        let host = sandbox_base()?;
        Ok(Self {
            host,
            sandbox: trees::build_sandbox(&host.system, access, policy),
            limits: limits(access.timeout),
            environment: environment::build_environment(access, policy),
        })
    }

    /// Returns true if the sandbox has a socket for a proxy.
    pub(crate) fn has_proxy_socket(&self) -> bool {
        matches!(self.sandbox.network, SandboxNetwork::LoopbackWithListener { .. })
    }

    /// Returns the supervisor that starts programs in the sandbox.
    #[must_use]
    pub fn supervisor(&self) -> &'static Supervisor {
        &self.host.supervisor
    }

    /// Describes a process in this sandbox. The first word is `argv[0]`.
    #[must_use]
    pub fn prepare_spawn(
        &self,
        program: &Path,
        words: &[String],
        variables: &[(String, String)],
        folder: &Path,
    ) -> ProcessSpec {
        let mut spec = ProcessSpec::new(program)
            .directory(folder)
            .limits(self.limits.clone())
            .umask(self.host.umask)
            .lifetime(TreeLifetime::DiesWithSupervisor)
            .sandbox(self.sandbox.clone());
        if let Some((name, arguments)) = words.split_first() {
            spec = spec.argv0(name).args(arguments);
        }
        for (name, value) in &self.environment {
            spec = spec.env(name, value);
        }
        spec = spec.env("PWD", folder);
        for (name, value) in variables {
            spec = spec.env(name, value);
        }
        spec
    }
}

fn sandbox_base() -> Result<&'static SandboxBase, String> {
    static BASE: OnceLock<Result<SandboxBase, String>> = OnceLock::new();
    let make = || {
        // Commands run as the same user, which may be root. In a PID namespace they can't address our
        // processes, so they can't signal the one that kills them. It is also the fastest containment.
        let supervisor = Supervisor::with_containment(Containment::PidNamespace)
            .or_else(|_| Supervisor::new())
            .map_err(|error| ErrorChain(&error).to_string())?;
        let mut system = Sandbox::system_read_only();
        system.read.extend(system_files::java_settings());
        Ok(SandboxBase { supervisor, system, umask: umask() })
    };
    BASE.get_or_init(make).as_ref().map_err(Clone::clone)
}

/// Returns our umask. The system call would change it, so it is read from `/proc`.
fn umask() -> u32 {
    const DEFAULT_UMASK: u32 = 0o022;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|text| u32::from_str_radix(text.trim(), 8).ok()).unwrap_or(DEFAULT_UMASK)
}

fn limits(time: Duration) -> TreeLimits {
    TreeLimits {
        processes: Some(MAX_PROCESSES),
        memory: None,
        watched_memory: Some(MAX_MEMORY),
        processor_percent: None,
        processor_seconds: Some(time.as_secs().saturating_add(1).saturating_mul(CPU_TIME_FACTOR)),
        file_size: Some(MAX_FILE_SIZE),
        open_files: Some(MAX_OPEN_FILES),
    }
}
