//! The policy as a file: read, checked and applied as a whole, or refused as a whole (S7.3).

use std::fs::Permissions;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use shepherd_core::policy::Policy;
use shepherd_store::{ExposedPath, ExposedTo};

use crate::policy_copy::PolicyCopy;

/// The longest policy that is read. A thousand complete entries are a tenth of it.
pub(crate) const MAX_POLICY_BYTES: u64 = 4 * 1024 * 1024;

/// The mode of a new policy file, as the package installs it: everybody may read and check the rules.
pub(crate) const POLICY_MODE: u32 = 0o644;

/// A policy that was loaded and checked.
#[derive(Debug)]
pub(crate) struct PolicyWithSource {
    pub(crate) policy: Policy,
    pub(crate) source: PolicySource,
}

/// The text of a policy.
#[derive(Debug)]
pub(crate) struct PolicySource {
    pub(crate) text: String,
    pub(crate) digest: String,
}

/// A policy that was refused.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{sentence}")]
pub(crate) struct PolicyRejection {
    pub(crate) sentence: String,
    /// The faults, as they would be shown. Of very many, only the first ones.
    pub(crate) faults: Vec<String>,
    /// The number of all faults.
    pub(crate) fault_count: usize,
}

/// A policy file that doesn't apply.
#[derive(Clone, Debug)]
pub(crate) struct RejectedPolicyFile {
    pub(crate) rejection: PolicyRejection,
    /// The time since which the file doesn't apply.
    pub(crate) since: Timestamp,
}

/// The policy of a daemon that starts.
pub(crate) struct StartPolicy {
    /// The policy that applies; `None` if there is no valid one.
    pub(crate) applies: Option<PolicyWithSource>,
    pub(crate) rejected: Option<RejectedPolicyFile>,
    /// The reason why the copy of the policy can't be written or used.
    pub(crate) copy_fault: Option<String>,
}

impl PolicyRejection {
    /// Creates a refusal with a single fault.
    pub(crate) fn from_sentence(sentence: String) -> Self {
        Self { faults: vec![sentence.clone()], fault_count: 1, sentence }
    }
}

/// Reads and checks a file.
pub(crate) fn read_file(path: &Path) -> Result<PolicyWithSource, PolicyRejection> {
    let bytes = read_bounded(path, MAX_POLICY_BYTES).map_err(|error| {
        PolicyRejection::from_sentence(format!("could not read {}: {error}", path.display()))
    })?;
    check_text(&path.display().to_string(), &bytes)
}

/// Reads and checks a file on a thread of its own, while the caller does other work.
pub(crate) fn read_in_background(path: &Path) -> impl FnOnce() -> Result<PolicyWithSource, PolicyRejection> {
    let (here, there) = (path.to_owned(), path.to_owned());
    let reading = std::thread::Builder::new().name("policy".to_owned()).spawn(move || read_file(&there));
    move || match reading.map(std::thread::JoinHandle::join) {
        Ok(Ok(result)) => result,
        // No thread could be started, or it panicked.
        Ok(Err(_)) | Err(_) => read_file(&here),
    }
}

/// Chooses the policy of a daemon that starts: the file, or the copy of the last valid policy if the file is refused.
pub(crate) fn choose_start_policy(
    file: Result<PolicyWithSource, PolicyRejection>,
    copy: &PolicyCopy,
    now: Timestamp,
) -> StartPolicy {
    match file {
        Ok(loaded) => {
            let copy_fault = copy.keep(&loaded.source, now).err().map(|error| error.to_string());
            StartPolicy { applies: Some(loaded), rejected: None, copy_fault }
        }
        Err(rejection) => {
            let (applies, copy_fault) = match copy.load() {
                Ok(applies) => (applies, None),
                Err(error) => (None, Some(error.to_string())),
            };
            let rejected = RejectedPolicyFile { rejection, since: copy.record_rejection(now) };
            StartPolicy { applies, rejected: Some(rejected), copy_fault }
        }
    }
}

/// Reads a regular file that has at most this number of bytes.
pub(crate) fn read_bounded(path: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    // Opening a pipe would wait for its writer, and reading a device may never end.
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let file = std::fs::OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(std::io::Error::other(format!("it is longer than {limit} bytes")));
    }
    Ok(bytes)
}

/// Checks a text.
pub(crate) fn check_text(name: &str, bytes: &[u8]) -> Result<PolicyWithSource, PolicyRejection> {
    let loaded = shepherd_config::load_bytes(name, bytes).map_err(|report| {
        let fault_count = report.faults().len() + report.omitted_count();
        let first = report.faults().first().map(|fault| report.source().position(fault.span().start).line);
        let place = match (first, fault_count) {
            (None, _) => String::new(),
            (Some(line), 1) => format!(", in line {line}"),
            (Some(line), _) => format!(", the first in line {line}"),
        };
        let noun = if fault_count == 1 { "mistake" } else { "mistakes" };
        let sentence = format!("{name} has {fault_count} {noun}{place}");
        PolicyRejection { sentence, faults: report.lines(), fault_count }
    })?;
    // A text that could be loaded is UTF-8.
    let text = String::from_utf8_lossy(bytes).into_owned();
    let digest = HEXLOWER.encode(&Sha256::digest(bytes));
    Ok(PolicyWithSource { policy: loaded.policy, source: PolicySource { text, digest } })
}

/// Returns sentences about other users who can change the policy of a daemon that runs as root.
#[must_use]
pub fn policy_exposure_warnings(path: &Path) -> Vec<String> {
    if !rustix::process::geteuid().is_root() {
        return Vec::new();
    }
    // A path that can't be inspected can't be read, which is reported elsewhere.
    let exposed = shepherd_store::find_exposed_for_file(path, 0).unwrap_or_default();
    let sentence = |ExposedPath { path, to }: ExposedPath| {
        let path = path.display();
        match to {
            ExposedTo::Owner(owner) => {
                format!("{path} belongs to user {owner}, who can change the policy; run `chown root {path}`")
            }
            ExposedTo::Mode(mode) => {
                format!(
                    "{path} has mode {mode:04o}, so other users can change the policy; run `chmod go-w {path}`"
                )
            }
        }
    };
    exposed.into_iter().map(sentence).collect()
}

/// Replaces the file, so that a crash leaves the old or the new one. The new file has the owner and mode of the old one,
/// or `new_mode` if there is no old one.
pub(crate) fn replace_file(path: &Path, text: &str, new_mode: u32) -> std::io::Result<()> {
    // For a symlink, the target file changes.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
    let mut file = tempfile::NamedTempFile::new_in(&folder)?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    file.as_file().sync_all()?;
    let permissions = match std::fs::metadata(&path) {
        Ok(known) => {
            let made = file.as_file().metadata()?;
            if (known.uid(), known.gid()) != (made.uid(), made.gid()) {
                std::os::unix::fs::fchown(file.as_file(), Some(known.uid()), Some(known.gid()))?;
            }
            known.permissions()
        }
        Err(_) => Permissions::from_mode(new_mode),
    };
    file.as_file().set_permissions(permissions)?;
    file.persist(path)?;
    std::fs::File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    #[test]
    fn a_replaced_policy_keeps_its_owner_and_place() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("family.toml"), folder.path().join("policy.toml"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        if rustix::process::geteuid().is_root() {
            chown(&file, Some(65_001), Some(65_002)).unwrap();
        }
        symlink("family.toml", &link).unwrap();
        let of = || fs::metadata(&file).map(|known| (known.mode(), known.uid(), known.gid())).unwrap();
        let before = of();
        replace_file(&link, "new", POLICY_MODE).unwrap();
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), of()), ("new", before));
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "and nothing else is left");
    }

    #[test]
    fn a_new_policy_file_has_the_mode_of_an_installed_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.toml");
        replace_file(&file, "new", POLICY_MODE).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o644);
    }
}
