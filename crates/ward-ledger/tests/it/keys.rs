//! Creating and loading key files.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::thread;

use ward_ledger::{LedgerKey, LedgerKeyError};

#[test]
fn concurrent_processes_create_one_private_key_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.key");
    assert!(matches!(LedgerKey::load(&path), Err(LedgerKeyError::File { .. })));
    let ids: Vec<_> = thread::scope(|scope| {
        let makers: Vec<_> =
            (0..8).map(|_| scope.spawn(|| LedgerKey::load_or_create(&path).unwrap().id())).collect();
        makers.into_iter().map(|maker| maker.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(LedgerKey::load(&path).unwrap().id(), ids[0]);
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!((metadata.mode() & 0o777, metadata.len()), (0o600, 65));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no drafts are left");
}

#[test]
fn a_key_is_never_printed() {
    let key = LedgerKey::from_bytes(&[0xab; 32]);
    assert_eq!(format!("{key:?}"), "LedgerKey(***)");
}

#[test]
fn a_key_file_with_a_mode_other_than_0600_is_rejected_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.key");
    LedgerKey::load_or_create(&path).unwrap();
    for mode in [0o644, 0o640, 0o604, 0o602, 0o700, 0o400, 0o200, 0o000, 0o4600, 0o1600] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let message = LedgerKey::load(&path).unwrap_err().to_string();
        assert!(message.contains(&format!("chmod 600 {}", path.display())), "{message}");
        assert!(message.contains(&format!("{mode:04o}")), "{message}");
    }
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    LedgerKey::load(&path).unwrap();
}

#[test]
fn a_key_file_must_be_a_regular_file_with_a_key_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.key");
    let private = |text: &str| {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    };
    for text in [
        "",
        "ab",
        &"a".repeat(64),
        &("A".repeat(64) + "\n"),
        &("a".repeat(65) + "\n"),
        &("a".repeat(64) + "\n\n"),
    ] {
        private(text);
        assert!(matches!(LedgerKey::load(&path), Err(LedgerKeyError::Content { .. })), "{text:?}");
    }
    private(&("a".repeat(64) + "\n"));
    LedgerKey::load(&path).unwrap();
    let link = folder.path().join("link");
    symlink(&path, &link).unwrap();
    assert!(matches!(LedgerKey::load(&link), Err(LedgerKeyError::NotRegular { .. })));
    assert!(matches!(LedgerKey::load(folder.path()), Err(LedgerKeyError::NotRegular { .. })));
}

#[test]
fn a_path_that_can_not_be_inspected_is_not_taken_for_a_missing_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = LedgerKey::load_or_create(&file.join("ledger.key")).unwrap_err();
    assert!(matches!(error, LedgerKeyError::File { step: "open", .. }), "{error:?}");
}
