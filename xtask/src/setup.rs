//! `cargo xtask setup`: installs the programs that the tests need and this machine lacks.
//!
//! To add a program, add a line to one of the lists below.

mod peers;

use std::ffi::OsString;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::located_error::LocatedError;
use crate::units;
use crate::workspace::{CargoWorkspace, describe, run_to_end};

/// The `PATH` of an ordinary user. The unprivileged test run uses it, so a program that is only in root's
/// own `PATH` doesn't count as installed.
pub(crate) const ORDINARY_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// Programs and files from the system's package manager.
const SYSTEM_COMPONENTS: &[SystemComponent] = &[
    program("bash", "bash"),
    program("busybox", "busybox"),
    program("chromium", "chromium"),
    program("curl", "curl"),
    program("dash", "dash"),
    program("dosbox", "dosbox"),
    program("faketime", "faketime"),
    program("foot", "foot"),
    program("git", "git"),
    program("grim", "grim"),
    program("jq", "jq"),
    program("make", "make"),
    program("mmdebstrap", "mmdebstrap"),
    program("mpv", "mpv"),
    program("npm", "npm"),
    program("mke2fs", "e2fsprogs"),
    program("openssl", "openssl"),
    program("pdftotext", "poppler-utils"),
    program("python3", "python3"),
    program("qemu-system-x86_64", "qemu-system-x86"),
    program("setpriv", "util-linux"),
    program("setsid", "util-linux"),
    program("sha256sum", "coreutils"),
    program("socat", "socat"),
    program("ssh", "openssh-client"),
    program("strace", "strace"),
    program("sway", "sway"),
    program("systemd-analyze", "systemd"),
    program("systemd-nspawn", "systemd-container"),
    program("tmux", "tmux"),
    file("/usr/games/tuxmath", "tuxmath"),
    program("tuxpaint", "tuxpaint"),
    program("unshare", "util-linux"),
    program("Xwayland", "xwayland"),
    file("/usr/share/doc/python3-pytest", "python3-pytest"),
    file("/usr/share/doc/python3-venv", "python3-venv"),
    file("/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf", "fonts-dejavu-core"),
    file("/usr/share/zoneinfo/Europe/London", "tzdata"),
];

/// Programs from the Rust registry, with the version to install if there is none.
const CARGO_TOOLS: &[CargoTool] =
    &[CargoTool { program: "cargo-nextest", package: "cargo-nextest", version: "0.9.143" }];

/// Components that come with the toolchain, except in its minimal profile.
const TOOLCHAIN: &[(&str, &str)] = &[("cargo-fmt", "rustfmt"), ("cargo-clippy", "clippy")];

/// The place in the errors of this module.
const MACHINE: &str = "this machine";

/// A program or file that the tests need, and the Debian package that contains it.
#[derive(Debug, PartialEq, Eq)]
struct SystemComponent {
    found_by: ComponentProbe,
    package: &'static str,
}

#[derive(Debug, PartialEq, Eq)]
enum ComponentProbe {
    Program(&'static str),
    File(&'static str),
}

#[derive(Debug, PartialEq, Eq)]
struct CargoTool {
    program: &'static str,
    package: &'static str,
    version: &'static str,
}

const fn program(name: &'static str, package: &'static str) -> SystemComponent {
    SystemComponent { found_by: ComponentProbe::Program(name), package }
}

const fn file(path: &'static str, package: &'static str) -> SystemComponent {
    SystemComponent { found_by: ComponentProbe::File(path), package }
}

/// The components that this machine lacks, by their source.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct MissingTools {
    packages: Vec<&'static str>,
    tools: Vec<&'static CargoTool>,
    toolchain: Vec<&'static str>,
    peers: Vec<&'static peers::PeerProgram>,
}

impl MissingTools {
    /// Finds the missing components by reading a few directories, without starting a program.
    pub(crate) fn detect() -> Self {
        let directories = search_path();
        let mut packages: Vec<_> = SYSTEM_COMPONENTS
            .iter()
            .filter(|component| match component.found_by {
                ComponentProbe::Program(name) => find_program(name, &directories).is_none(),
                ComponentProbe::File(path) => !Path::new(path).exists(),
            })
            .map(|component| component.package)
            .collect();
        packages.sort_unstable();
        packages.dedup();
        let tools = CARGO_TOOLS.iter().filter(|tool| cargo_tool(tool.program).is_none()).collect();
        Self { packages, tools, toolchain: missing_toolchain(), peers: peers::missing() }
    }

    /// Returns whether no component is missing.
    pub(crate) fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    /// Returns the names of all missing components, for a message.
    pub(crate) fn names(&self) -> String {
        let tools = self.tools.iter().map(|tool| tool.package);
        let peers = self.peers.iter().map(|peer| peer.package);
        let names = self.packages.iter().chain(&self.toolchain).copied().chain(tools).chain(peers);
        names.collect::<Vec<_>>().join(", ")
    }
}

/// Returns whether nothing has to be installed.
pub(crate) fn is_complete(workspace: &CargoWorkspace) -> bool {
    MissingTools::detect().is_empty() && (!uses_container() || units::has_container(workspace))
}

/// Installs everything that is missing, and prints what it does.
pub(crate) fn run(workspace: &CargoWorkspace) -> Result<()> {
    if is_complete(workspace) {
        println!("nothing is missing");
        return Ok(());
    }
    install_tools()?;
    if uses_container() {
        units::build_container(workspace)?;
    }
    Ok(())
}

/// Installs the missing programs.
pub(crate) fn install_tools() -> Result<()> {
    install_toolchain()?;
    let missing = MissingTools::detect();
    if missing.is_empty() { Ok(()) } else { install_missing(&missing) }
}

/// Returns whether the step `units` can run here: only root can boot a container, and it is made of Debian packages.
fn uses_container() -> bool {
    is_root() && is_debian()
}

/// Installs the missing parts of the toolchain.
pub(crate) fn install_toolchain() -> Result<(), LocatedError> {
    let missing = missing_toolchain();
    if missing.is_empty() {
        return Ok(());
    }
    install(
        Command::new("rustup").args(["component", "add"]).args(&missing),
        "install these components of the toolchain from where you got the toolchain",
    )
}

fn missing_toolchain() -> Vec<&'static str> {
    if std::env::var_os("CARGO").is_none() {
        return Vec::new();
    }
    let missing = TOOLCHAIN.iter().filter(|(program, _)| toolchain_program(program).is_none());
    missing.map(|(_, component)| *component).collect()
}

/// Finds a program of the toolchain that cargo belongs to.
pub(crate) fn toolchain_program(name: &str) -> Option<PathBuf> {
    let cargo = PathBuf::from(std::env::var_os("CARGO")?);
    find_program(name, &[cargo.parent()?.to_owned()])
}

fn install_missing(missing: &MissingTools) -> Result<()> {
    println!("missing: {}", missing.names());
    if !missing.packages.is_empty() {
        install_packages(&missing.packages)?;
    }
    for tool in &missing.tools {
        install(
            Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
                .args(["install", "--locked"])
                .arg(format!("{}@{}", tool.package, tool.version)),
            "the Rust registry must be reachable; the output above shows the error",
        )?;
    }
    if !missing.peers.is_empty() {
        for mut installer in peers::install_commands() {
            install(
                &mut installer,
                "the registries of npm and Python must be reachable; the output above shows the error",
            )?;
        }
    }
    let left = MissingTools::detect();
    if !left.is_empty() {
        let fault = format!("still missing after the installation: {}", left.names());
        return Err(LocatedError::new(
            MACHINE,
            fault,
            "the output of the package manager above shows the error",
        )
        .into());
    }
    println!("installed: {}", missing.names());
    Ok(())
}

fn install_packages(packages: &[&str]) -> Result<(), LocatedError> {
    let list = packages.join(" ");
    if !is_debian() {
        return Err(LocatedError::new(
            MACHINE,
            format!(
                "this system is not Debian or Ubuntu, so packages can't be installed automatically; missing: {list}"
            ),
            "install these packages (names as in Debian) by hand, then try again",
        ));
    }
    let by_hand = format!("run `sudo apt-get install {list}` yourself, then try again");
    if !is_root() {
        println!("installing packages needs root: trying sudo without a password");
        let permitted =
            Command::new("sudo").args(["-n", "true"]).output().is_ok_and(|output| output.status.success());
        if !permitted {
            let fault = format!("not root, and `sudo -n` is not permitted; missing: {list}");
            return Err(LocatedError::new(MACHINE, fault, by_hand));
        }
    }
    install(apt_get().arg("update"), &by_hand)?;
    install(apt_get().args(["install", "-y", "--no-install-recommends"]).args(packages), &by_hand)
}

/// Returns an `apt-get` command that asks no questions and waits for the lock of another one.
fn apt_get() -> Command {
    let mut command = if is_root() {
        Command::new("env")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "env"]);
        sudo
    };
    command.args([
        "DEBIAN_FRONTEND=noninteractive",
        "apt-get",
        "-o",
        "DPkg::Lock::Timeout=300",
        "-o",
        "Dpkg::Use-Pty=0",
        "-qq",
    ]);
    command
}

fn install(command: &mut Command, cure: &str) -> Result<(), LocatedError> {
    println!("$ {}", describe(command));
    run_to_end(command).map_err(|error| LocatedError::new(MACHINE, format!("{error:#}"), cure))
}

/// Returns whether this process runs as root.
pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

fn is_debian() -> bool {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    release
        .lines()
        .filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")))
        .flat_map(|value| value.trim_matches('"').split(' '))
        .any(|id| id == "debian" || id == "ubuntu")
}

/// Finds the executable of a cargo subcommand in the same places as cargo does.
pub(crate) fn cargo_tool(program: &str) -> Option<PathBuf> {
    let mut directories: Vec<_> = cargo_home().map(|home| home.join("bin")).into_iter().collect();
    directories.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    find_program(program, &directories)
}

/// Returns whether `cargo deny fetch db` has been run on this machine.
pub(crate) fn has_advisory_database() -> bool {
    cargo_home().is_some_and(|home| {
        std::fs::read_dir(home.join("advisory-dbs")).is_ok_and(|mut entries| entries.next().is_some())
    })
}

fn cargo_home() -> Option<PathBuf> {
    let stated = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    stated.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")))
}

fn search_path() -> Vec<PathBuf> {
    let own = std::env::var_os("PATH").filter(|_| !is_root());
    std::env::split_paths(&own.unwrap_or_else(|| OsString::from(ORDINARY_PATH))).collect()
}

fn find_program(name: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    directories.iter().map(|directory| directory.join(name)).find(|path| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_executable_file_counts_as_a_program() {
        let directory = tempfile::tempdir().unwrap();
        let here = [directory.path().to_owned()];
        let path = directory.path().join("tool");
        assert_eq!(find_program("tool", &here), None);
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        assert_eq!(find_program("tool", &here), None);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(find_program("tool", &here), Some(path));
    }

    #[test]
    fn everything_missing_is_named() {
        let missing = MissingTools {
            packages: vec!["jq", "tmux"],
            tools: CARGO_TOOLS.iter().collect(),
            toolchain: vec!["clippy"],
            peers: peers::NPM_PROGRAMS.iter().take(1).collect(),
        };
        assert!(!missing.is_empty());
        assert_eq!(missing.names(), "jq, tmux, clippy, cargo-nextest, @copilotkit/aimock@1.43.0");
        assert!(MissingTools::default().is_empty());
    }
}
