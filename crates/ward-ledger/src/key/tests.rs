use super::*;

#[test]
fn the_first_of_two_created_keys_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.key");
    LedgerKey::create_key_file(&path).unwrap();
    let first = fs::read(&path).unwrap();
    // Another process may create the file after we saw that there was none.
    LedgerKey::create_key_file(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), first);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no drafts are left");
}
