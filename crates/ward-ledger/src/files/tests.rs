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
