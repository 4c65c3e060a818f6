//! A running guest, and the ways to use it: as one of its accounts, over ssh.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use super::image::GuestImage;

/// The guest's processor is emulated: a boot takes about a minute on a busy machine.
const BOOT_TIMEOUT: Duration = Duration::from_secs(300);

/// A line that prints the id of the boot.
const READ_BOOT_ID: &str = "cat /proc/sys/kernel/random/boot_id";

/// The file for the output of the console.
const CONSOLE: &str = "console.log";

/// A virtual machine. Dropping it is pulling its plug; its disk stays as it was before the boot.
pub(super) struct RunningGuest {
    emulator: RefCell<Child>,
    port: u16,
    key: PathBuf,
    /// Holds the log of the console, and the sockets of the shared ssh connections, one for each account.
    folder: TempDir,
}

impl RunningGuest {
    pub(super) fn boot(image: &GuestImage) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("shepherd-vm-").tempdir()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let console = folder.path().join(CONSOLE);
        let mut command = Command::new("qemu-system-x86_64");
        command.args(["-machine", "q35", "-cpu", "max", "-smp", "2", "-m", "1024"]);
        // Without KVM: test machines are often virtual themselves and can't nest.
        command.args(["-accel", "tcg,thread=multi", "-nodefaults", "-display", "none"]);
        command.arg("-kernel").arg(&image.kernel).arg("-initrd").arg(&image.initrd);
        command.args(["-append", "root=/dev/vda rw console=ttyS0 quiet", "-snapshot"]);
        command.arg("-drive").arg(format!("file={},if=virtio,format=raw,cache=unsafe", image.disk.display()));
        command.args(["-netdev", &format!("user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22")]);
        command.args(["-device", "virtio-net-pci,netdev=net", "-device", "virtio-rng-pci"]);
        command.arg("-serial").arg(format!("file:{}", console.display()));
        let emulator = command.stdin(Stdio::null()).spawn().context("could not start qemu-system-x86_64")?;
        let guest = Self { emulator: RefCell::new(emulator), port, key: image.key.clone(), folder };
        guest.wait_for_boot(None)?;
        Ok(guest)
    }

    /// Reboots, as a parent would.
    pub(super) fn reboot(&self) -> Result<()> {
        let before = self.root(READ_BOOT_ID)?;
        let _ = self.run_as("root", "systemctl reboot");
        self.wait_for_boot(Some(&before))
    }

    /// Waits until the guest answers and its services run, in another boot than `before`.
    fn wait_for_boot(&self, before: Option<&str>) -> Result<()> {
        let deadline = Instant::now() + BOOT_TIMEOUT;
        while Instant::now() < deadline {
            if let Some(status) = self.emulator.borrow_mut().try_wait()? {
                bail!("the virtual machine ended ({status})");
            }
            if self.root(READ_BOOT_ID).is_ok_and(|boot| before != Some(boot.as_str())) {
                self.root("systemctl is-system-running --wait || true")?;
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        let console = std::fs::read_to_string(self.folder.path().join(CONSOLE)).unwrap_or_default();
        bail!("the guest was not up within {BOOT_TIMEOUT:?}; its console:\n{console}")
    }

    /// Runs a line in the shell of an account.
    pub(super) fn run_as(&self, account: &str, line: &str) -> Result<Output> {
        let mut ssh = self.ssh(account);
        ssh.arg(line).stdin(Stdio::null()).output().context("could not start ssh")
    }

    /// Runs a line at a terminal of an account, and answers its questions in order. Programs that ask for a password
    /// throw away what was typed before the question, so each answer waits for its prompt.
    pub(super) fn type_as(&self, account: &str, line: &str, answers: &[&str]) -> Result<Output> {
        let mut ssh = self.ssh(account);
        let ssh = ssh.args(["-tt", line]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = ssh.spawn().context("could not start ssh")?;
        let mut keyboard = child.stdin.take().context("no standard input")?;
        let mut screen = child.stdout.take().context("no standard output")?;
        let (mut shown, mut answers, mut chunk) = (Vec::new(), answers.iter(), [0; 1024]);
        loop {
            let length = screen.read(&mut chunk)?;
            if length == 0 {
                break;
            }
            shown.extend_from_slice(chunk.get(..length).unwrap_or_default());
            if (shown.ends_with(b": ") || shown.ends_with(b"] "))
                && let Some(answer) = answers.next()
            {
                keyboard.write_all(format!("{answer}\n").as_bytes())?;
            }
        }
        Ok(Output { status: child.wait()?, stdout: shown, stderr: Vec::new() })
    }

    fn ssh(&self, account: &str) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.arg("-i").arg(&self.key).args(["-p", &self.port.to_string(), "-F", "none"]);
        for option in [
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
            "ConnectTimeout=10",
            "ServerAliveInterval=5",
            "ServerAliveCountMax=6",
            "ControlMaster=auto",
            "ControlPersist=60",
        ] {
            ssh.args(["-o", option]);
        }
        ssh.arg("-o").arg(format!("ControlPath={}/%r", self.folder.path().display()));
        ssh.arg(format!("{account}@127.0.0.1"));
        ssh
    }

    /// Runs a line as an account and returns what it printed; a failure is an error.
    pub(super) fn run(&self, account: &str, line: &str) -> Result<String> {
        let done = self.run_as(account, line)?;
        ensure!(
            done.status.success(),
            "`{line}` as {account} failed ({}):\n{}{}",
            done.status,
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr)
        );
        Ok(String::from_utf8_lossy(&done.stdout).trim_end().to_owned())
    }

    pub(super) fn root(&self, line: &str) -> Result<String> {
        self.run("root", line)
    }

    /// Runs `shepherd` as an account and returns its JSON reply.
    pub(super) fn shepherd(&self, account: &str, arguments: &str) -> Result<Value> {
        let text = self.run(account, &format!("shepherd --output json {arguments}"))?;
        serde_json::from_str(&text).with_context(|| format!("`shepherd {arguments}` printed {text}"))
    }

    /// Copies a file to the guest.
    pub(super) fn upload(&self, from: &Path, to: &str) -> Result<()> {
        let file = std::fs::File::open(from).with_context(|| from.display().to_string())?;
        let status = self.ssh("root").arg(format!("cat > {to}")).stdin(file).status()?;
        ensure!(status.success(), "could not copy {} to the guest ({status})", from.display());
        Ok(())
    }

    /// Writes a text to a file of the guest, as root.
    pub(super) fn write(&self, path: &str, text: &str) -> Result<()> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(text.as_bytes())?;
        self.upload(file.path(), path)
    }

    /// Waits until a line of the shell succeeds.
    pub(super) fn wait_until(&self, what: &str, patience: Duration, line: &str) -> Result<()> {
        let deadline = Instant::now() + patience;
        while !self.run_as("root", line)?.status.success() {
            ensure!(Instant::now() < deadline, "not within {patience:?}: {what}");
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }

    /// Returns the log of the service, for the report of a failure.
    pub(super) fn journal(&self) -> String {
        self.root("journalctl --unit shepherdd --no-pager --lines 60; systemctl status --no-pager shepherdd || true")
            .unwrap_or_else(|error| format!("{error:#}"))
    }
}

impl Drop for RunningGuest {
    fn drop(&mut self) {
        let emulator = self.emulator.get_mut();
        let _ = emulator.kill();
        let _ = emulator.wait();
    }
}
