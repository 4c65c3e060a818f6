//! The sandbox, tested with a hostile program and with everyday tools.

mod attacks;
mod closed_paths;
mod everyday;
mod links;
mod loopback;
mod memory_files;
mod setup;
mod temporary_folder;

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

/// Time limit for a program. It is generous because the machine is shared; no program needs a second.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(60);

const OUTPUT_BYTES: usize = 64 * 1024;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A user and group id without an account on this machine.
const UNNAMED_UID: u32 = 60_577;

/// The user that runs the programs of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TestUser {
    CurrentUser,
    /// The user with [`UNNAMED_UID`]. Only root can start programs as another user.
    UnnamedUser,
}

impl TestUser {
    /// Returns the users that the tests can run programs as.
    fn all() -> &'static [Self] {
        if is_root() { &[Self::CurrentUser, Self::UnnamedUser] } else { &[Self::CurrentUser] }
    }

    fn is_root(self) -> bool {
        self == Self::CurrentUser && is_root()
    }

    /// Returns a command that runs a program as this user, without a sandbox.
    fn command(self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        if self == Self::UnnamedUser {
            command.uid(UNNAMED_UID).gid(UNNAMED_UID);
        }
        command
    }

    fn give_ownership(self, path: &Path) {
        if self == Self::UnnamedUser {
            chown(path, Some(UNNAMED_UID), Some(UNNAMED_UID)).unwrap();
        }
    }
}

/// A folder with `workspace`, which the sandbox can write to, `outside` with a secret, which it can't reach,
/// and a copy of the hostile program.
struct SandboxFixture {
    folder: TempDir,
    actor: TestUser,
}

impl SandboxFixture {
    fn new() -> Self {
        Self::for_user(TestUser::CurrentUser)
    }

    /// Creates the files as the property of `actor`, so that only the sandbox protects them.
    fn for_user(actor: TestUser) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Other users must be able to reach their files inside.
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        actor.give_ownership(folder.path());
        let fixture = Self { folder, actor };
        for inner in [fixture.workspace(), fixture.outside()] {
            std::fs::create_dir(&inner).unwrap();
            actor.give_ownership(&inner);
        }
        fixture.write("outside/secret", "secret\n");
        std::fs::copy(hostile_program(), fixture.hostile()).unwrap();
        actor.give_ownership(&fixture.hostile());
        fixture
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

    /// Returns a sandbox with a readable system and a writable workspace whose programs can be executed.
    fn sandbox(&self) -> Sandbox {
        let mut sandbox = Sandbox::system_read_only();
        sandbox.write.push(self.workspace());
        sandbox.execute.extend([self.workspace(), self.hostile()]);
        sandbox
    }

    fn spec(&self, program: impl Into<PathBuf>) -> ProcessSpec {
        let spec = match self.actor {
            TestUser::CurrentUser => ProcessSpec::new(program),
            TestUser::UnnamedUser => {
                ProcessSpec::new(program).identity(UserIdentity::new(UNNAMED_UID, UNNAMED_UID, &[]))
            }
        };
        spec.env("PATH", PATH)
            .env("HOME", "/root")
            .env("LC_ALL", "C")
            .directory(self.workspace())
            .stdout(OutputTarget::Capture { limit: OUTPUT_BYTES })
            .stderr(OutputTarget::Capture { limit: OUTPUT_BYTES })
    }

    fn attack(&self, words: &[String]) -> ProcessSpec {
        self.spec(self.hostile()).args(words).sandbox(self.sandbox())
    }

    fn shell(&self, script: &str) -> ProcessSpec {
        self.spec("/bin/sh").args(["-c", script]).sandbox(self.sandbox())
    }
}

/// The exit and the output of a program.
#[derive(Debug, PartialEq, Eq)]
struct ProgramOutput {
    exit: ProcessExit,
    stdout: String,
    stderr: String,
}

/// Runs a program in the weakest containment, so that only the sandbox restricts it.
fn run(spec: ProcessSpec) -> ProgramOutput {
    wait_for_output(spawn(Containment::ProcessGroup, spec))
}

fn spawn(containment: Containment, spec: ProcessSpec) -> ProcessTree {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let id = format!("sandbox-{}-{number}", std::process::id()).parse().unwrap();
    Supervisor::with_containment(containment).unwrap().spawn(id, spec).unwrap()
}

fn wait_for_output(mut tree: ProcessTree) -> ProgramOutput {
    let ended = tree.wait(Some(PROGRAM_TIMEOUT)).unwrap();
    if ended.is_none() {
        tree.kill();
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    ProgramOutput {
        exit: ended.expect("the program ends in time").exit,
        stdout: text(tree.stdout().unwrap().bytes()),
        stderr: text(tree.stderr().unwrap().bytes()),
    }
}

/// Returns the path of the hostile program. Archived tests run in another folder than they were built in, so
/// nextest passes the path at run time.
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
