//! The last sign of life on a real disk: written over itself, never taken back, and never believed if it is not whole
//! (S8.2).

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

use shepherd_core::Pulse;
use shepherd_store::{PulseFile, Store, StoreError};
use shepherd_util::{MonotonicInstant, Now};

use crate::support::{Place, chain, now};

const FILE: &str = "shepherd.pulse";

/// So many seconds after the start of a boot.
fn pulse(boot: u64, seconds: u64) -> Pulse {
    let up = Duration::from_secs(seconds);
    let at = Now { wall: now() + up, mono: MonotonicInstant::new(up, up) };
    Pulse { boot: format!("3f1c1e9a-5d0b-4c57-9f0e-{boot:012x}").parse().unwrap(), at }
}

#[test]
fn the_last_one_is_there_after_a_restart() {
    let place = Place::in_memory();
    let store = place.open();
    let mut file = PulseFile::in_folder(&place.folder);
    file.prepare().unwrap();
    assert_eq!(store.load().unwrap().pulse, None, "room for one is not one");
    for seconds in [10, 40, 70] {
        file.write(pulse(1, seconds)).unwrap();
        assert_eq!(store.load().unwrap().pulse, Some(pulse(1, seconds)));
    }
    drop((file, store));
    assert_eq!(place.load().pulse, Some(pulse(1, 70)));
    let metadata = fs::metadata(place.file(FILE)).unwrap();
    assert_eq!((metadata.len(), metadata.mode() & 0o7777), (512, 0o600));
}

#[test]
fn an_older_one_never_takes_the_place_of_a_newer_one() {
    let place = Place::in_memory();
    let store = place.open();
    PulseFile::in_folder(&place.folder).write(pulse(1, 70)).unwrap();
    // Also not by somebody who has not written the newer one.
    for mut file in [PulseFile::in_folder(&place.folder), PulseFile::in_folder(&place.folder)] {
        file.write(pulse(1, 40)).unwrap();
        assert_eq!(store.load().unwrap().pulse, Some(pulse(1, 70)));
    }
    // The clock of another boot starts over.
    PulseFile::in_folder(&place.folder).write(pulse(2, 3)).unwrap();
    assert_eq!(store.load().unwrap().pulse, Some(pulse(2, 3)));
}

#[test]
fn what_is_not_whole_is_not_believed() {
    // S8.2, S8.4b: no byte of it can be another one, wherever a power cut or a disk has left its mark.
    let place = Place::in_memory();
    let store = place.open();
    PulseFile::in_folder(&place.folder).write(pulse(1, 70)).unwrap();
    let whole = fs::read(place.file(FILE)).unwrap();
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
        fs::write(place.file(FILE), &bytes).unwrap();
        assert_eq!(store.load().unwrap().pulse, None, "{:?}", String::from_utf8_lossy(&bytes));
    }
    fs::remove_file(place.file(FILE)).unwrap();
    assert_eq!(store.load().unwrap().pulse, None);
    // The next one is as good as ever.
    PulseFile::in_folder(&place.folder).write(pulse(1, 100)).unwrap();
    assert_eq!(store.load().unwrap().pulse, Some(pulse(1, 100)));
}

#[test]
fn one_that_others_can_change_is_refused_with_the_folder() {
    let place = Place::in_memory();
    drop(place.open());
    PulseFile::in_folder(&place.folder).prepare().unwrap();
    fs::set_permissions(place.file(FILE), Permissions::from_mode(0o666)).unwrap();
    assert!(place.refusal().contains(FILE), "{}", place.refusal());
}

#[test]
fn a_link_in_its_place_is_not_followed_and_a_failure_says_where() {
    let place = Place::in_memory();
    let store = place.open();
    let target = place.file("elsewhere");
    fs::write(&target, "precious").unwrap();
    std::os::unix::fs::symlink(&target, place.file(FILE)).unwrap();
    let mut file = PulseFile::in_folder(&place.folder);
    let error = file.write(pulse(1, 10)).unwrap_err();
    assert!(matches!(error, StoreError::Pulse { .. }), "{error:?}");
    assert!(chain(&error).contains(FILE), "{}", chain(&error));
    assert_eq!(fs::read(&target).unwrap(), b"precious");
    // When it is gone, the next one is written.
    fs::remove_file(place.file(FILE)).unwrap();
    file.write(pulse(1, 40)).unwrap();
    assert_eq!(store.load().unwrap().pulse, Some(pulse(1, 40)));
}
