//! The disk of a guest: a small Debian from the package registries, built once and never changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::DebianRelease;
use crate::workspace::{CargoWorkspace, run_to_end};

/// An ordinary installation without a desktop: a service manager with logins, a kernel, and what the checks use.
const PACKAGES: &str = "adduser,apt,ca-certificates,dbus,dbus-user-session,debconf,e2fsprogs,initramfs-tools,iproute2,\
     kmod,libpam-systemd,linux-image-cloud-amd64,login,openssh-server,passwd,procps,python3-minimal,sudo,systemd,\
     systemd-sysv,tzdata,udev,util-linux";

/// The account of the parent, who may use `sudo`.
pub(super) const PARENT: &str = "mama";

/// The files that a guest boots from.
pub(super) struct GuestImage {
    pub(super) disk: PathBuf,
    pub(super) kernel: PathBuf,
    pub(super) initrd: PathBuf,
    /// The key that every account of the guest accepts.
    pub(super) key: PathBuf,
}

impl GuestImage {
    /// Builds the disk, or uses the one that was built before.
    pub(super) fn prepare(workspace: &CargoWorkspace, release: DebianRelease) -> Result<Self> {
        let folder = workspace.target.join("vm").join(release.name());
        let image = Self {
            disk: folder.join("disk.ext4"),
            kernel: folder.join("vmlinuz"),
            initrd: folder.join("initrd.img"),
            key: folder.join("key"),
        };
        if !image.disk.exists() {
            let unfinished = folder.with_extension(format!("{}", std::process::id()));
            println!("  building {} (once, about three minutes)", workspace.relative(&folder).display());
            fs::create_dir_all(&unfinished)?;
            build(&unfinished, release)?;
            fs::rename(&unfinished, &folder).context("could not move the new guest to its place")?;
        }
        Ok(image)
    }
}

fn build(folder: &Path, release: DebianRelease) -> Result<()> {
    let root = folder.join("root");
    let key = folder.join("key");
    run_to_end(
        Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "guest", "-f"]).arg(&key),
    )?;
    run_to_end(
        Command::new("mmdebstrap")
            .args(["--quiet", "--variant=minbase", &format!("--include={PACKAGES}")])
            .args([release.suite().as_ref(), root.as_os_str()]),
    )?;
    configure(&root, &fs::read_to_string(key.with_extension("pub"))?)?;
    let boot = |prefix: &str| find_boot_file(&root, prefix);
    fs::copy(boot("vmlinuz-")?, folder.join("vmlinuz"))?;
    fs::copy(boot("initrd.img-")?, folder.join("initrd.img"))?;
    run_to_end(
        Command::new("mke2fs")
            .args(["-q", "-t", "ext4", "-d"])
            .arg(&root)
            .arg(folder.join("disk.ext4"))
            .arg("3G"),
    )?;
    fs::remove_dir_all(&root).context("could not remove the unpacked guest")
}

fn configure(root: &Path, key: &str) -> Result<()> {
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap_or(root))?;
        fs::write(&path, text).with_context(|| path.display().to_string())
    };
    write("etc/hostname", "guest\n")?;
    write("etc/hosts", "127.0.0.1 localhost guest\n")?;
    write("etc/fstab", "/dev/vda / ext4 rw,noatime 0 1\n")?;
    write("etc/systemd/network/80-dhcp.network", "[Match]\nName=e*\n[Network]\nDHCP=ipv4\n")?;
    // Every account is reached with the same key, children included: it stands for sitting down at the machine.
    write("etc/ssh/guest-key", key)?;
    write(
        "etc/ssh/sshd_config.d/guest.conf",
        "AuthorizedKeysFile /etc/ssh/guest-key\nStrictModes no\nUseDNS no\nMaxSessions 50\n",
    )?;
    write("etc/sudoers.d/guest", &format!("{PARENT} ALL=(ALL) NOPASSWD: ALL\n"))?;
    for arguments in [
        &["useradd", "--create-home", "--shell", "/bin/bash", "--groups", "sudo", PARENT][..],
        &["systemctl", "enable", "systemd-networkd", "ssh"],
        &["systemctl", "mask", "e2scrub_reap.service", "apt-daily.timer", "apt-daily-upgrade.timer"],
        &["ln", "-sf", "/usr/share/zoneinfo/Europe/Berlin", "/etc/localtime"],
    ] {
        run_to_end(Command::new("chroot").arg(root).args(arguments))?;
    }
    Ok(())
}

fn find_boot_file(root: &Path, prefix: &str) -> Result<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join("boot"))? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            found.push(entry.path());
        }
    }
    ensure!(found.len() == 1, "expected one {prefix}* in the guest's /boot, found {}", found.len());
    found.pop().context("no such file")
}
