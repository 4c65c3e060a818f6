//! The specification of a program to run: plain data that is complete before the supervisor starts anything.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::limits::TreeLimits;
use crate::sandbox::Sandbox;

/// A specification of a program to run.
///
/// No shell is involved: `argv`, `env` and the working directory reach `execve` exactly as given. Only these
/// variables are added to the environment: `WARD_TREE`, the marker by which a lost member is found, and those
/// that a sandbox with temporary files sets (`HOME`, `TMPDIR`, `TMP`, `TEMP`).
#[derive(Debug)]
pub struct ProcessSpec {
    pub(crate) program: PathBuf,
    pub(crate) argv: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) directory: PathBuf,
    pub(crate) grouping: ProcessGrouping,
    pub(crate) identity: Option<UserIdentity>,
    pub(crate) limits: TreeLimits,
    pub(crate) umask: u32,
    pub(crate) stdin: StdinSource,
    pub(crate) stdout: OutputTarget,
    /// `None` sends standard error to the target of standard output.
    pub(crate) stderr: Option<OutputTarget>,
    pub(crate) lifetime: TreeLifetime,
    pub(crate) escapees: EscapeePolicy,
    pub(crate) sandbox: Option<Sandbox>,
}

impl ProcessSpec {
    /// Describes a program by its absolute path, with an empty environment, the working directory `/` and all
    /// streams on the null device. `argv[0]` is the path.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        let program = program.into();
        Self {
            argv: vec![program.clone().into_os_string()],
            program,
            env: Vec::new(),
            directory: PathBuf::from("/"),
            grouping: ProcessGrouping::Session,
            identity: None,
            limits: TreeLimits::default(),
            umask: 0o077,
            stdin: StdinSource::Null,
            stdout: OutputTarget::Null,
            stderr: Some(OutputTarget::Null),
            lifetime: TreeLifetime::Independent,
            escapees: EscapeePolicy::LetGo,
            sandbox: None,
        }
    }

    /// Appends arguments to `argv`.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.argv.extend(args.into_iter().map(Into::into));
        self
    }

    /// Replaces `argv[0]`, which is the path by default.
    #[must_use]
    pub fn argv0(mut self, name: impl Into<OsString>) -> Self {
        if let Some(first) = self.argv.first_mut() {
            *first = name.into();
        }
        self
    }

    /// Sets an environment variable, replacing an earlier value of the same name.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        set_variable(&mut self.env, name.into(), value.into());
        self
    }

    /// Copies the variables of `from` whose names are in `allowed`. Nothing else is inherited.
    #[must_use]
    pub fn env_allowlist(
        mut self,
        from: impl IntoIterator<Item = (OsString, OsString)>,
        allowed: &[&str],
    ) -> Self {
        for (name, value) in from {
            if allowed.iter().any(|allowed| OsStr::new(allowed) == name) {
                set_variable(&mut self.env, name, value);
            }
        }
        self
    }

    /// Sets the working directory, which is `/` by default.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self
    }

    /// Chooses between a session and a mere process group of the program's own.
    #[must_use]
    pub fn grouping(mut self, grouping: ProcessGrouping) -> Self {
        self.grouping = grouping;
        self
    }

    /// Runs the program as another user, which only root can do.
    #[must_use]
    pub fn identity(mut self, identity: UserIdentity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Sets the resource limits of the tree.
    #[must_use]
    pub fn limits(mut self, limits: TreeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the umask, which is 077 by default.
    #[must_use]
    pub fn umask(mut self, umask: u32) -> Self {
        self.umask = umask;
        self
    }

    /// Sets the source of standard input, by default the null device.
    #[must_use]
    pub fn stdin(mut self, stdin: StdinSource) -> Self {
        self.stdin = stdin;
        self
    }

    /// Sets the target of standard output, by default the null device.
    #[must_use]
    pub fn stdout(mut self, stdout: OutputTarget) -> Self {
        self.stdout = stdout;
        self
    }

    /// Sets the target of standard error, by default the null device.
    #[must_use]
    pub fn stderr(mut self, stderr: OutputTarget) -> Self {
        self.stderr = Some(stderr);
        self
    }

    /// Sends standard error to the target of standard output.
    #[must_use]
    pub fn stderr_with_stdout(mut self) -> Self {
        self.stderr = None;
        self
    }

    /// Chooses what happens to the tree when its supervisor process ends.
    #[must_use]
    pub fn lifetime(mut self, lifetime: TreeLifetime) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Chooses how members that move to another cgroup are treated.
    #[must_use]
    pub fn escapees(mut self, policy: EscapeePolicy) -> Self {
        self.escapees = policy;
        self
    }

    /// Runs the program inside a sandbox.
    #[must_use]
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// Returns the path of the program.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }
}

pub(crate) fn set_variable(env: &mut Vec<(OsString, OsString)>, name: OsString, value: OsString) {
    match env.iter_mut().find(|(existing, _)| *existing == name) {
        Some((_, existing)) => *existing = value,
        None => env.push((name, value)),
    }
}

/// Finds the executable for a program name, similar to `execvp(3)`: an absolute path is returned as it is,
/// and a name without a slash is looked up in `path` (the value of a `PATH` variable). Relative names, and
/// empty or relative parts of `path`, are ignored, because their meaning would depend on the working
/// directory.
#[must_use]
pub fn find_program(name: &OsStr, path: &OsStr) -> Option<PathBuf> {
    if name.is_empty() {
        return None;
    }
    if Path::new(name).components().count() > 1 || Path::new(name).is_absolute() {
        return Path::new(name).is_absolute().then(|| PathBuf::from(name));
    }
    std::env::split_paths(path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|candidate| is_executable_file(candidate))
}

fn is_executable_file(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// The separation of a program from the process group and session of its parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcessGrouping {
    /// A new process group in the parent's session, for a program that needs the terminal.
    Group,
    /// A new session without a controlling terminal.
    #[default]
    Session,
}

/// The user and groups that a program runs as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserIdentity {
    pub(crate) user: u32,
    pub(crate) group: u32,
    pub(crate) supplementary: Vec<u32>,
}

impl UserIdentity {
    /// Builds an identity from the numeric ids of a user, a group and supplementary groups.
    #[must_use]
    pub fn new(user: u32, group: u32, supplementary: &[u32]) -> Self {
        Self { user, group, supplementary: supplementary.to_vec() }
    }

    /// Returns the numeric user id.
    #[must_use]
    pub fn user(&self) -> u32 {
        self.user
    }

    /// Returns the numeric id of the primary group.
    #[must_use]
    pub fn group(&self) -> u32 {
        self.group
    }
}

/// A source of standard input.
#[derive(Debug, Default)]
pub enum StdinSource {
    /// The null device, where nothing can be read.
    #[default]
    Null,
    /// The supervisor's own standard input.
    Inherit,
    /// An open descriptor, such as a file or the reading end of a pipe.
    FromFd(OwnedFd),
}

/// A target of standard output or standard error.
#[derive(Debug, Default)]
pub enum OutputTarget {
    /// The null device, which drops the output.
    #[default]
    Null,
    /// The supervisor's own stream.
    Inherit,
    /// An open descriptor, such as a file or the writing end of a pipe.
    ToFd(OwnedFd),
    /// A file that a recorder process appends to, up to a limit for this run. The recorder goes on when the
    /// supervisor ends.
    Record {
        /// File to append to, created with mode 0600 if it is missing. An existing file must be a regular
        /// file of our own user without other hard links; symlinks are not followed.
        path: PathBuf,
        /// Number of bytes that are kept. If bytes are dropped, one line that says so is added.
        limit: u64,
    },
    /// A pipe to the supervisor, which keeps the first bytes and drops the rest.
    Capture {
        /// Number of bytes that are kept.
        limit: usize,
    },
}

/// The lifetime of a tree relative to its supervisor process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TreeLifetime {
    /// The tree keeps running without its supervisor; [`crate::Supervisor::reattach`] takes it back.
    #[default]
    Independent,
    /// The tree is killed when the supervisor process ends, for whatever reason. This promise is as strong as
    /// the containment: a program that may send signals to the keeper can stop the keeper and then outlive
    /// the supervisor. With a [`Subreaper`](crate::Containment::Subreaper) any program of our own user can do
    /// that; the init of a PID namespace can't be stopped from inside.
    DiesWithSupervisor,
}

/// The treatment of a member that moves to another cgroup.
///
/// A program can't move by itself, but the service manager of its user moves it on request (`systemd-run
/// --user --scope`), and some launchers make this request without being asked. The policy matters only for
/// [`Cgroup`](crate::Containment::Cgroup); the other containments ignore cgroups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EscapeePolicy {
    /// An escapee is no longer a member. Cheaper, because the tree needs no keeper, and right for programs
    /// that are never moved.
    #[default]
    LetGo,
    /// An escapee and its descendants stay members. A keeper that runs outside of the group, as the
    /// supervisor's own user, adopts their orphans. A tree that dies with its supervisor has a keeper anyway.
    Held,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_set_twice_keeps_the_last_value_once() {
        let spec = ProcessSpec::new("/bin/true").env("A", "1").env("B", "2").env("A", "3");
        assert_eq!(spec.env, [("A".into(), "3".into()), ("B".into(), "2".into())]);
    }

    #[test]
    fn only_allowed_variables_are_inherited() {
        let from = [("HOME".into(), "/h".into()), ("LD_PRELOAD".into(), "evil.so".into())];
        let spec = ProcessSpec::new("/bin/true").env_allowlist(from, &["HOME", "LANG"]);
        assert_eq!(spec.env, [("HOME".into(), "/h".into())]);
    }

    #[test]
    fn programs_are_found_on_absolute_parts_of_the_path_only() {
        let check = |name: &str, path: &str| find_program(OsStr::new(name), OsStr::new(path));
        assert_eq!(check("sh", "/nowhere:/bin"), Some("/bin/sh".into()));
        assert_eq!(check("sh", ":.:bin"), None);
        assert_eq!(check("", "/bin"), None);
        assert_eq!(check("/any/where", ""), Some("/any/where".into()));
        assert_eq!(check("./sh", "/bin"), None);
    }
}
