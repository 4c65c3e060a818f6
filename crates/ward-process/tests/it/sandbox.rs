//! The sandbox, tried by a hostile program and by everyday tools.

mod attacks;
mod closed_paths;
mod everyday;
mod links;
mod setup;

use std::ffi::OsString;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use ward_process::sandbox::Sandbox;
use ward_process::{
    Containment, OutputTarget, ProcessExit, ProcessSpec, ProcessTree, Supervisor, UserIdentity,
};

/// Generous, because the machine is shared; nothing here takes a second by itself.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(60);

const OUTPUT_BYTES: usize = 64 * 1024;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A user number that nobody has here.
const SOMEBODY: u32 = 60_577;

/// Who runs the programs of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TestUser {
    CurrentUser,
    /// A user without a name. Only root can start programs for others.
    UnnamedUser,
}

impl TestUser {
    /// All that whoever runs the tests can try.
    fn all() -> &'static [Self] {
        if is_root() { &[Self::CurrentUser, Self::UnnamedUser] } else { &[Self::CurrentUser] }
    }

    fn is_root(self) -> bool {
        self == Self::CurrentUser && is_root()
    }

    /// Without a sandbox.
    fn command(self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        if self == Self::UnnamedUser {
            command.uid(SOMEBODY).gid(SOMEBODY);
        }
        command
    }

    fn give_ownership(self, path: &Path) {
        if self == Self::UnnamedUser {
            chown(path, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
        }
    }
}

/// A folder that a sandbox may write, one that it may not know of, and the hostile program.
struct SandboxFixture {
    folder: TempDir,
    actor: TestUser,
}

impl SandboxFixture {
    fn new() -> Self {
        Self::for_user(TestUser::CurrentUser)
    }

    /// All files belong to the actor, so that only a sandbox can keep them from it.
    fn for_user(actor: TestUser) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Other users must get through to what is theirs.
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        actor.give_ownership(folder.path());
        let site = Self { folder, actor };
        for inner in [site.workspace(), site.outside()] {
            std::fs::create_dir(&inner).unwrap();
            actor.give_ownership(&inner);
        }
        site.write("outside/secret", "secret\n");
        std::fs::copy(hostile_program(), site.hostile()).unwrap();
        actor.give_ownership(&site.hostile());
        site
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.path(name), content).unwrap();
        self.actor.give_ownership(&self.path(name));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    fn outside(&self) -> PathBuf {
        self.path("outside")
    }

    fn secret(&self) -> PathBuf {
        self.path("outside/secret")
    }

    fn hostile(&self) -> PathBuf {
        self.path("fake-hostile")
    }

    /// The system readable, the workspace writable, programs in it executable.
    fn sandbox(&self) -> Sandbox {
        let mut sandbox = Sandbox::system_read_only();
        sandbox.write.push(self.workspace());
        sandbox.execute.extend([self.workspace(), self.hostile()]);
        sandbox
    }

    fn order(&self, program: impl Into<PathBuf>) -> ProcessSpec {
        let order = match self.actor {
            TestUser::CurrentUser => ProcessSpec::new(program),
            TestUser::UnnamedUser => {
                ProcessSpec::new(program).identity(UserIdentity::new(SOMEBODY, SOMEBODY, &[]))
            }
        };
        order
            .env("PATH", PATH)
            .env("HOME", "/root")
            .env("LC_ALL", "C")
            .directory(self.workspace())
            .stdout(OutputTarget::Capture { limit: OUTPUT_BYTES })
            .stderr(OutputTarget::Capture { limit: OUTPUT_BYTES })
    }

    fn attack(&self, words: &[String]) -> ProcessSpec {
        self.order(self.hostile()).args(words).sandbox(self.sandbox())
    }

    fn shell(&self, script: &str) -> ProcessSpec {
        self.order("/bin/sh").args(["-c", script]).sandbox(self.sandbox())
    }
}

/// How a program ended and what it said.
#[derive(Debug, PartialEq, Eq)]
struct ProgramOutput {
    exit: ProcessExit,
    stdout: String,
    stderr: String,
}

/// Runs an order in the weakest containment, so that what holds is the sandbox.
fn run(order: ProcessSpec) -> ProgramOutput {
    wait_for_output(spawn(Containment::ProcessGroup, order))
}

fn spawn(containment: Containment, order: ProcessSpec) -> ProcessTree {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let id = format!("sandbox-{}-{number}", std::process::id()).parse().unwrap();
    Supervisor::with_containment(containment).unwrap().spawn(id, order).unwrap()
}

fn wait_for_output(mut tree: ProcessTree) -> ProgramOutput {
    let ended = tree.wait(Some(PROGRAM_TIMEOUT)).unwrap();
    if ended.is_none() {
        tree.kill();
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    ProgramOutput {
        exit: ended.expect("it ends in time").exit,
        stdout: text(tree.stdout().unwrap().bytes()),
        stderr: text(tree.stderr().unwrap().bytes()),
    }
}

/// Found at run time first, because an archive of these tests is unpacked elsewhere.
fn hostile_program() -> OsString {
    std::env::var_os("NEXTEST_BIN_EXE_fake-hostile")
        .or_else(|| std::env::var_os("NEXTEST_BIN_EXE_fake_hostile"))
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_fake-hostile").into())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
