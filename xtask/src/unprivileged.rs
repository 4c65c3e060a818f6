//! Runs the tests again as a user without any privilege.
//!
//! Root's home and the checkout may be closed to other users, so everything the run needs is laid out in
//! a folder of its own: the test binaries as a nextest archive, the runner, and a copy of the sources for
//! the fixtures. The user is a number that nobody uses, which also makes every process it leaves behind
//! visible.

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
use crate::test::{StepOutcome, USER_INDEPENDENT_CRATES};
use crate::workspace::{CargoWorkspace, run_to_end};

/// User ids above those of people and below those that systemd hands out.
const UIDS: Range<u32> = 60_578..61_184;

/// The time that processes may take to vanish after a test has killed them.
const GRACE: Duration = Duration::from_secs(1);

/// Runs the tests as an ordinary user; there is nothing to add when we are one already.
pub(crate) fn run(workspace: &CargoWorkspace) -> Result<StepOutcome> {
    if !setup::is_root() {
        let reason = "not root: the tests ran as this user only, the run with privileges was not done";
        return Ok(StepOutcome::PassedInPart(reason.to_owned()));
    }
    let uid = unused_uid()?;
    let stage = UnprivilegedWorkspace::prepare(workspace, uid)?;
    println!("running as uid {uid}, without groups, in {}", stage.folder.path().display());
    let result = run_to_end(&mut stage.runner(uid));
    let left = processes_left_after_grace(uid)?;
    if !left.is_empty() {
        // Only processes of a user that had none before are reached by this.
        let _ = command_as_user(uid, Path::new("kill")).args(["-9", "-1"]).status();
    }
    result?;
    if !left.is_empty() {
        let fault = format!("the tests left processes behind: {}", left.join(", "));
        return Err(LocatedError::new(
            format!("uid {uid}"),
            fault,
            "end what a test starts before the test ends",
        )
        .into());
    }
    Ok(StepOutcome::Passed)
}

/// The folder that the ordinary user can read, with three folders inside that it owns.
struct UnprivilegedWorkspace {
    folder: TempDir,
}

impl UnprivilegedWorkspace {
    fn prepare(workspace: &CargoWorkspace, uid: u32) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("xtask-").tempdir_in(world_readable_temp())?;
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        let stage = Self { folder };
        for owned in ["home", "tmp", "run", "target"] {
            fs::create_dir(stage.path(owned))?;
            fs::set_permissions(stage.path(owned), Permissions::from_mode(0o700))?;
            chown(stage.path(owned), Some(uid), Some(uid))?;
        }
        let runner = setup::cargo_tool("cargo-nextest").context("cargo-nextest is gone since the setup")?;
        fs::copy(runner, stage.path("cargo-nextest")).context("copying cargo-nextest")?;
        fs::set_permissions(stage.path("cargo-nextest"), Permissions::from_mode(0o755))?;
        copy_tree(
            &workspace.root,
            &stage.path("workspace"),
            &[&workspace.target, &workspace.root.join(".git")],
        )
        .context("copying the sources")?;
        let mut archive = workspace.cargo_command();
        // The archive is read once and thrown away: speed counts, size does not.
        archive.args(["nextest", "archive", "--workspace", "--locked", "--zstd-level=-7"]);
        archive.args(USER_INDEPENDENT_CRATES.iter().flat_map(|name| ["--exclude", name]));
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
            .args(["nextest", "run", "--profile", "ci", "--archive-file"])
            .arg(self.path("tests.tar.zst"))
            .arg("--extract-to")
            .arg(self.path("target"))
            .arg("--workspace-remap")
            .arg(self.path("workspace"))
            .current_dir(self.path("workspace"))
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            // Snapshots are looked up from the workspace, which insta otherwise asks cargo for.
            .env("INSTA_WORKSPACE_ROOT", self.path("workspace"))
            .env("CI", "true");
        command
    }
}

/// A command of another user, with nothing of our environment.
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

/// The temporary folder, unless other users can't get there.
fn world_readable_temp() -> PathBuf {
    let stated = std::env::temp_dir();
    let is_open = |folder: &Path| folder.metadata().is_ok_and(|metadata| metadata.mode() & 0o001 != 0);
    if stated.is_absolute() && stated.ancestors().all(is_open) { stated } else { PathBuf::from("/tmp") }
}

/// A user id that no account and no process has; two runs at once begin their search at different places.
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

/// The living processes of a user, as `pid (name)`; one that waits to be reaped is not living.
fn processes_of(uid: u32) -> Result<Vec<String>> {
    let mut living = Vec::new();
    for entry in fs::read_dir("/proc").context("/proc")?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_process = name.bytes().all(|byte| byte.is_ascii_digit());
        // A process may end between two looks; then it is none of ours any more.
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

/// Copies a tree readable for everybody, without the folders named.
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
    fn a_zombie_is_not_left_behind() {
        let sleeping = "Name:\tsleep\nState:\tS (sleeping)\nUid:\t60600\t60600\t60600\t60600\n";
        assert!(is_living_process_of(sleeping, 60_600));
        assert!(!is_living_process_of(sleeping, 60_601));
        assert!(!is_living_process_of(&sleeping.replace("S (sleeping)", "Z (zombie)"), 60_600));
    }
}
