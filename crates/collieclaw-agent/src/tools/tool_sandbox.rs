//! The room that a program runs in, a command of the shell tool as much as a plugin or an MCP server: what it may reach,
//! how much it may use, what it is told.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use collieclaw_gate::GatePolicy;
use ward_diag::ErrorChain;
use ward_process::sandbox::{Sandbox, SandboxNetwork, SandboxStrictness, TemporaryFiles};
use ward_process::{Containment, ProcessSpec, Supervisor, TreeLifetime, TreeLimits};

use crate::config::WorkspaceUse;
use crate::security::PROGRAM_FOLDERS;

/// Processes and threads of one command: enough for a build, too few to starve a machine.
pub(crate) const MAX_PROCESSES: u64 = 512;

/// Memory of one command. Without a cgroup it bounds the address space of each process, which runtimes use freely.
const MAX_MEMORY: u64 = 4 << 30;

/// The largest file.
const MAX_FILE_SIZE: u64 = 1 << 30;

const MAX_OPEN_FILES: u64 = 1024;

/// Processor time of a process against the time of the line: it may use a few processors at once.
const CPU_TIME_FACTOR: u64 = 8;

/// What makes programs that the operator starts in the workspace later run something else, without a question: where it
/// is there, no command changes it; where it is not, see `shell/steering`.
pub(crate) const VCS_CONFIG_PATHS: &[&str] =
    &[".git/commondir", ".git/config", ".git/config.worktree", ".git/hooks", ".hg/hgrc"];

/// What programs need of a forbidden `/etc` in order to run at all: where libraries lie, the time zone, how terminals
/// and languages work. It says nothing about people or the machine's network.
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

/// What a program with a network needs besides: names of other machines, and whom to trust.
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

/// What a program may reach beyond the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxAccess {
    /// What of the workspace.
    pub workspace: WorkspaceAccess,
    /// What of the network.
    pub network: SandboxNetwork,
    /// Its program, or a folder of ours that holds it, which it reads and runs.
    pub own_program: Option<PathBuf>,
    /// Folders elsewhere that it reads and runs programs of, without what is closed in them.
    pub programs: Vec<PathBuf>,
    /// How long it may take; what it may use of the processors follows from it.
    pub timeout: Duration,
}

/// What of the workspace a program may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceAccess {
    /// Nothing.
    Closed,
    /// It may read there.
    Read,
    /// It may write there, too.
    Write,
    /// It may even run what is there.
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

/// What is found out about the machine once.
struct SandboxHost {
    supervisor: Supervisor,
    system: Sandbox,
    umask: u32,
}

/// See the module.
pub struct ToolSandbox {
    host: &'static SandboxHost,
    sandbox: Sandbox,
    limits: TreeLimits,
    environment: Vec<(&'static str, OsString)>,
}

impl ToolSandbox {
    /// Makes it ready.
    ///
    /// # Errors
    /// With why there is none.
    pub fn new(reach: &SandboxAccess, policy: &GatePolicy) -> Result<Self, String> {
        let machine = sandbox_host()?;
        Ok(Self {
            host: machine,
            sandbox: build_sandbox(&machine.system, reach, policy),
            limits: limits(reach.timeout),
            environment: environment(),
        })
    }

    /// The supervisor that starts programs in it.
    #[must_use]
    pub fn supervisor(&self) -> &'static Supervisor {
        &self.host.supervisor
    }

    /// A program in this room. The first word is its name.
    #[must_use]
    pub fn prepare_spawn(
        &self,
        program: &Path,
        words: &[String],
        variables: &[(String, String)],
        folder: &Path,
    ) -> ProcessSpec {
        let mut order = ProcessSpec::new(program)
            .directory(folder)
            .limits(self.limits.clone())
            .umask(self.host.umask)
            .lifetime(TreeLifetime::DiesWithSupervisor)
            .sandbox(self.sandbox.clone());
        if let Some((name, arguments)) = words.split_first() {
            order = order.argv0(name).args(arguments);
        }
        for (name, value) in &self.environment {
            order = order.env(name, value);
        }
        order = order.env("PWD", folder);
        for (name, value) in variables {
            order = order.env(name, value);
        }
        order
    }
}

fn sandbox_host() -> Result<&'static SandboxHost, String> {
    static MACHINE: OnceLock<Result<SandboxHost, String>> = OnceLock::new();
    let make = || {
        // Commands run as the user we are, root or not: in a namespace of their own they can't even name our processes,
        // and no signal of theirs reaches the one that ends them. It is the fastest, too.
        let supervisor = Supervisor::with_containment(Containment::PidNamespace)
            .or_else(|_| Supervisor::new())
            .map_err(|error| ErrorChain(&error).to_string())?;
        Ok(SandboxHost { supervisor, system: Sandbox::system_read_only(), umask: umask() })
    };
    MACHINE.get_or_init(make).as_ref().map_err(Clone::clone)
}

/// The mode bits that our user's files don't get. It can't be asked for without setting it, but the kernel tells it.
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

/// Everything a program is told. Nothing is taken over from us but the time zone: no key, no proxy, no socket.
fn environment() -> Vec<(&'static str, OsString)> {
    let mut environment = vec![
        ("PATH", PROGRAM_FOLDERS.join(":").into()),
        ("LANG", "C.UTF-8".into()),
        ("LC_ALL", "C.UTF-8".into()),
        ("TERM", "dumb".into()),
        // Of a forbidden /etc it could not be read, and `git` takes that for a fault.
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
    ];
    if let Some(zone) = std::env::var_os("TZ") {
        environment.push(("TZ", zone));
    }
    environment
}

/// What it may reach of the workspace, the system to be read, nothing else.
fn build_sandbox(system: &Sandbox, reach: &SandboxAccess, policy: &GatePolicy) -> Sandbox {
    let workspace = &policy.workspace;
    let own = own_files(policy);
    let closed: Vec<&Path> =
        policy.forbidden_paths.iter().chain([&policy.own_home]).chain(&own).map(PathBuf::as_path).collect();
    let with_network = if reach.network == SandboxNetwork::On { ETC_NETWORK_ALLOWLIST } else { &[] };
    let is_needed =
        |tree: &Path| ETC_ALLOWLIST.iter().chain(with_network).any(|needed| tree == Path::new(needed));
    let part =
        |tree: &PathBuf| if is_needed(tree) { vec![tree.clone()] } else { exclude_closed(tree, &closed) };
    let open = |trees: &[PathBuf]| trees.iter().flat_map(part).collect::<Vec<_>>();
    // The rules of the kernel only ever add; what is forbidden inside the workspace is covered.
    // A link is not: where it led when the policy was made is on the list, too.
    let is_there = |path: &Path| path.canonicalize().is_ok_and(|place| place == path);
    let inside = |path: &&&Path| path.starts_with(workspace) && is_there(path);
    let steering = VCS_CONFIG_PATHS.iter().map(|name| workspace.join(name));
    let mut sandbox = Sandbox {
        read: open(&system.read),
        write: system.write.clone(),
        execute: open(&system.execute),
        closed: closed.iter().filter(inside).map(|path| path.to_path_buf()).collect(),
        read_only: steering.filter(|path| is_there(path)).collect(),
        network: reach.network,
        temporary: TemporaryFiles::Private,
        strictness: SandboxStrictness::Essentials,
    };
    sandbox.execute.extend(reach.own_program.iter().cloned().chain(open(&reach.programs)));
    match reach.workspace {
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

/// What is CollieClaw's own outside of its home, as it is there now.
fn own_files(policy: &GatePolicy) -> Vec<PathBuf> {
    let elsewhere = policy.own_files.iter().filter(|file| !file.starts_with(&policy.own_home));
    let beside = elsewhere.filter_map(|file| std::fs::read_dir(file.parent()?).ok()).flatten().flatten();
    beside.map(|entry| entry.path()).filter(|path| policy.is_own(path)).collect()
}

/// A tree that is read, without what is closed: where something closed lies in it, its other parts are named one by one.
fn exclude_closed(tree: &Path, closed: &[&Path]) -> Vec<PathBuf> {
    if closed.iter().any(|path| tree.starts_with(path)) {
        return Vec::new();
    }
    if !closed.iter().any(|path| path.starts_with(tree)) {
        return vec![tree.to_owned()];
    }
    // What can't be listed can't be read either.
    let parts = std::fs::read_dir(tree).into_iter().flatten().flatten();
    let is_link = |part: &std::fs::DirEntry| part.file_type().is_ok_and(|kind| kind.is_symlink());
    parts.filter(|part| !is_link(part)).flat_map(|part| exclude_closed(&part.path(), closed)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_closed_is_left_out_of_what_is_read() {
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
    fn of_a_forbidden_etc_only_what_programs_need_stays() {
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
        };
        let trees =
            ["/etc/ld.so.cache", "/etc/passwd", "/etc/hosts", "/etc/ssl/certs", "/etc/gitconfig", "/etc"];
        let system = Sandbox { read: trees.map(PathBuf::from).to_vec(), ..Sandbox::default() };
        let check = |network, expected: &[&str]| {
            let reach = SandboxAccess {
                workspace: WorkspaceAccess::Closed,
                network,
                own_program: None,
                programs: Vec::new(),
                timeout: Duration::from_secs(1),
            };
            let read = build_sandbox(&system, &reach, &policy).read;
            assert_eq!(read, expected.iter().map(PathBuf::from).collect::<Vec<_>>());
        };
        check(SandboxNetwork::Off, &["/etc/ld.so.cache"]);
        check(SandboxNetwork::On, &["/etc/ld.so.cache", "/etc/hosts", "/etc/ssl/certs"]);
    }
}
