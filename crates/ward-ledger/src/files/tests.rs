use super::*;

/// Returns the files found beside a log, given their suffixes. None of the files is empty.
fn list_siblings_of(names: &[&str], current: Option<u64>) -> SiblingFiles {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    for name in names {
        fs::write(path_with_suffix(&log, name), "x").unwrap();
    }
    list_siblings(&log, current).unwrap()
}

#[test]
fn a_segment_may_have_a_number_of_seven_digits() {
    let log = Path::new("log");
    assert_eq!(segment_path(log, 999_999), Path::new("log.999999"));
    assert_eq!(segment_path(log, 1_000_000), Path::new("log.1000000"));
    let found = list_siblings_of(&["1000000", "999999"], Some(1_000_001));
    assert_eq!(found.closed, [999_999, 1_000_000]);
    assert_eq!(found.strays, [""; 0]);
}

#[test]
fn segment_numbers_in_other_spellings_are_strays() {
    let strays = ["0000001", "000000", "99999999999999999999"];
    let found =
        list_siblings_of(&["000001", "0000001", "000000", "99999999999999999999", "00001", "+00002"], None);
    assert_eq!(found.closed, [1]);
    let mut expected = strays.map(|name| format!("log.{name}"));
    expected.sort();
    assert_eq!(found.strays, expected);
}

#[test]
fn missing_segments_and_segments_after_the_current_one_are_found() {
    let check = |names: &[&str], current, missing, strays: &[&str]| {
        let found = list_siblings_of(names, current);
        assert_eq!(
            (found.missing, found.strays),
            (missing, strays.iter().map(ToString::to_string).collect())
        );
    };
    check(&[], None, None, &[]);
    check(&[], Some(1), None, &[]);
    check(&[], Some(3), Some(1), &[]);
    check(&["000001", "000002"], None, None, &[]);
    check(&["000001", "000002"], Some(3), None, &[]);
    check(&["000001", "000002"], Some(2), None, &[]);
    check(&["000001", "000002"], Some(1), None, &["log.000002"]);
    check(&["000001", "000002"], Some(4), Some(3), &[]);
    check(&["000001", "000003"], None, Some(2), &[]);
    check(&["000002"], Some(3), Some(1), &[]);
}

#[test]
fn only_a_missing_file_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    assert_eq!(stat_path(&log).unwrap(), None);
    fs::write(&log, "12345").unwrap();
    assert_eq!(stat_path(&log).unwrap().map(|(_, length)| length), Some(5));
    assert_eq!(stat_path(&log.join("below")).unwrap_err().kind(), io::ErrorKind::NotADirectory);
}

#[test]
fn torn_files_are_found_by_their_numbers() {
    let found =
        list_siblings_of(&["torn-3-2", "torn-3-1", "torn-12-1", "torn-3", "torn-x-1", "torn-3-y"], None);
    let name = |sequence, counter| TornFileName { sequence, counter };
    assert_eq!(found.torn, [name(3, 1), name(3, 2), name(12, 1)]);
    assert_eq!(name(3, 2).path(Path::new("log")), Path::new("log.torn-3-2"));
}
