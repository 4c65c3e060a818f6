//! Whole fuzz runs: a bug is found, its input is minimised, and the input is saved and replayed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use ward_fuzz::{FuzzFailureKind, FuzzRun, InputMutator, SeededRandom};

fn fuzz(folder: &Path, time: Duration) -> FuzzRun {
    FuzzRun { name: "target".to_owned(), time, seed: 1, regressions: folder.join("regressions/target") }
}

/// A parser with a bug behind two conditions.
fn brittle(bytes: &[u8]) -> bool {
    let is_object = bytes.first() == Some(&b'{');
    assert!(!(is_object && bytes.contains(&0xff)), "a byte too much");
    is_object
}

#[test]
fn a_failing_input_is_found_minimised_and_saved() {
    let folder = tempfile::tempdir().unwrap();
    let failure =
        fuzz(folder.path(), Duration::from_secs(20)).run(&[b"{\"a\":1}".to_vec()], brittle).unwrap_err();

    assert_eq!(failure.fault, FuzzFailureKind::Panicked("a byte too much".to_owned()));
    assert_eq!(failure.input, b"{\xff");
    let kept = failure.kept.clone().unwrap();
    assert!(kept.starts_with(folder.path()), "{}", kept.display());
    assert_eq!(fs::read(kept).unwrap(), b"{\xff");
    let shown = failure.to_string();
    assert!(shown.contains(r#"input of 2 bytes: b"{\xff""#) && shown.contains("seed 1"), "{shown}");
}

#[test]
fn saved_inputs_are_replayed_before_anything_else() {
    let folder = tempfile::tempdir().unwrap();
    let fuzz = fuzz(folder.path(), Duration::ZERO);
    fs::create_dir_all(&fuzz.regressions).unwrap();
    fs::write(fuzz.regressions.join("one"), b"{\xff").unwrap();

    let failure = fuzz.run(&[b"{}".to_vec()], brittle).unwrap_err();
    assert_eq!((failure.tried, failure.input.as_slice()), (0, b"{\xff".as_slice()));

    let report = fuzz.run(&[b"{}".to_vec()], <[u8]>::len).unwrap();
    assert_eq!((report.replayed, report.tried, report.answers), (1, 2, 1));
}

#[test]
fn inputs_with_new_return_values_are_mutated_further() {
    let folder = tempfile::tempdir().unwrap();
    // Blind mutations practically never hit all four bytes at once, but they do find them one after the other.
    let steps = |bytes: &[u8]| {
        let steps =
            b"\x01\x02\x03\x04".iter().zip(bytes).take_while(|(wanted, found)| wanted == found).count();
        assert!(steps < 4, "reached");
        steps
    };
    let failure = fuzz(folder.path(), Duration::from_secs(30)).run(&[b"....".to_vec()], steps).unwrap_err();
    assert_eq!(failure.input, b"\x01\x02\x03\x04");
}

#[test]
fn the_same_seed_gives_the_same_inputs() {
    let corpus = [b"{\"id\":1}".to_vec(), b"[\"launch\",\"tuxmath\"]".to_vec()];
    let inputs = |seed| {
        let (mutator, mut random) = (InputMutator::new(&corpus), SeededRandom::new(seed));
        (0..100).map(|_| mutator.make_input(&corpus, &mut random)).collect::<Vec<_>>()
    };
    assert_eq!(inputs(7), inputs(7));
    assert_ne!(inputs(7), inputs(8));
}

#[test]
fn an_empty_corpus_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let report = fuzz(folder.path(), Duration::from_millis(50)).run(&[], <[u8]>::len).unwrap();
    assert!(report.tried > 0 && report.answers > 1, "{report:?}");
}
