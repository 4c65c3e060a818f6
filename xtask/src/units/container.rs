//! A small Debian with systemd as its first process: built once, booted in about a second, and never changed, for
//! what a boot writes goes to memory.

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
const PACKAGES: &str = "systemd,systemd-sysv,dbus,procps,util-linux,passwd";

/// The service manager of `kid`, by the number that the account is made with.
pub(super) const CHILD_USER_MANAGER: &str = "user@1000.service";

/// A container on a busy machine.
const BOOT_TIMEOUT: Duration = Duration::from_secs(60);

/// Folders that are mounted into each container.
pub(super) struct ContainerSetup {
    root: PathBuf,
    programs: PathBuf,
    units: PathBuf,
    /// Data and policy, which outlive a boot.
    folder: TempDir,
}

impl ContainerSetup {
    pub(super) fn prepare(workspace: &CargoWorkspace) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("shepherd-units-").tempdir()?;
        for name in ["data", "policy"] {
            fs::create_dir(folder.path().join(name))?;
        }
        Ok(Self {
            root: build_root(workspace)?,
            programs: workspace.target.join("debug"),
            units: workspace.root.join("packaging/systemd"),
            folder,
        })
    }

    /// Boots, and returns when systemd says that the system is up.
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
        // What every kernel lets everybody do, and this container's maker has not heard of.
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
        nspawn.arg(bind("bind", self.folder.path().join("data"), "/var/lib/shepherd"));
        nspawn.arg(bind("bind", self.folder.path().join("policy"), "/etc/shepherd"));
        // The kernel's one hierarchy, as on a machine of today, also where this machine still has the old ones.
        nspawn.env("SYSTEMD_NSPAWN_UNIFIED_HIERARCHY", "1");
        let nspawn = nspawn.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut container = TestContainer { nspawn, leader: 0, _groups: groups };
        container.wait_until_up()?;
        Ok(container)
    }
}

/// The root file system of the container, of the same release as this machine, whose programs run in it.
fn build_root(workspace: &CargoWorkspace) -> Result<PathBuf> {
    let release = fs::read_to_string("/etc/os-release").context("/etc/os-release")?;
    let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let suite =
        suite.context("this release has no code name; the container is only known for Debian and Ubuntu")?;
    let root = workspace.target.join(format!("container-{suite}"));
    if !root.exists() {
        let unfinished = workspace.target.join(format!("container-{suite}.{}", std::process::id()));
        println!("building {} (once, about two minutes)", workspace.relative(&root).display());
        run_to_end(
            Command::new("mmdebstrap")
                .args(["--quiet", "--variant=minbase", &format!("--include={PACKAGES}")])
                .arg("--customize-hook=chroot \"$1\" useradd --uid 1000 --create-home kid")
                .args([suite.as_ref(), unfinished.as_os_str()]),
        )?;
        fs::rename(&unfinished, &root).context("putting the new root in its place")?;
    }
    Ok(root)
}

/// The cgroups that the container gets, one in each hierarchy that knows process trees.
struct ContainerCgroups(Vec<PathBuf>);

impl ContainerCgroups {
    fn make() -> Result<Self> {
        /// A group in which everybody was killed once is not used again: a kernel may kill whoever is cloned into
        /// it from another.
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

    /// Goes into the groups, hides this machine's `/run` from the container's tools, and becomes what it is told.
    fn script(&self) -> String {
        let join = |group: &PathBuf| format!("echo $$ > '{}/cgroup.procs' && ", group.display());
        let joins: String = self.0.iter().map(join).collect();
        format!("{joins}mount -t tmpfs none /run && exec \"$@\"")
    }
}

impl Drop for ContainerCgroups {
    /// Kills whoever is left, waits until nobody is, and removes them.
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

/// A booted container. Dropping it is pulling its plug.
pub(super) struct TestContainer {
    nspawn: Child,
    leader: u32,
    /// Removed when everybody is gone.
    _groups: ContainerCgroups,
}

impl TestContainer {
    fn wait_until_up(&mut self) -> Result<()> {
        let deadline = Instant::now() + BOOT_TIMEOUT;
        while Instant::now() < deadline {
            if let Some(status) = self.nspawn.try_wait()? {
                bail!("the container ended at once ({status})");
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

    /// Runs a command inside, as root.
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
        // A container has no login of which it could be a part.
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
        // The first process takes all others of the container with it.
        if self.leader != 0 {
            let _ = Command::new("kill").args(["-9", &self.leader.to_string()]).status();
        }
        let _ = self.nspawn.kill();
        let _ = self.nspawn.wait();
    }
}

/// `degraded` is up as well: a container has no hardware for some of the services.
fn is_up(done: &Output) -> bool {
    matches!(String::from_utf8_lossy(&done.stdout).trim(), "running" | "degraded")
}

/// The container's first process, which is the only child of the one that made it.
fn first_child(parent: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    let child: u32 = children.split_whitespace().next()?.parse().ok()?;
    let status = fs::read_to_string(format!("/proc/{child}/status")).ok()?;
    let number_inside =
        status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().last()?;
    (number_inside == "1").then_some(child)
}
