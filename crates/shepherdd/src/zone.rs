//! The system's current time zone. The calendar library caches its first answer for minutes, so it can't be asked again
//! when the file has changed.

use std::fs;
use std::path::Path;

use data_encoding::HEXLOWER;
use jiff::tz::TimeZone;
use sha2::{Digest, Sha256};

/// The file that names the system's zone.
pub(crate) const ZONE_FILE: &str = "/etc/localtime";

/// The folder of all zones, in several possible places.
const ZONEINFO_FOLDER: &str = "zoneinfo/";

/// Returns the zone that applies. A variable of our environment, which can't change, overrides the file.
pub(crate) fn read_system_zone() -> TimeZone {
    if std::env::var_os("TZ").is_some() {
        return TimeZone::system();
    }
    read_zone_file(Path::new(ZONE_FILE)).unwrap_or_else(TimeZone::system)
}

fn read_zone_file(file: &Path) -> Option<TimeZone> {
    let target = fs::canonicalize(file).ok()?;
    let bytes = fs::read(&target).ok()?;
    // By name, the library would first read every zone, which takes milliseconds.
    if let Some((_, name)) = target.to_str().and_then(|target| target.split_once(ZONEINFO_FOLDER)) {
        return TimeZone::tzif(name, &bytes).ok();
    }
    // The file is a copy of a zone. Two copies get different names, so that a change is noticed.
    let digest = HEXLOWER.encode(&Sha256::digest(&bytes));
    TimeZone::tzif(&format!("unnamed-{}", digest.get(..8)?), &bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_file_can_be_a_symlink_or_a_copy() {
        let folder = tempfile::tempdir().unwrap();
        let zones = Path::new("/usr/share/zoneinfo");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(zones.join("Asia/Tokyo"), &link).unwrap();
        assert_eq!(read_zone_file(&link).unwrap().iana_name(), Some("Asia/Tokyo"));
        let copies = ["Asia/Tokyo", "Europe/Berlin"].map(|name| {
            let copy = folder.path().join("copy");
            fs::copy(zones.join(name), &copy).unwrap();
            read_zone_file(&copy).unwrap()
        });
        assert_ne!(copies[0].iana_name(), copies[1].iana_name());
        let noon: jiff::Timestamp = "2026-07-01T12:00:00Z".parse().unwrap();
        assert_eq!(copies[0].to_offset(noon), jiff::tz::offset(9));
        assert_eq!(read_zone_file(&folder.path().join("nothing")), None);
    }
}
