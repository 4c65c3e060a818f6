//! The sandbox for programs: commands of the shell tool, plugins and MCP servers. It defines their access,
//! limits and environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use collieclaw_gate::GatePolicy;
use ward_diag::ErrorChain;
use ward_process::sandbox::{Sandbox, SandboxNetwork, SandboxStrictness, TemporaryFiles};
use ward_process::{Containment, ProcessSpec, Supervisor, TreeLifetime, TreeLimits};

use super::toolchain_access::ToolchainAccess;
use crate::config::WorkspaceUse;
use crate::security::PROGRAM_FOLDERS;

/// The maximum number of processes and threads of a command: enough for a build, but too few to exhaust the
/// machine.
pub(crate) const MAX_PROCESSES: u64 = 512;

/// The memory limit of a command. Without a cgroup, it limits the address space of each process, which many
/// runtimes use generously.
const MAX_MEMORY: u64 = 4 << 30;

const MAX_FILE_SIZE: u64 = 1 << 30;

const MAX_OPEN_FILES: u64 = 1024;

/// The limit of processor time as a multiple of the time limit, because a command may use several processors.
const CPU_TIME_FACTOR: u64 = 8;

/// Files that can make programs which the operator runs in the workspace later execute commands. Existing
/// ones are read-only in the sandbox; new ones are handled by `shell/vcs_guard`.
pub(crate) const VCS_CONFIG_PATHS: &[&str] =
    &[".git/commondir", ".git/config", ".git/config.worktree", ".git/hooks", ".hg/hgrc"];

/// The parts of a forbidden `/etc` that programs need in order to run: libraries, the time zone, terminals
/// and locales. They contain nothing about people or the local network.
const ETC_ALLOWLIST: &[&str] = &[
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/perl",
    "/etc/python3",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
];

/// The parts of a forbidden `/etc` that programs with network access need as well: name resolution and
/// certificates.
const ETC_NETWORK_ALLOWLIST: &[&str] = &[
    "/etc/ca-certificates",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/certs",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
];

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
    environment: Vec<(&'static str, OsString)>,
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
            sandbox: build_sandbox(&host.system, access, policy),
            limits: limits(access.timeout),
            environment: environment(),
        })
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
        Ok(SandboxBase { supervisor, system: Sandbox::system_read_only(), umask: umask() })
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
        memory: Some(MAX_MEMORY),
        processor_percent: None,
        processor_seconds: Some(time.as_secs().saturating_add(1).saturating_mul(CPU_TIME_FACTOR)),
        file_size: Some(MAX_FILE_SIZE),
        open_files: Some(MAX_OPEN_FILES),
    }
}

/// Returns the whole environment of a program. Only the time zone is inherited, so no keys, proxies or
/// sockets leak.
fn environment() -> Vec<(&'static str, OsString)> {
    let mut environment = vec![
        ("PATH", PROGRAM_FOLDERS.join(":").into()),
        ("LANG", "C.UTF-8".into()),
        ("LC_ALL", "C.UTF-8".into()),
        ("TERM", "dumb".into()),
        // In a forbidden `/etc` the system settings can't be read, which `git` treats as an error.
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
    ];
    if let Some(zone) = std::env::var_os("TZ") {
        environment.push(("TZ", zone));
    }
    environment
}

/// Builds the sandbox: the read-only system, the workspace as far as `access` allows, and nothing else.
fn build_sandbox(system: &Sandbox, access: &SandboxAccess, policy: &GatePolicy) -> Sandbox {
    let workspace = &policy.workspace;
    let own = own_files(policy);
    let closed: Vec<&Path> =
        policy.forbidden_paths.iter().chain([&policy.own_home]).chain(&own).map(PathBuf::as_path).collect();
    let with_network = if access.network == SandboxNetwork::On { ETC_NETWORK_ALLOWLIST } else { &[] };
    let is_needed =
        |tree: &Path| ETC_ALLOWLIST.iter().chain(with_network).any(|needed| tree == Path::new(needed));
    let part =
        |tree: &PathBuf| if is_needed(tree) { vec![tree.clone()] } else { exclude_closed(tree, &closed) };
    let open = |trees: &[PathBuf]| trees.iter().flat_map(part).collect::<Vec<_>>();
    // Landlock rules can only add access, so forbidden paths inside the workspace are covered by mounts.
    // Symlinks are not covered, because the policy lists their targets as well.
    let is_there = |path: &Path| path.canonicalize().is_ok_and(|place| place == path);
    let inside = |path: &&&Path| path.starts_with(workspace) && is_there(path);
    let vcs_config = VCS_CONFIG_PATHS.iter().map(|name| workspace.join(name));
    let mut sandbox = Sandbox {
        read: open(&system.read),
        write: system.write.clone(),
        execute: open(&system.execute),
        closed: closed.iter().filter(inside).map(|path| path.to_path_buf()).collect(),
        read_only: vcs_config.filter(|path| is_there(path)).collect(),
        network: access.network,
        temporary: TemporaryFiles::Private,
        strictness: SandboxStrictness::Essentials,
    };
    sandbox.execute.extend(access.own_program.iter().cloned().chain(open(&access.programs)));
    match access.workspace {
        WorkspaceAccess::Closed => {
            sandbox.closed.clear();
            sandbox.read_only.clear();
        }
        WorkspaceAccess::Read => sandbox.read.push(workspace.clone()),
        WorkspaceAccess::Write => sandbox.write.push(workspace.clone()),
        WorkspaceAccess::Execute => {
            sandbox.write.push(workspace.clone());
            sandbox.execute.push(workspace.clone());
        }
    }
    sandbox
}

/// Returns CollieClaw's own files outside its home that exist now.
fn own_files(policy: &GatePolicy) -> Vec<PathBuf> {
    let elsewhere = policy.own_files.iter().filter(|file| !file.starts_with(&policy.own_home));
    let siblings = elsewhere.filter_map(|file| std::fs::read_dir(file.parent()?).ok()).flatten().flatten();
    siblings.map(|entry| entry.path()).filter(|path| policy.is_own(path)).collect()
}

/// Returns a readable tree without the closed paths. If it contains a closed path, its other parts are listed
/// one by one.
fn exclude_closed(tree: &Path, closed: &[&Path]) -> Vec<PathBuf> {
    if closed.iter().any(|path| tree.starts_with(path)) {
        return Vec::new();
    }
    if !closed.iter().any(|path| path.starts_with(tree)) {
        return vec![tree.to_owned()];
    }
    // A folder that can't be listed can't be read either.
    let parts = std::fs::read_dir(tree).into_iter().flatten().flatten();
    let is_link = |part: &std::fs::DirEntry| part.file_type().is_ok_and(|kind| kind.is_symlink());
    parts.filter(|part| !is_link(part)).flat_map(|part| exclude_closed(&part.path(), closed)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_paths_are_excluded_from_readable_trees() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for path in ["a/b/secret", "a/b/open", "a/c", "d"] {
            std::fs::create_dir_all(at(path)).unwrap();
        }
        std::os::unix::fs::symlink("a/b", at("link")).unwrap();
        let secret = at("a/b/secret");
        let mut parts = exclude_closed(folder.path(), &[&secret]);
        parts.sort();
        assert_eq!(parts, [at("a/b/open"), at("a/c"), at("d")]);
        assert_eq!(exclude_closed(&at("d"), &[&secret]), [at("d")]);
        assert_eq!(exclude_closed(&at("a/b/secret/deep"), &[&secret]), Vec::<PathBuf>::new());
    }

    #[test]
    fn only_the_needed_parts_of_a_forbidden_etc_can_be_read() {
        let policy = GatePolicy {
            autonomy: collieclaw_gate::AutonomyLevel::Supervised,
            workspace: "/nowhere/workspace".into(),
            bounds: collieclaw_gate::PathBounds::Workspace,
            user_home: "/nowhere".into(),
            own_home: "/nowhere/.collieclaw".into(),
            own_files: Vec::new(),
            forbidden_paths: vec!["/etc".into()],
            forbidden_commands: Default::default(),
            allowed_commands: Default::default(),
            allowed_domains: Vec::new(),
            command_network: Default::default(),
            pinned_programs: Default::default(),
            allowed_scripts: Default::default(),
        };
        let trees =
            ["/etc/ld.so.cache", "/etc/passwd", "/etc/hosts", "/etc/ssl/certs", "/etc/gitconfig", "/etc"];
        let system = Sandbox { read: trees.map(PathBuf::from).to_vec(), ..Sandbox::default() };
        let check = |network, expected: &[&str]| {
            let access = SandboxAccess {
                workspace: WorkspaceAccess::Closed,
                network,
                own_program: None,
                programs: Vec::new(),
                toolchain: ToolchainAccess::default(),
                timeout: Duration::from_secs(1),
            };
            let read = build_sandbox(&system, &access, &policy).read;
            assert_eq!(read, expected.iter().map(PathBuf::from).collect::<Vec<_>>());
        };
        check(SandboxNetwork::Off, &["/etc/ld.so.cache"]);
        check(SandboxNetwork::On, &["/etc/ld.so.cache", "/etc/hosts", "/etc/ssl/certs"]);
    }
}
