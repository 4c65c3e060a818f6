//! The copy of the last valid policy. It applies if the daemon starts while the policy file has a fault (S7.3).
//!
//! The first line of the copy is a comment that contains a JSON object: the policy file that the copy belongs to, the
//! time at which that file was last valid, and the time since which it doesn't apply.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::policy_source::{
    MAX_POLICY_BYTES, PolicyRejection, PolicySource, PolicyWithSource, check_text, read_bounded, replace_file,
};

/// The start of the first line.
const HEADER_START: &str = "# ";

/// The longest first line. A path has at most 4 KiB, and JSON may write six characters for a byte.
const MAX_HEADER_BYTES: u64 = 32 * 1024;

/// The mode of the copy: only the daemon's user reads it.
const COPY_MODE: u32 = 0o600;

/// The place of the copy, and the policy file that it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct PolicyCopy {
    file: PathBuf,
    policy: PathBuf,
}

/// The first line of the copy.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CopyHeader {
    policy: PathBuf,
    /// The last time that the file was valid. Older versions didn't record it.
    accepted_at: Option<Timestamp>,
    rejected_since: Option<Timestamp>,
}

/// The error for a copy that can't be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CopyWriteError {
    #[error(
        "could not keep a copy of the rules in {}: {error}; if Shepherd starts while the policy file has a mistake, every \
         launch is denied", file.display()
    )]
    NoCopy { file: PathBuf, error: io::Error },
    #[error(
        "could not replace the copy of the rules in {}: {error}; if Shepherd starts while the policy file has a mistake, \
         older rules apply", file.display()
    )]
    OldCopy { file: PathBuf, error: io::Error },
}

/// The help for a copy that can't be used: the daemon needs no copy of a valid file.
const CURE: &str = "; correct the policy file, then run `sudo shepherd reload`";

/// The error for a copy that can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CopyLoadError {
    #[error("could not read the copy of the old rules {}: {error}{CURE}", file.display())]
    Unreadable { file: PathBuf, error: io::Error },
    #[error("could not use the copy of the old rules {}: its first line names no policy file{CURE}", file.display())]
    NoHeader { file: PathBuf },
    #[error("could not use the copy of the old rules {}: it belongs to {}{CURE}", file.display(), policy.display())]
    OtherPolicy { file: PathBuf, policy: PathBuf },
    #[error("could not use the copy of the old rules: {0}{CURE}")]
    Rejected(PolicyRejection),
}

impl PolicyCopy {
    /// Names the copy of a policy file in the daemon's data folder.
    pub(crate) fn new(data: &Path, policy: &Path) -> Self {
        let policy = std::path::absolute(policy).unwrap_or_else(|_| policy.to_owned());
        Self { file: data.join("last-valid-policy.toml"), policy }
    }

    /// Keeps a copy of a valid policy. If the copy can't be written, one with other rules is removed: rules that a parent
    /// has replaced must not come back.
    pub(crate) fn keep(&self, source: &PolicySource, now: Timestamp) -> Result<(), CopyWriteError> {
        let header = CopyHeader { policy: self.policy.clone(), accepted_at: Some(now), rejected_since: None };
        let Err(error) = self.write(&header, &source.text) else { return Ok(()) };
        let file = self.file.clone();
        if self.has_rules(&source.text) {
            // Only the times in the first line are older.
            tracing::warn!("could not update the copy of the rules in {}: {error}", file.display());
            return Ok(());
        }
        // Removing a file needs no space on the disk.
        match std::fs::remove_file(&self.file) {
            Err(removal) if removal.kind() != io::ErrorKind::NotFound => {
                Err(CopyWriteError::OldCopy { file, error })
            }
            Ok(()) | Err(_) => Err(CopyWriteError::NoCopy { file, error }),
        }
    }

    /// Returns the policy of the copy, or `None` if there is no copy: the daemon never had a valid policy.
    pub(crate) fn load(&self) -> Result<Option<PolicyWithSource>, CopyLoadError> {
        let file = || self.file.clone();
        let bytes = match self.read() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(CopyLoadError::Unreadable { file: file(), error }),
            Ok(bytes) => bytes,
        };
        let (header, text) = split_header(&bytes).ok_or_else(|| CopyLoadError::NoHeader { file: file() })?;
        if header.policy != self.policy {
            return Err(CopyLoadError::OtherPolicy { file: file(), policy: header.policy });
        }
        check_text(&self.file.display().to_string(), text.as_bytes())
            .map(Some)
            .map_err(CopyLoadError::Rejected)
    }

    /// Records that the policy file doesn't apply, and returns since when: since an earlier daemon has recorded it, or
    /// since the file was changed. A file that was valid since its last change applied until now; a newer version of
    /// Shepherd may check it more strictly.
    pub(crate) fn record_rejection(&self, now: Timestamp) -> Timestamp {
        let changed = last_change(&self.policy).map_or(now, |changed| changed.min(now));
        let bytes = self.read().unwrap_or_default();
        let Some((header, text)) = split_header(&bytes).filter(|(header, _)| header.policy == self.policy)
        else {
            return changed;
        };
        if let Some(since) = header.rejected_since {
            return since.min(now);
        }
        let since =
            if header.accepted_at.is_some_and(|accepted| changed <= accepted) { now } else { changed };
        let recorded = self.write(&CopyHeader { rejected_since: Some(since), ..header }, text);
        if let Err(error) = recorded {
            let file = self.file.display();
            tracing::warn!("could not record in {file} since when the policy file doesn't apply: {error}");
        }
        since
    }

    /// Returns true if the copy has these rules of this policy file.
    fn has_rules(&self, text: &str) -> bool {
        let bytes = self.read().unwrap_or_default();
        split_header(&bytes).is_some_and(|(header, kept)| header.policy == self.policy && kept == text)
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        read_bounded(&self.file, MAX_POLICY_BYTES + MAX_HEADER_BYTES)
    }

    /// Writes the copy, unless the file has this content already.
    fn write(&self, header: &CopyHeader, text: &str) -> io::Result<()> {
        let content = format!("{HEADER_START}{}\n{text}", serde_json::to_string(header)?);
        if self.read().is_ok_and(|known| known == content.as_bytes()) {
            return Ok(());
        }
        replace_file(&self.file, &content, COPY_MODE)
    }
}

/// Splits a copy into its first line and the policy.
fn split_header(bytes: &[u8]) -> Option<(CopyHeader, &str)> {
    let (line, text) = std::str::from_utf8(bytes).ok()?.split_once('\n')?;
    let header = serde_json::from_str(line.strip_prefix(HEADER_START)?).ok()?;
    Some((header, text))
}

/// Returns the time at which a file was changed or put in its place. Unlike the time of modification, programs can't
/// choose it.
fn last_change(path: &Path) -> Option<Timestamp> {
    let known = std::fs::metadata(path).ok()?;
    Timestamp::new(known.ctime(), i32::try_from(known.ctime_nsec()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use tokio::signal::unix::{SignalKind, signal};

    use super::*;

    const GENEROUS: &str = "config_version = 1\n";
    const STRICT: &str = "config_version = 1\nstop_grace = \"1s\"\n";

    fn source(text: &str) -> PolicySource {
        check_text("test", text.as_bytes()).unwrap().source
    }

    fn kept_text(copy: &PolicyCopy) -> Option<String> {
        copy.load().unwrap().map(|loaded| loaded.source.text)
    }

    #[test]
    fn a_copy_that_can_not_be_written_leaves_no_older_one() {
        let folder = tempfile::tempdir().unwrap();
        let copy = PolicyCopy::new(folder.path(), "/etc/policy.toml".as_ref());
        assert_eq!(kept_text(&copy), None);
        copy.keep(&source(GENEROUS), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(kept_text(&copy).as_deref(), Some(GENEROUS));
        // Without a free descriptor nothing can be written, as with a full disk.
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..limit }).unwrap();
        let kept = copy.keep(&source(STRICT), Timestamp::UNIX_EPOCH);
        setrlimit(Resource::Nofile, limit).unwrap();
        let reason = kept.unwrap_err().to_string();
        assert!(reason.contains("Too many open files") && reason.ends_with("launch is denied"), "{reason}");
        assert_eq!(kept_text(&copy), None);
    }

    /// A reload of the same rules while the disk is full must not cost the family their copy.
    #[tokio::test]
    async fn a_copy_of_the_same_rules_stays_if_it_can_not_be_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let copy = PolicyCopy::new(folder.path(), "/etc/policy.toml".as_ref());
        let later = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_mins(1);
        copy.keep(&source(GENEROUS), Timestamp::UNIX_EPOCH).unwrap();
        // Writing fails, as with a full disk. Without a handler, the signal would end the process.
        let _ignored = signal(SignalKind::from_raw(libc::SIGXFSZ)).unwrap();
        let limit = getrlimit(Resource::Fsize);
        setrlimit(Resource::Fsize, Rlimit { current: Some(0), ..limit }).unwrap();
        let kept = copy.keep(&source(GENEROUS), later);
        let text = kept_text(&copy);
        let replaced = copy.keep(&source(STRICT), later);
        setrlimit(Resource::Fsize, limit).unwrap();
        kept.unwrap();
        assert_eq!(text.as_deref(), Some(GENEROUS));
        assert!(matches!(replaced, Err(CopyWriteError::NoCopy { .. })), "{replaced:?}");
        assert_eq!(kept_text(&copy), None);
    }

    #[test]
    fn an_old_copy_that_can_not_be_removed_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let copy = PolicyCopy::new(folder.path(), "/etc/policy.toml".as_ref());
        fs::create_dir(&copy.file).unwrap();
        let reason = copy.keep(&source(STRICT), Timestamp::UNIX_EPOCH).unwrap_err().to_string();
        assert!(reason.contains("directory") && reason.ends_with("older rules apply"), "{reason}");
        assert!(copy.load().unwrap_err().to_string().contains("not a regular file"));
    }

    #[test]
    fn a_copy_belongs_to_one_policy_file() {
        let folder = tempfile::tempdir().unwrap();
        let of = |policy: &str| PolicyCopy::new(folder.path(), policy.as_ref());
        of("/etc/ours.toml").keep(&source(GENEROUS), Timestamp::UNIX_EPOCH).unwrap();
        let reason = of("/etc/theirs.toml").load().unwrap_err().to_string();
        let expected = format!("last-valid-policy.toml: it belongs to /etc/ours.toml{CURE}");
        assert!(reason.ends_with(&expected), "{reason}");
        // The rules that applied last count, so an earlier file doesn't get its old rules back.
        of("/etc/theirs.toml").keep(&source(STRICT), Timestamp::UNIX_EPOCH).unwrap();
        assert!(of("/etc/ours.toml").load().is_err());
        fs::write(folder.path().join("last-valid-policy.toml"), GENEROUS).unwrap();
        let reason = of("/etc/ours.toml").load().unwrap_err().to_string();
        assert!(reason.ends_with(&format!("its first line names no policy file{CURE}")), "{reason}");
    }

    #[test]
    fn the_time_of_the_first_mistake_is_remembered_until_the_policy_is_valid_again() {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("policy.toml");
        let copy = PolicyCopy::new(folder.path(), &policy);
        let at = |minute: i64| Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_mins(minute);
        // Without a file, the time at which its absence was noticed is the best answer.
        copy.keep(&source(GENEROUS), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(copy.record_rejection(at(1)), at(1));
        assert_eq!(copy.record_rejection(at(2)), at(1));
        assert_eq!(kept_text(&copy).as_deref(), Some(GENEROUS));
        copy.keep(&source(GENEROUS), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(copy.record_rejection(at(3)), at(3));
        copy.keep(&source(STRICT), Timestamp::UNIX_EPOCH).unwrap();
        fs::write(&policy, "a mistake").unwrap();
        let changed = last_change(&policy).unwrap();
        assert_eq!(copy.record_rejection(changed + jiff::SignedDuration::from_hours(9)), changed);
    }

    #[test]
    fn a_file_that_was_valid_since_its_last_change_applied_until_now() {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("policy.toml");
        let copy = PolicyCopy::new(folder.path(), &policy);
        fs::write(&policy, GENEROUS).unwrap();
        let changed = last_change(&policy).unwrap();
        let after = |minutes: i64| changed + jiff::SignedDuration::from_mins(minutes);
        for (accepted, since) in [(after(-1), changed), (changed, after(9)), (after(1), after(9))] {
            copy.keep(&source(GENEROUS), accepted).unwrap();
            assert_eq!(copy.record_rejection(after(9)), since, "{accepted}");
            assert_eq!(copy.record_rejection(after(10)), since, "{accepted}, again");
        }
        // A copy of an older version.
        let header = serde_json::json!({ "policy": policy, "rejected_since": null });
        fs::write(&copy.file, format!("{HEADER_START}{header}\n{GENEROUS}")).unwrap();
        assert_eq!(copy.record_rejection(after(9)), changed);
    }
}
