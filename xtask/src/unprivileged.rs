//! Runs the tests again as a user without any privilege.
//!
//! Other users may have no access to root's home and the checkout, so everything that the run needs is copied to a
//! separate folder: the test binaries as a nextest archive, the runner, and the sources for the fixtures. The user id
//! is one that has no account and no process, so every process that the tests leave behind is found.

use std::fs::{self, Permissions};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::located_error::LocatedError;
use crate::setup::{self, ORDINARY_PATH};
use crate::test::{StepOutcome, USER_INDEPENDENT_CRATES, runner_arguments};
use crate::workspace::{CargoWorkspace, run_to_end};

/// User ids above those of people and below those that systemd hands out.
const UIDS: Range<u32> = 60_578..61_184;

/// The time that processes may take to vanish after a test has killed them.
const GRACE: Duration = Duration::from_secs(1);

/// Modules of integration tests that are left out, each with its package: those that don't depend on the user, in
/// crates whose other tests do, and those that can't run as this user.
const MODULES_LEFT_OUT: &[(&str, &[&str])] = &[
    // They type what pages and people type. The parts behind it are tested as both users.
    ("collieclaw", &["documented", "gateway::doc_examples", "gateway::page"]),
    // They test messages to and from a server. Every user may connect to one.
    (
        "collieclaw",
        &[
            "fuzz",
            "http_fetch",
            "mcp::conformance",
            "mcp::http_servers",
            "mock",
            "openai",
            "openai_broken_streams",
            "openai_hostile",
            "openai_independent_server",
            "openai_stream",
            "routing",
            "streaming_answers",
            "web_search",
        ],
    ),
    // They test the contents of a database. Modes, owners and disk errors are tested as both users.
    (
        "collieclaw",
        &["memory::hostile_queries", "memory::persistence", "memory::random_texts", "memory::search"],
    ),
    // They test the order and the contents of a journal, which the program reads and writes alone.
    (
        "collieclaw",
        &[
            "sop::faults",
            "sop::finished_runs",
            "sop::journal_receipts",
            "sop::repeated_kills",
            "sop::specification_example",
        ],
    ),
    // It tests the order of the daemon's records. `many_sessions` of the host tests its process trees as both users.
    ("shepherdd", &["consecutive_sessions"]),
    // They need a message bus. `dbus-daemon` serves only users with an account, and this user has none.
    ("shepherdd", &["desktop_notifications", "logins"]),
    // They test which records a crash leaves. The kernel writes a file in the same way for every user.
    ("shepherd-store", &["process_kills", "simulated_crashes"]),
    // They test the bytes of a log.
    ("ward-ledger", &["canonical", "format_document"]),
];

/// Single integration tests that are left out, each with its package: they need a message bus, too.
const TESTS_LEFT_OUT: &[(&str, &[&str])] = &[(
    "shepherdd",
    &["bypass::idle_earning", "bypass::own_desktop", "bypass::second_seat", "bypass::service_manager"],
)];

/// Runs the tests as an ordinary user. Does nothing if this process already runs as one.
pub(crate) fn run(workspace: &CargoWorkspace) -> Result<StepOutcome> {
    if !setup::is_root() {
        let reason = "not root: the tests ran only as this user, not as root";
        return Ok(StepOutcome::PassedInPart(reason.to_owned()));
    }
    let uid = unused_uid()?;
    let stage = UnprivilegedWorkspace::prepare(workspace, uid)?;
    println!("running as uid {uid}, without groups, in {}", stage.folder.path().display());
    let result = run_to_end(&mut stage.runner(uid));
    let left = processes_left_after_grace(uid)?;
    if !left.is_empty() {
        // This kills only processes of the test user, who had no processes before.
        let _ = command_as_user(uid, Path::new("kill")).args(["-9", "-1"]).status();
    }
    result?;
    if !left.is_empty() {
        let fault = format!("the tests left processes behind: {}", left.join(", "));
        return Err(LocatedError::new(
            format!("uid {uid}"),
            fault,
            "stop every process that a test starts before the test ends",
        )
        .into());
    }
    Ok(StepOutcome::Passed)
}

/// The folder for the test run, which the ordinary user can read. The user owns some folders inside of it.
struct UnprivilegedWorkspace {
    folder: TempDir,
    /// The toolchain for tests that build something.
    cargo: PathBuf,
}

impl UnprivilegedWorkspace {
    fn prepare(workspace: &CargoWorkspace, uid: u32) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("xtask-").tempdir_in(world_readable_temp())?;
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        let cargo = provide_toolchain(&folder.path().join("toolchain"))?;
        let stage = Self { folder, cargo };
        for owned in ["home", "tmp", "run", "target"] {
            fs::create_dir(stage.path(owned))?;
            fs::set_permissions(stage.path(owned), Permissions::from_mode(0o700))?;
            chown(stage.path(owned), Some(uid), Some(uid))?;
        }
        let runner = setup::cargo_tool("cargo-nextest").context("could not find cargo-nextest")?;
        fs::copy(runner, stage.path("cargo-nextest")).context("could not copy cargo-nextest")?;
        fs::set_permissions(stage.path("cargo-nextest"), Permissions::from_mode(0o755))?;
        copy_tree(
            &workspace.root,
            &stage.path("workspace"),
            &[&workspace.target, &workspace.root.join(".git")],
        )
        .context("could not copy the sources")?;
        let mut archive = workspace.linting_command();
        // The archive is read once and deleted, so it is compressed for speed. `--workspace` even though some crates are
        // left out of the archive: without them, cargo would build most libraries again, with other features.
        archive.args(["nextest", "archive", "--workspace", "--locked", "--zstd-level=-7"]);
        archive.args(["--filterset", &crates_that_depend_on_the_user()]);
        run_to_end(archive.arg("--archive-file").arg(stage.path("tests.tar.zst")))?;
        fs::set_permissions(stage.path("tests.tar.zst"), Permissions::from_mode(0o644))?;
        Ok(stage)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn runner(&self, uid: u32) -> Command {
        let mut command = command_as_user(uid, &self.path("cargo-nextest"));
        command
            .args(["nextest", "run"])
            .args(runner_arguments())
            .args(["--filterset", &tests_that_depend_on_the_user()])
            .arg("--archive-file")
            .arg(self.path("tests.tar.zst"))
            .arg("--extract-to")
            .arg(self.path("target"))
            .arg("--workspace-remap")
            .arg(self.path("workspace"))
            .current_dir(self.path("workspace"))
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("CARGO", &self.cargo)
            // insta would otherwise ask cargo for the workspace.
            .env("INSTA_WORKSPACE_ROOT", self.path("workspace"))
            .env("CI", "true");
        command
    }
}

/// Returns the filter of nextest for the crates whose tests depend on the user.
fn crates_that_depend_on_the_user() -> String {
    let others: Vec<_> = USER_INDEPENDENT_CRATES.iter().map(|name| format!("package({name})")).collect();
    format!("not ({})", others.join(" | "))
}

/// Returns the filter of nextest for the tests that depend on the user.
fn tests_that_depend_on_the_user() -> String {
    let modules = MODULES_LEFT_OUT
        .iter()
        .map(|(package, names)| format!("(binary_id({package}::it) & test(/^({})::/))", names.join("|")));
    let tests = TESTS_LEFT_OUT
        .iter()
        .map(|(package, names)| format!("(binary_id({package}::it) & test(/^({})$/))", names.join("|")));
    let left_out: Vec<_> = modules.chain(tests).collect();
    format!("{} & not ({})", crates_that_depend_on_the_user(), left_out.join(" | "))
}

/// Returns a command that runs as another user with an empty environment.
fn command_as_user(uid: u32, program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command
        .arg(format!("--reuid={uid}"))
        .arg(format!("--regid={uid}"))
        .arg("--clear-groups")
        .arg(program)
        .env_clear()
        .env("PATH", ORDINARY_PATH)
        .env("LANG", "C.UTF-8");
    command
}

/// Returns the temporary folder, or `/tmp` if other users have no access to it.
fn world_readable_temp() -> PathBuf {
    let stated = std::env::temp_dir();
    if stated.is_absolute() && is_open_to_all(&stated) { stated } else { PathBuf::from("/tmp") }
}

/// Returns whether every user can reach a folder or run a program.
fn is_open_to_all(path: &Path) -> bool {
    path.ancestors().all(|path| path.metadata().is_ok_and(|metadata| metadata.mode() & 0o001 != 0))
}

/// Returns a `cargo` that every user can run, with its toolchain: the one that runs this program, or links to its
/// toolchain in a new folder.
fn provide_toolchain(new_folder: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").context("could not find cargo: the variable CARGO is not set")?;
    let cargo = Path::new(&cargo).canonicalize().context("could not find cargo")?;
    if is_open_to_all(&cargo) {
        return Ok(cargo);
    }
    let toolchain = cargo.parent().and_then(Path::parent).context("could not find the toolchain of cargo")?;
    create_open_folder(new_folder)?;
    for part in ["bin", "lib"] {
        link_tree(&toolchain.join(part), &new_folder.join(part)).context("could not link the toolchain")?;
    }
    Ok(new_folder.join("bin/cargo"))
}

/// Gives the files of a tree second names in another folder. On another file system they are copied.
fn link_tree(from: &Path, to: &Path) -> Result<()> {
    create_open_folder(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, link) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            link_tree(&source, &link)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(&source)?, &link)?;
        } else if fs::hard_link(&source, &link).is_err() {
            fs::copy(&source, &link).with_context(|| source.display().to_string())?;
        }
    }
    Ok(())
}

/// Creates a folder that every user may enter, whatever the umask is.
fn create_open_folder(folder: &Path) -> Result<()> {
    fs::create_dir(folder)?;
    Ok(fs::set_permissions(folder, Permissions::from_mode(0o755))?)
}

/// Finds a user id without account and processes. The search starts at a different id in each process, so that two runs
/// at the same time don't collide.
fn unused_uid() -> Result<u32> {
    let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let taken: Vec<u32> = accounts.lines().filter_map(|line| line.split(':').nth(2)?.parse().ok()).collect();
    let first = UIDS.start + std::process::id() % (UIDS.end - UIDS.start);
    for uid in (first..UIDS.end).chain(UIDS.start..first).filter(|uid| !taken.contains(uid)) {
        if processes_of(uid)?.is_empty() {
            return Ok(uid);
        }
    }
    bail!("every user id from {} to {} is in use", UIDS.start, UIDS.end - 1)
}

fn processes_left_after_grace(uid: u32) -> Result<Vec<String>> {
    let deadline = Instant::now() + GRACE;
    loop {
        let left = processes_of(uid)?;
        if left.is_empty() || Instant::now() >= deadline {
            return Ok(left);
        }
        std::thread::sleep(GRACE / 20);
    }
}

/// Returns the processes of a user as `pid (name)`, without zombies.
fn processes_of(uid: u32) -> Result<Vec<String>> {
    let mut living = Vec::new();
    for entry in fs::read_dir("/proc").context("/proc")?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_process = name.bytes().all(|byte| byte.is_ascii_digit());
        // A process may end between listing and reading.
        let Ok(status) = fs::read_to_string(entry.path().join("status")) else { continue };
        if is_process && is_living_process_of(&status, uid) {
            let command =
                status.lines().find_map(|line| line.strip_prefix("Name:")).unwrap_or_default().trim();
            living.push(format!("{name} ({command})"));
        }
    }
    Ok(living)
}

fn is_living_process_of(status: &str, uid: u32) -> bool {
    let field =
        |name| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim_start();
    let real = field("Uid:").split_whitespace().next().and_then(|number| number.parse().ok());
    real == Some(uid) && !field("State:").starts_with(['Z', 'X'])
}

/// Copies a tree without the given folders, readable for all users.
fn copy_tree(from: &Path, to: &Path, without: &[&Path]) -> Result<()> {
    fs::create_dir(to)?;
    fs::set_permissions(to, Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, copy) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !without.contains(&source.as_path()) {
                copy_tree(&source, &copy, without)?;
            }
        } else if kind.is_symlink() {
            symlink(fs::read_link(&source)?, &copy)?;
        } else if kind.is_file() {
            fs::copy(&source, &copy).with_context(|| source.display().to_string())?;
            let runs = entry.metadata()?.mode() & 0o100 != 0;
            fs::set_permissions(&copy, Permissions::from_mode(if runs { 0o755 } else { 0o644 }))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_readable_for_everybody_and_leaves_out_what_it_was_told() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        fs::create_dir_all(source.join("crates/one")).unwrap();
        fs::create_dir_all(source.join("target/debug")).unwrap();
        fs::write(source.join("crates/one/run.sh"), "true").unwrap();
        fs::set_permissions(source.join("crates/one/run.sh"), Permissions::from_mode(0o700)).unwrap();
        fs::write(source.join("secret.txt"), "text").unwrap();
        fs::set_permissions(source.join("secret.txt"), Permissions::from_mode(0o600)).unwrap();

        let copy = folder.path().join("copy");
        copy_tree(&source, &copy, &[&source.join("target")]).unwrap();

        let mode = |name: &str| copy.join(name).metadata().unwrap().mode() & 0o777;
        assert_eq!(mode("crates/one/run.sh"), 0o755);
        assert_eq!(mode("secret.txt"), 0o644);
        assert!(!copy.join("target").exists());
    }

    #[test]
    fn every_user_may_enter_the_folders_of_a_linked_tree() {
        let folder = tempfile::tempdir().unwrap();
        let [source, linked] = ["source", "linked"].map(|name| folder.path().join(name));
        fs::create_dir_all(source.join("bin/deep")).unwrap();
        fs::write(source.join("bin/cargo"), "").unwrap();
        let umask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
        let result = link_tree(&source, &linked);
        rustix::process::umask(umask);
        result.unwrap();
        for name in ["", "bin", "bin/deep"] {
            assert_eq!(linked.join(name).metadata().unwrap().mode() & 0o777, 0o755, "{name}");
        }
        assert!(linked.join("bin/cargo").is_file());
    }

    #[test]
    fn the_modules_that_are_left_out_exist() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("crates");
        for (package, names) in MODULES_LEFT_OUT {
            for name in *names {
                let file = format!("{package}/tests/it/{}.rs", name.replace("::", "/"));
                assert!(crates.join(&file).exists(), "{file}");
            }
        }
    }

    #[test]
    fn a_zombie_is_not_left_behind() {
        let sleeping = "Name:\tsleep\nState:\tS (sleeping)\nUid:\t60600\t60600\t60600\t60600\n";
        assert!(is_living_process_of(sleeping, 60_600));
        assert!(!is_living_process_of(sleeping, 60_601));
        assert!(!is_living_process_of(&sleeping.replace("S (sleeping)", "Z (zombie)"), 60_600));
    }
}
