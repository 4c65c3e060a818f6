//! Heartbeats on a real disk: overwritten in place, never replaced by an older one, and ignored if damaged (S8.2).

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

use shepherd_core::DaemonHeartbeat;
use shepherd_store::{HeartbeatFile, Store, StoreError};
use shepherd_util::{ClockReading, MonotonicInstant};

use crate::support::{TestStore, error_chain, now};

const HEARTBEAT_FILE: &str = "shepherd.pulse";

/// Returns a heartbeat this many seconds after the start of a boot.
fn sample_heartbeat(boot: u64, seconds: u64) -> DaemonHeartbeat {
    let up = Duration::from_secs(seconds);
    let at = ClockReading { wall: now() + up, mono: MonotonicInstant::new(up, up) };
    DaemonHeartbeat { boot: format!("3f1c1e9a-5d0b-4c57-9f0e-{boot:012x}").parse().unwrap(), at }
}

#[test]
fn the_last_heartbeat_survives_a_restart() {
    let place = TestStore::in_memory();
    let store = place.open();
    let mut file = HeartbeatFile::in_folder(&place.folder);
    file.prepare().unwrap();
    assert_eq!(store.load().unwrap().heartbeat, None, "an empty slot is not a heartbeat");
    for seconds in [10, 40, 70] {
        file.write(sample_heartbeat(1, seconds)).unwrap();
        assert_eq!(store.load().unwrap().heartbeat, Some(sample_heartbeat(1, seconds)));
    }
    drop((file, store));
    assert_eq!(place.load().heartbeat, Some(sample_heartbeat(1, 70)));
    let metadata = fs::metadata(place.file_path(HEARTBEAT_FILE)).unwrap();
    assert_eq!((metadata.len(), metadata.mode() & 0o7777), (512, 0o600));
}

#[test]
fn an_older_heartbeat_never_replaces_a_newer_one() {
    let place = TestStore::in_memory();
    let store = place.open();
    HeartbeatFile::in_folder(&place.folder).write(sample_heartbeat(1, 70)).unwrap();
    // A store that has not written the newer heartbeat doesn't replace it, either.
    for mut file in [HeartbeatFile::in_folder(&place.folder), HeartbeatFile::in_folder(&place.folder)] {
        file.write(sample_heartbeat(1, 40)).unwrap();
        assert_eq!(store.load().unwrap().heartbeat, Some(sample_heartbeat(1, 70)));
    }
    // The monotonic clock of another boot starts over.
    HeartbeatFile::in_folder(&place.folder).write(sample_heartbeat(2, 3)).unwrap();
    assert_eq!(store.load().unwrap().heartbeat, Some(sample_heartbeat(2, 3)));
}

#[test]
fn a_damaged_heartbeat_is_ignored() {
    // S8.2, S8.4b: a change of any byte is detected, whether by a power cut or by the disk.
    let place = TestStore::in_memory();
    let store = place.open();
    HeartbeatFile::in_folder(&place.folder).write(sample_heartbeat(1, 70)).unwrap();
    let whole = fs::read(place.file_path(HEARTBEAT_FILE)).unwrap();
    let text = whole.trim_ascii_end().len();
    let flipped = (0..text).map(|at| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    });
    let cut = (0..text).map(|at| whole[..at].to_vec());
    let torn = (0..text).map(|at| [&whole[..at], &vec![b'\n'; whole.len() - at]].concat());
    let strange = [vec![0; 512], vec![0xff; 512], b"{}".to_vec(), vec![b'a'; 1 << 20]];
    for bytes in flipped.chain(cut).chain(torn).chain(strange) {
        fs::write(place.file_path(HEARTBEAT_FILE), &bytes).unwrap();
        assert_eq!(store.load().unwrap().heartbeat, None, "{:?}", String::from_utf8_lossy(&bytes));
    }
    fs::remove_file(place.file_path(HEARTBEAT_FILE)).unwrap();
    assert_eq!(store.load().unwrap().heartbeat, None);
    // The next heartbeat is valid again.
    HeartbeatFile::in_folder(&place.folder).write(sample_heartbeat(1, 100)).unwrap();
    assert_eq!(store.load().unwrap().heartbeat, Some(sample_heartbeat(1, 100)));
}

#[test]
fn a_heartbeat_file_writable_by_others_is_refused() {
    let place = TestStore::in_memory();
    drop(place.open());
    HeartbeatFile::in_folder(&place.folder).prepare().unwrap();
    fs::set_permissions(place.file_path(HEARTBEAT_FILE), Permissions::from_mode(0o666)).unwrap();
    assert!(place.open_error_text().contains(HEARTBEAT_FILE), "{}", place.open_error_text());
}

#[test]
fn a_symlinked_heartbeat_file_is_not_followed_and_the_error_names_it() {
    let place = TestStore::in_memory();
    let store = place.open();
    let target = place.file_path("elsewhere");
    fs::write(&target, "precious").unwrap();
    std::os::unix::fs::symlink(&target, place.file_path(HEARTBEAT_FILE)).unwrap();
    let mut file = HeartbeatFile::in_folder(&place.folder);
    let error = file.write(sample_heartbeat(1, 10)).unwrap_err();
    assert!(matches!(error, StoreError::Heartbeat { .. }), "{error:?}");
    assert!(error_chain(&error).contains(HEARTBEAT_FILE), "{}", error_chain(&error));
    assert_eq!(fs::read(&target).unwrap(), b"precious");
    // After the file was removed, the next heartbeat is written.
    fs::remove_file(place.file_path(HEARTBEAT_FILE)).unwrap();
    file.write(sample_heartbeat(1, 40)).unwrap();
    assert_eq!(store.load().unwrap().heartbeat, Some(sample_heartbeat(1, 40)));
}
