//! A container with a small Debian and systemd. It is built once and boots in about a second. It never changes, because
//! everything that a boot writes goes to memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use super::path_in_root;
use crate::workspace::{CargoWorkspace, run_to_end};

/// Packages that the checks need inside the container.
const PACKAGES: &str = "systemd,systemd-sysv,libpam-systemd,dbus,procps,util-linux,passwd,login,cron";

/// Changes with the packages, so that an older container isn't used.
const CONTAINER_VERSION: u32 = 2;

/// The service manager of the user `kid`, whose user id is 1000.
pub(super) const CHILD_USER_MANAGER: &str = "user@1000.service";

/// The longest time for a container to boot on a busy machine.
const BOOT_TIMEOUT: Duration = Duration::from_secs(60);

/// Folders that are mounted into each container.
pub(super) struct ContainerSetup {
    root: PathBuf,
    programs: PathBuf,
    units: PathBuf,
    pam_configuration: PathBuf,
    /// The folder of data and policy, which survives a reboot of the container.
    folder: TempDir,
}

impl ContainerSetup {
    pub(super) fn prepare(workspace: &CargoWorkspace) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("shepherd-units-").tempdir()?;
        for name in ["data", "policy"] {
            fs::create_dir(folder.path().join(name))?;
        }
        Ok(Self {
            root: build_container(workspace)?,
            programs: workspace.target.join("debug"),
            units: workspace.root.join("packaging/systemd"),
            pam_configuration: workspace.root.join("packaging/pam-configs/shepherd"),
            folder,
        })
    }

    /// Boots a container, and returns when systemd reports that the system is up.
    pub(super) fn boot(&self) -> Result<TestContainer> {
        let bind = |kind: &str, from: PathBuf, to: &str| format!("--{kind}={}:{to}", from.display());
        let groups = ContainerCgroups::make()?;
        let mut nspawn = Command::new("unshare");
        nspawn.args(["--mount", "sh", "-c", &groups.script(), "sh"]);
        nspawn.args([
            "systemd-nspawn",
            "--register=no",
            "--keep-unit",
            "--quiet",
            "--boot",
            "--volatile=overlay",
        ]);
        // systemd-nspawn of this version doesn't allow these harmless calls by default.
        nspawn.arg("--system-call-filter=landlock_create_ruleset landlock_add_rule landlock_restrict_self");
        nspawn
            .args(["--private-network", "--console=pipe", "--machine=shepherd-units", "--directory"])
            .arg(&self.root);
        nspawn.arg(bind("bind-ro", self.programs.join("shepherdd"), "/usr/bin/shepherdd"));
        nspawn.arg(bind("bind-ro", self.programs.join("shepherd"), "/usr/bin/shepherd"));
        nspawn.arg(bind("bind-ro", self.programs.join("collieclaw"), "/usr/bin/collieclaw"));
        for of in ["system", "user"] {
            let unit = self.units.join(of).join("shepherdd.service");
            nspawn.arg(bind("bind-ro", unit, &format!("/etc/systemd/{of}/shepherdd.service")));
        }
        let pam_configuration = self.pam_configuration.clone();
        nspawn.arg(bind("bind-ro", pam_configuration, "/usr/share/pam-configs/shepherd"));
        nspawn.arg(bind("bind", self.folder.path().join("data"), "/var/lib/shepherd"));
        nspawn.arg(bind("bind", self.folder.path().join("policy"), "/etc/shepherd"));
        // The container uses cgroup v2, even if this machine still has v1 hierarchies.
        nspawn.env("SYSTEMD_NSPAWN_UNIFIED_HIERARCHY", "1");
        let nspawn = nspawn.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut container = TestContainer { nspawn, leader: 0, _groups: groups };
        container.wait_until_up()?;
        Ok(container)
    }
}

/// Returns whether the root file system of the container has been built.
pub(crate) fn has_container(workspace: &CargoWorkspace) -> bool {
    release_name().is_ok_and(|suite| root_folder(workspace, &suite).exists())
}

/// Returns the code name of this machine's release.
fn release_name() -> Result<String> {
    let release = fs::read_to_string("/etc/os-release").context("/etc/os-release")?;
    let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let suite = suite
        .context("this release has no code name; the container can be built only on Debian and Ubuntu")?;
    Ok(suite.to_owned())
}

fn root_folder(workspace: &CargoWorkspace, suite: &str) -> PathBuf {
    workspace.target.join(format!("container-{suite}-{CONTAINER_VERSION}"))
}

/// Builds the root file system of the container, with the same release as this machine, so that our programs run in it.
/// Does nothing if it is there already.
pub(crate) fn build_container(workspace: &CargoWorkspace) -> Result<PathBuf> {
    let suite = release_name()?;
    let root = root_folder(workspace, &suite);
    if !root.exists() {
        let unfinished =
            workspace.target.join(format!("container-{suite}-{CONTAINER_VERSION}.{}", std::process::id()));
        println!("building {} (once, about two minutes)", workspace.relative(&root).display());
        run_to_end(
            Command::new("mmdebstrap")
                .args(["--quiet", "--variant=minbase", &format!("--include={PACKAGES}")])
                .arg("--customize-hook=chroot \"$1\" useradd --uid 1000 --create-home kid")
                .args([suite.as_ref(), unfinished.as_os_str()]),
        )?;
        fs::rename(&unfinished, &root).context("could not rename the new root file system")?;
    }
    Ok(root)
}

/// The cgroups of the container, one in each hierarchy that tracks processes.
struct ContainerCgroups(Vec<PathBuf>);

impl ContainerCgroups {
    fn make() -> Result<Self> {
        /// Makes the name of each group unique, because some kernels also kill processes that are cloned into a group
        /// after the group was killed.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("shepherd-units-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mounts = fs::read_to_string("/proc/self/mounts")?;
        let mut groups = Self(Vec::new());
        for line in mounts.lines() {
            let [_, point, kind, options, ..] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
            if kind == "cgroup2" || (kind == "cgroup" && options.contains("name=systemd")) {
                let group = Path::new(point).join(&name);
                fs::create_dir_all(&group).with_context(|| group.display().to_string())?;
                groups.0.push(group);
            }
        }
        ensure!(!groups.0.is_empty(), "no cgroup file system is mounted");
        Ok(groups)
    }

    /// Returns a script that joins the groups, hides this machine's `/run` from the container's tools, and executes its
    /// arguments.
    fn script(&self) -> String {
        let join = |group: &PathBuf| format!("echo $$ > '{}/cgroup.procs' && ", group.display());
        let joins: String = self.0.iter().map(join).collect();
        format!("{joins}mount -t tmpfs none /run && exec \"$@\"")
    }
}

impl Drop for ContainerCgroups {
    /// Kills the remaining processes, waits for their end, and removes the groups.
    fn drop(&mut self) {
        for group in &self.0 {
            let _ = fs::write(group.join("cgroup.kill"), "1");
        }
        let is_populated = |group: &PathBuf| {
            fs::read_to_string(group.join("cgroup.events")).is_ok_and(|events| events.contains("populated 1"))
        };
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.0.iter().any(is_populated) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        for group in &self.0 {
            let _ = Command::new("find")
                .arg(group)
                .args(["-depth", "-type", "d", "-exec", "rmdir", "{}", ";"])
                .output();
        }
    }
}

/// A booted container. Dropping it kills all its processes, like a power cut.
pub(super) struct TestContainer {
    nspawn: Child,
    leader: u32,
    /// The cgroups, which are removed after the last process has ended.
    _groups: ContainerCgroups,
}

impl TestContainer {
    fn wait_until_up(&mut self) -> Result<()> {
        let deadline = Instant::now() + BOOT_TIMEOUT;
        while Instant::now() < deadline {
            if let Some(status) = self.nspawn.try_wait()? {
                bail!("the container exited during the boot ({status})");
            }
            self.leader = first_child(self.nspawn.id()).unwrap_or(0);
            if self.leader != 0
                && self.run(&["systemctl", "is-system-running", "--wait"]).is_ok_and(|done| is_up(&done))
            {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        bail!("the container was not up within {BOOT_TIMEOUT:?}")
    }

    /// Runs a command in the container, as root.
    pub(super) fn run(&self, command: &[&str]) -> Result<Output> {
        let mut enter = Command::new("nsenter");
        enter.args([
            "--target",
            &self.leader.to_string(),
            "--mount",
            "--uts",
            "--ipc",
            "--net",
            "--pid",
            "--cgroup",
            "--",
        ]);
        enter
            .args(["env", "-i", "PATH=/usr/bin:/bin:/usr/sbin:/sbin", "LANG=C.UTF-8", "HOME=/root"])
            .args(command);
        enter.stdin(Stdio::null()).output().context("nsenter")
    }

    /// Starts the child's own service manager, as a login would.
    pub(super) fn start_child_user_manager(&self) -> Result<()> {
        // In a container there is no login session that the service manager could belong to.
        self.write(
            "/run/systemd/system/user@.service.d/no-login.conf",
            "[Service]\nPAMName=\nEnvironment=XDG_RUNTIME_DIR=/run/user/%i\n",
        )?;
        for command in [&["systemctl", "daemon-reload"][..], &["systemctl", "start", CHILD_USER_MANAGER]] {
            let done = self.run(command)?;
            ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }
        Ok(())
    }

    pub(super) fn read(&self, path: &str) -> Result<String> {
        let done = self.run(&["cat", path])?;
        ensure!(done.status.success(), "{path}: {}", String::from_utf8_lossy(&done.stderr));
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.run(&["test", "-e", path]).is_ok_and(|done| done.status.success())
    }

    pub(super) fn write(&self, path: &str, text: &str) -> Result<()> {
        let path = self.host_path(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, text).with_context(|| path.display().to_string())
    }

    pub(super) fn remove(&self, path: &str) -> Result<()> {
        fs::remove_file(self.host_path(path)).with_context(|| path.to_owned())
    }

    /// Returns the path on this machine of a path inside the container.
    fn host_path(&self, path: &str) -> PathBuf {
        path_in_root(Path::new(&format!("/proc/{}/root", self.leader)), path)
    }
}

impl Drop for TestContainer {
    fn drop(&mut self) {
        // When the first process of the container ends, the kernel kills all others.
        if self.leader != 0 {
            let _ = Command::new("kill").args(["-9", &self.leader.to_string()]).status();
        }
        let _ = self.nspawn.kill();
        let _ = self.nspawn.wait();
    }
}

/// Returns whether the system is up. `degraded` counts, because some services fail without hardware.
fn is_up(done: &Output) -> bool {
    matches!(String::from_utf8_lossy(&done.stdout).trim(), "running" | "degraded")
}

/// Returns the container's first process, which is the only child of systemd-nspawn.
fn first_child(parent: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    let child: u32 = children.split_whitespace().next()?.parse().ok()?;
    let status = fs::read_to_string(format!("/proc/{child}/status")).ok()?;
    let number_inside =
        status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().last()?;
    (number_inside == "1").then_some(child)
}
