//! The file with the PIN's hash and the failures: small, and always replaced as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::throttle::PinFailures;

/// The file mode: only the daemon reads or writes the file.
const PIN_FILE_MODE: u32 = 0o600;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PinFile {
    /// The hash in PHC format: algorithm, parameters, salt and hash.
    pub(super) hash: Option<String>,
    pub(super) failures: PinFailures,
}

impl PinFile {
    /// Reads the file; a missing file has no content.
    pub(super) fn load(path: &Path) -> io::Result<Self> {
        // With a symlink, the person who created it would choose the file.
        let metadata = match fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let is_ours = metadata.is_file()
            && metadata.mode() & 0o077 == 0
            && metadata.uid() == rustix::process::geteuid().as_raw();
        if !is_ours {
            let problem = "it must be a file that only the daemon's user can read and write (mode 0600)";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
        }
        Ok(serde_json::from_slice(&fs::read(path)?)?)
    }

    /// Replaces the file durably.
    pub(super) fn save(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_vec(self)?;
        let draft = temporary_path(path);
        // A file of an interrupted attempt would keep its mode.
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(PIN_FILE_MODE).open(&draft)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&draft, path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

fn temporary_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}
