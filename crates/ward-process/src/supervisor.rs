//! Spawning into a containment, and taking back what an earlier process spawned.

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::Mode;
use rustix::pipe::PipeFlags;

use crate::cgroup::{Cgroup, CgroupRoot};
use crate::containment::{self, Containment};
use crate::ladder::Ladder;
use crate::limits::{Means, Plan};
use crate::order::{Lifetime, Order, set_variable};
use crate::output::{self, Streams};
use crate::record::{MARKER, TreeId, TreeRecord, current_boot};
use crate::sandbox::{Prepared, SandboxError};
use crate::sys::child::{self, CStringArray, Program, Step};
use crate::sys::fork::{Birth, Forked};
use crate::sys::keeper::{self, Keeper, Role};
use crate::sys::procfs::ProcRoot;
use crate::sys::sweep::Sweep;
use crate::sys::wait;
use crate::tree::{KeeperLink, Parts, Reins, Root, Tree};

/// Spawns process trees into one kind of containment.
#[derive(Debug)]
pub struct Supervisor {
    containment: Containment,
    groups: Option<CgroupRoot>,
    boot: String,
}

/// Why there is no supervisor.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// This host does not give that containment.
    #[error("no {containment} here: {reason}")]
    Missing {
        /// What was asked for.
        containment: Containment,
        /// Why not, and what would help.
        reason: String,
    },
    /// The name of this boot can't be read, so that no tree could be taken back later.
    #[error("could not read the boot id")]
    BootId(#[source] io::Error),
}

/// Why a program did not start. Nothing of it is left behind.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// A text of the order can't be given to the kernel.
    #[error("{what} contains a NUL character")]
    Nul {
        /// Which text.
        what: &'static str,
    },
    /// The program is not named by an absolute path.
    #[error("`{}` is not an absolute path", program.display())]
    RelativeProgram {
        /// As ordered.
        program: PathBuf,
    },
    /// A process group can be left by its members, so nobody could promise to end them.
    #[error("a {0} can't promise to end with its supervisor; choose a stronger containment")]
    NoPromise(Containment),
    /// The sandbox could not be prepared.
    #[error("could not prepare the sandbox")]
    Sandbox(#[from] SandboxError),
    /// The tree's cgroup could not be made or set up.
    #[error("could not set up cgroup `{name}`")]
    Cgroup {
        /// Its name.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A stream could not be opened.
    #[error("could not open {stream}")]
    Stream {
        /// Which.
        stream: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// No process could be made.
    #[error("could not make a process")]
    Fork(#[source] io::Error),
    /// The new process did not get as far as the program.
    #[error("could not {step} for `{}`", program.display())]
    Start {
        /// What it was doing.
        step: &'static str,
        /// As ordered.
        program: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Why a tree can't be taken back.
#[derive(Debug, thiserror::Error)]
pub enum ReattachError {
    /// No member is left, or it ran before this boot.
    #[error("tree {0} is gone")]
    Gone(TreeId),
    /// It is there but can't be held.
    #[error("could not take hold of tree {id}")]
    Handle {
        /// Which.
        id: TreeId,
        /// What the kernel said.
        source: io::Error,
    },
    /// This supervisor holds trees together in another way.
    #[error("the tree is held by a {recorded}, this supervisor uses a {ours}")]
    OtherContainment {
        /// The tree's.
        recorded: Containment,
        /// Ours.
        ours: Containment,
    },
}

impl Supervisor {
    /// With the strongest containment there is.
    ///
    /// # Errors
    /// When the boot id can't be read.
    pub fn new() -> Result<Self, SetupError> {
        Self::with(containment::probe().best())
    }

    /// With this containment and no other.
    ///
    /// # Errors
    /// When the host does not give it.
    pub fn with(containment: Containment) -> Result<Self, SetupError> {
        let missing = |reason| SetupError::Missing { containment, reason };
        let groups = match containment {
            Containment::Cgroup => Some(CgroupRoot::find().map_err(missing)?),
            _ => {
                containment::try_out(containment).map_err(missing)?;
                None
            }
        };
        Ok(Self { containment, groups, boot: current_boot().map_err(SetupError::BootId)? })
    }

    /// What holds the trees together.
    #[must_use]
    pub fn containment(&self) -> Containment {
        self.containment
    }

    /// Starts a program. When this returns it has been executed, inside its containment.
    ///
    /// # Errors
    /// When anything on the way fails; then nothing is left behind.
    pub fn spawn(&self, id: TreeId, mut order: Order) -> Result<Tree, SpawnError> {
        let sandbox = self.prepare_sandbox(&order)?;
        let group = self.make_group(&id)?;
        let result = self.spawn_into(id, &mut order, sandbox, group.as_ref());
        match (result, group) {
            (Ok((parts, reins)), group) => {
                let reins = reins.unwrap_or_else(|| group.map_or(Reins::Group, Reins::Cgroup));
                Tree::assemble(parts, reins).map_err(SpawnError::Fork)
            }
            (Err(error), group) => {
                if let Some(group) = group {
                    // Whatever was born in it is gone or about to be.
                    let _ = group.kill();
                    crate::tree::remove_when_empty(&group);
                }
                Err(error)
            }
        }
    }

    fn prepare_sandbox(&self, order: &Order) -> Result<Option<Prepared>, SpawnError> {
        let keeper = self.needs_keeper(order);
        if order.lifetime == Lifetime::DiesWithSupervisor && !keeper {
            return Err(SpawnError::NoPromise(self.containment));
        }
        if !order.program.is_absolute() {
            return Err(SpawnError::RelativeProgram { program: order.program.clone() });
        }
        let Some(sandbox) = &order.sandbox else { return Ok(None) };
        let prepared = sandbox.prepare()?;
        if let Some(identity) = &order.identity {
            prepared.give_to(identity.user, identity.group)?;
        }
        Ok(Some(prepared))
    }

    fn needs_keeper(&self, order: &Order) -> bool {
        match self.containment {
            Containment::PidNamespace | Containment::Subreaper => true,
            Containment::Cgroup => order.lifetime == Lifetime::DiesWithSupervisor,
            Containment::ProcessGroup => false,
        }
    }

    fn make_group(&self, id: &TreeId) -> Result<Option<Cgroup>, SpawnError> {
        let Some(groups) = &self.groups else { return Ok(None) };
        let name = id.group_name();
        groups.create(&name).map(Some).map_err(|source| SpawnError::Cgroup { name, source })
    }

    fn spawn_into(
        &self,
        id: TreeId,
        order: &mut Order,
        sandbox: Option<Prepared>,
        group: Option<&Cgroup>,
    ) -> Result<(Parts, Option<Reins>), SpawnError> {
        let namespaces = self.namespaces(sandbox.as_ref());
        let limits = self.plan_limits(order, namespaces, group)?;
        let streams =
            output::open_streams(order).map_err(|(stream, source)| SpawnError::Stream { stream, source })?;
        let (failure, failure_writer) = cloexec_pipe()?;
        let Streams { stdio, recorders, stdout, stderr } = streams;
        let program =
            build_program(&id, order, sandbox.as_ref(), &limits, stdio, failure_writer, namespaces)?;
        let birth = Birth { namespaces, cgroup: group.map(Cgroup::directory) };
        let confinement = sandbox.as_ref().map(Prepared::confinement);
        let (forked, keeper, life) = if self.needs_keeper(order) {
            let (keeper, link, life) = self.build_keeper(order.lifetime, program, group)?;
            let forked = keeper::spawn(birth, keeper, confinement);
            (forked.map_err(fork_error)?, Some(link), life)
        } else {
            let forked = child::spawn(birth, &program, confinement);
            // With it goes our end of the failure pipe.
            drop(program);
            (forked.map_err(fork_error)?, None, None)
        };
        await_start(&forked, &failure, order.program())?;
        let root = Root::child(forked).map_err(SpawnError::Fork)?;
        let reins = match self.containment {
            Containment::Cgroup | Containment::ProcessGroup => None,
            Containment::PidNamespace => Some(Reins::Namespace),
            Containment::Subreaper => Some(Reins::Subreaper(Box::new(Sweep::new()))),
        };
        let parts = Parts {
            id,
            containment: self.containment,
            boot: self.boot.clone(),
            root,
            keeper,
            life,
            recorders,
            stdout,
            stderr,
            sandbox,
            limits: limits.report,
        };
        Ok((parts, reins))
    }

    fn namespaces(&self, sandbox: Option<&Prepared>) -> u64 {
        let mut flags =
            if self.containment == Containment::PidNamespace { containment::namespace_flags() } else { 0 };
        let wanted = sandbox.map_or(0, Prepared::namespaces);
        if wanted != 0 {
            flags |= u64::from((wanted | containment::user_namespace_flag()).cast_unsigned());
        }
        flags
    }

    fn plan_limits(
        &self,
        order: &Order,
        namespaces: u64,
        group: Option<&Cgroup>,
    ) -> Result<Plan, SpawnError> {
        let controllers = self.groups.as_ref().map(CgroupRoot::controllers).unwrap_or_default();
        let plan = order.limits.plan(Means {
            processes: controllers.pids,
            memory: controllers.memory,
            processor: controllers.cpu,
            counts_processes_apart: namespaces & u64::from(libc::CLONE_NEWUSER.cast_unsigned()) != 0,
        });
        if let Some(group) = group {
            for (file, text) in &plan.cgroup {
                let name = || format!("{}/{file}", group.name());
                group.set(file, text).map_err(|source| SpawnError::Cgroup { name: name(), source })?;
            }
        }
        Ok(plan)
    }

    fn build_keeper(
        &self,
        lifetime: Lifetime,
        program: Program,
        group: Option<&Cgroup>,
    ) -> Result<(Keeper, KeeperLink, Option<OwnedFd>), SpawnError> {
        let (status_reader, status) = cloexec_pipe()?;
        rustix::io::ioctl_fionbio(&status_reader, true).map_err(fork_error)?;
        let (life, our_life) = match lifetime {
            Lifetime::Independent => (None, None),
            Lifetime::DiesWithSupervisor => {
                let (reader, writer) = cloexec_pipe()?;
                (Some(reader), Some(writer))
            }
        };
        let role = match (self.containment, group) {
            (Containment::PidNamespace, _) => Role::Init,
            (_, Some(group)) => Role::InCgroup(group.kill_handle().map_err(SpawnError::Fork)?),
            _ => Role::Subreaper,
        };
        let proc = ProcRoot::open().map_err(fork_error)?;
        let null = output::nulls().map_err(SpawnError::Fork)?;
        let keeper = Keeper { role, program, status, life, proc, sweep: Sweep::new(), null };
        Ok((keeper, KeeperLink::new(status_reader), our_life))
    }

    /// Takes back a tree that an earlier process of ours started.
    ///
    /// # Errors
    /// When it is gone, which is said only if that is beyond doubt, or can't be held.
    pub fn reattach(&self, record: &TreeRecord) -> Result<Tree, ReattachError> {
        if record.containment != self.containment {
            let (recorded, ours) = (record.containment, self.containment);
            return Err(ReattachError::OtherContainment { recorded, ours });
        }
        let gone = || ReattachError::Gone(record.id.clone());
        if record.boot != self.boot {
            return Err(gone());
        }
        let handle = |source: io::Error| ReattachError::Handle { id: record.id.clone(), source };
        let root = Root::found(record.pid, record.start_time).map_err(handle)?;
        let reins = match self.containment {
            Containment::Cgroup => Reins::Cgroup(self.reopen_group(record)?),
            Containment::PidNamespace => Reins::Namespace,
            Containment::Subreaper => Reins::Subreaper(Box::new(Sweep::new())),
            Containment::ProcessGroup => Reins::Group,
        };
        // A cgroup knows its members without the root; a subreaper finds them by their marker.
        let root_needed = matches!(reins, Reins::Namespace | Reins::Group);
        if root_needed && root.has_ended() {
            return Err(gone());
        }
        let parts = Parts {
            id: record.id.clone(),
            containment: self.containment,
            boot: self.boot.clone(),
            root,
            keeper: None,
            life: None,
            recorders: Vec::new(),
            stdout: None,
            stderr: None,
            sandbox: None,
            limits: Vec::new(),
        };
        let mut tree = Tree::assemble(parts, reins).map_err(handle)?;
        if tree.has_lost_its_keeper() {
            // Nothing would tell us of its end, so it is ended here and now.
            self.stop(&mut tree, Ladder::force()).map_err(|error| handle(io::Error::other(error)))?;
        }
        match tree.poll_ended() {
            Ok(Some(_)) => Err(gone()),
            Ok(None) => Ok(tree),
            Err(source) => Err(handle(source)),
        }
    }

    fn reopen_group(&self, record: &TreeRecord) -> Result<Cgroup, ReattachError> {
        let gone = || ReattachError::Gone(record.id.clone());
        let groups = self.groups.as_ref().ok_or_else(gone)?;
        match groups.open(&record.id.group_name()) {
            Ok(group) if Some(group.inode()) == record.cgroup => Ok(group),
            Ok(_) => Err(gone()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(gone()),
            Err(source) => Err(ReattachError::Handle { id: record.id.clone(), source }),
        }
    }

    /// Looks for a tree of which only the name was written down, because its supervisor died in the
    /// middle of the spawn.
    ///
    /// # Errors
    /// When `/proc` or the cgroup can't be read.
    pub fn find(&self, id: &TreeId) -> io::Result<Option<TreeRecord>> {
        let proc = ProcRoot::open()?;
        let cgroup = match &self.groups {
            Some(groups) => match groups.open(&id.group_name()) {
                Ok(group) => Some(group.inode()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            },
            None => None,
        };
        let root = find_root(&proc, id)?;
        if root.is_none() && cgroup.is_none() {
            return Ok(None);
        }
        let (pid, start_time) = root.unwrap_or((0, 0));
        Ok(Some(TreeRecord {
            id: id.clone(),
            containment: self.containment,
            pid,
            start_time,
            boot: self.boot.clone(),
            cgroup,
        }))
    }
}

/// The keeper above the marked processes, or the topmost of these.
fn find_root(proc: &ProcRoot, id: &TreeId) -> io::Result<Option<(i32, u64)>> {
    let marker = id.marker();
    let mut environment = vec![0; 4096];
    let mut marked = Vec::new();
    proc.each_process(|pid| {
        if proc.has_marker(pid, &marker, &mut environment) {
            marked.push(pid);
        }
    })?;
    let topmost = marked.iter().filter_map(|pid| Some((*pid, proc.stat(*pid).ok()?)));
    let topmost =
        topmost.filter(|(_, stat)| !marked.contains(&stat.parent)).min_by_key(|(_, s)| s.start_time);
    let Some((pid, stat)) = topmost else { return Ok(None) };
    let mut name = [0; 32];
    let length = proc.read(format_args!("{}/comm", stat.parent), &mut name).unwrap_or(0);
    let parent_is_keeper =
        name.get(..length).is_some_and(|name| name.trim_ascii() == keeper::NAME.to_bytes());
    match proc.stat(stat.parent) {
        Ok(parent) if parent_is_keeper => Ok(Some((stat.parent, parent.start_time))),
        _ => Ok(Some((pid, stat.start_time))),
    }
}

fn cloexec_pipe() -> Result<(OwnedFd, OwnedFd), SpawnError> {
    let above = |fd: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(fd, 3);
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(fork_error)?;
    Ok((above(&reader).map_err(fork_error)?, above(&writer).map_err(fork_error)?))
}

fn fork_error(error: rustix::io::Errno) -> SpawnError {
    SpawnError::Fork(error.into())
}

/// Waits until the program runs, or says at which step it failed; then nothing of it is left.
fn await_start(forked: &Forked, failure: &OwnedFd, program: &Path) -> Result<(), SpawnError> {
    let outcome = child::read_failure(failure.as_fd());
    let (step, errno) = match outcome {
        Ok(None) => return Ok(()),
        Ok(Some(failure)) => failure,
        Err(errno) => (Step::Execute, errno),
    };
    let _ = rustix::process::pidfd_send_signal(&forked.pidfd, rustix::process::Signal::KILL);
    let mut fds = [PollFd::new(&forked.pidfd, PollFlags::IN)];
    while rustix::event::poll(&mut fds, None).is_err() {}
    let _ = wait::reap(forked.pidfd.as_fd());
    Err(SpawnError::Start { step: step.describe(), program: program.to_owned(), source: errno.into() })
}

fn build_program(
    id: &TreeId,
    order: &Order,
    sandbox: Option<&Prepared>,
    limits: &Plan,
    stdio: [OwnedFd; 3],
    failure: OwnedFd,
    namespaces: u64,
) -> Result<Program, SpawnError> {
    let mut env = vec![(OsString::from(MARKER), OsString::from(id.as_str()))];
    env.extend(order.env.iter().filter(|(name, _)| name != MARKER).cloned());
    for (name, value) in sandbox.map(Prepared::environment).unwrap_or_default() {
        set_variable(&mut env, name.clone(), value.clone());
    }
    let env = env.into_iter().map(|(mut name, value)| {
        name.push("=");
        name.push(value);
        name
    });
    Ok(Program {
        path: c_string(order.program.as_os_str().to_owned(), "the program's path")?,
        argv: c_strings(order.argv.iter().cloned(), "an argument")?,
        env: c_strings(env, "an environment variable")?,
        directory: c_string(order.directory.as_os_str().to_owned(), "the working directory")?,
        grouping: order.grouping,
        identity: order.identity.clone(),
        limits: limits.resources.clone(),
        umask: Mode::from_raw_mode(order.umask),
        stdio,
        identity_maps: containment::identity_maps(namespaces),
        failure,
    })
}

fn c_string(text: OsString, what: &'static str) -> Result<CString, SpawnError> {
    CString::new(text.into_vec()).map_err(|_| SpawnError::Nul { what })
}

fn c_strings(
    texts: impl IntoIterator<Item = OsString>,
    what: &'static str,
) -> Result<CStringArray, SpawnError> {
    let strings = texts.into_iter().map(|text| c_string(text, what)).collect::<Result<Vec<_>, _>>()?;
    Ok(CStringArray::new(strings))
}
