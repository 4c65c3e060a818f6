//! What is to be run: plain data, complete before anything happens.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::limits::TreeLimits;
use crate::sandbox::Sandbox;

/// One program to run. No shell ever reads it: `argv`, `env` and the working directory reach
/// `execve` exactly as they are here. Only this is added to the environment: `WARD_TREE`, the mark by
/// which a lost member is found, and what a sandbox with temporary files sets (`HOME`, `TMPDIR`, `TMP`,
/// `TEMP`).
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
    /// `None`: wherever standard output goes.
    pub(crate) stderr: Option<OutputTarget>,
    pub(crate) lifetime: TreeLifetime,
    pub(crate) escapees: EscapeePolicy,
    pub(crate) sandbox: Option<Sandbox>,
}

impl ProcessSpec {
    /// A program by its absolute path, with an empty environment, in `/`, all streams on the null
    /// device. `argv[0]` is the path.
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

    /// Further arguments, after those there are.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.argv.extend(args.into_iter().map(Into::into));
        self
    }

    /// Another `argv[0]` than the path.
    #[must_use]
    pub fn argv0(mut self, name: impl Into<OsString>) -> Self {
        if let Some(first) = self.argv.first_mut() {
            *first = name.into();
        }
        self
    }

    /// One variable; a later value for the same name replaces the earlier one.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        set_variable(&mut self.env, name.into(), value.into());
        self
    }

    /// Those variables of `from` whose names `allowed` lists. Nothing else is inherited.
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

    /// Where the program starts.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self
    }

    /// Whether it gets a session or only a process group of its own.
    #[must_use]
    pub fn grouping(mut self, grouping: ProcessGrouping) -> Self {
        self.grouping = grouping;
        self
    }

    /// Runs as somebody else, which only root can do.
    #[must_use]
    pub fn identity(mut self, identity: UserIdentity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Bounds on what it may use.
    #[must_use]
    pub fn limits(mut self, limits: TreeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Mode bits that new files do not get; 077 unless told.
    #[must_use]
    pub fn umask(mut self, umask: u32) -> Self {
        self.umask = umask;
        self
    }

    /// Standard input.
    #[must_use]
    pub fn stdin(mut self, stdin: StdinSource) -> Self {
        self.stdin = stdin;
        self
    }

    /// Standard output.
    #[must_use]
    pub fn stdout(mut self, stdout: OutputTarget) -> Self {
        self.stdout = stdout;
        self
    }

    /// Standard error.
    #[must_use]
    pub fn stderr(mut self, stderr: OutputTarget) -> Self {
        self.stderr = Some(stderr);
        self
    }

    /// Standard error goes wherever standard output goes.
    #[must_use]
    pub fn stderr_with_stdout(mut self) -> Self {
        self.stderr = None;
        self
    }

    /// What happens to the tree when the process that ordered it is gone.
    #[must_use]
    pub fn lifetime(mut self, lifetime: TreeLifetime) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// What becomes of members that move to another cgroup.
    #[must_use]
    pub fn escapees(mut self, leavers: EscapeePolicy) -> Self {
        self.escapees = leavers;
        self
    }

    /// Runs inside a sandbox.
    #[must_use]
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// The program's path.
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

/// Finds `argv0` as `execvp` would: with a slash it is a path, without one it is looked up in `path`
/// (the value of a `PATH` variable). Empty and relative parts of `path` are passed over, since they
/// would make the meaning depend on the working directory.
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

/// How the program is set apart from its parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcessGrouping {
    /// A process group of its own in the session of its parent, for a program that needs the terminal.
    Group,
    /// A session of its own, without a controlling terminal.
    #[default]
    Session,
}

/// A user to run as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserIdentity {
    pub(crate) user: u32,
    pub(crate) group: u32,
    pub(crate) supplementary: Vec<u32>,
}

impl UserIdentity {
    /// User, group and supplementary groups, by number.
    #[must_use]
    pub fn new(user: u32, group: u32, supplementary: &[u32]) -> Self {
        Self { user, group, supplementary: supplementary.to_vec() }
    }

    /// The user.
    #[must_use]
    pub fn user(&self) -> u32 {
        self.user
    }

    /// Its first group.
    #[must_use]
    pub fn group(&self) -> u32 {
        self.group
    }
}

/// Where standard input comes from.
#[derive(Debug, Default)]
pub enum StdinSource {
    /// Nothing to read.
    #[default]
    Null,
    /// The supervisor's own.
    Inherit,
    /// A descriptor: a file, or the reading end of a pipe.
    FromFd(OwnedFd),
}

/// Where standard output or standard error goes.
#[derive(Debug, Default)]
pub enum OutputTarget {
    /// Nowhere.
    #[default]
    Null,
    /// The supervisor's own.
    Inherit,
    /// A descriptor: a file, or the writing end of a pipe.
    ToFd(OwnedFd),
    /// Appended to a file, up to so many bytes in this run; what is beyond is dropped. Goes on without
    /// the supervisor.
    Record {
        /// The file, created with mode 0600 when missing. One that is there must be a plain file of our
        /// own user with one name; links are not followed.
        path: PathBuf,
        /// Bytes that are kept. If something is dropped, one line that says so comes on top.
        limit: u64,
    },
    /// A pipe to the supervisor, who collects up to so many bytes and drops the rest.
    Capture {
        /// Bytes that are kept.
        limit: usize,
    },
}

/// What happens to a tree when the process that ordered it is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TreeLifetime {
    /// It goes on, to be taken back by [`crate::Supervisor::reattach`].
    #[default]
    Independent,
    /// It is ended, however the supervisor died. As strong as the containment: a program that may
    /// signal a keeper that is not its init (with a [`Subreaper`](crate::Containment::Subreaper), any
    /// program of our own user) can stop it and then outlive us.
    DiesWithSupervisor,
}

/// What becomes of a member of a tree that moves to another cgroup.
///
/// A program can't do that by itself, but the service manager of its user does it on request
/// (`systemd-run --user --scope`), and some launchers ask for it unasked. Only a
/// [`Cgroup`](crate::Containment::Cgroup) makes the choice: the others do not look at groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EscapeePolicy {
    /// It is no member any more. For programs that nobody moves, and cheaper: a tree has no keeper.
    #[default]
    LetGo,
    /// It stays a member, and so does all that comes of it: a keeper of the supervisor's own user, outside
    /// of the group, is the one to whom orphans fall back. A tree that is to die with its supervisor has
    /// one anyway.
    Held,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_set_twice_keeps_the_last_value_once() {
        let order = ProcessSpec::new("/bin/true").env("A", "1").env("B", "2").env("A", "3");
        assert_eq!(order.env, [("A".into(), "3".into()), ("B".into(), "2".into())]);
    }

    #[test]
    fn only_allowed_variables_are_taken_over() {
        let from = [("HOME".into(), "/h".into()), ("LD_PRELOAD".into(), "evil.so".into())];
        let order = ProcessSpec::new("/bin/true").env_allowlist(from, &["HOME", "LANG"]);
        assert_eq!(order.env, [("HOME".into(), "/h".into())]);
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
