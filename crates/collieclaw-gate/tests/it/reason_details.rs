//! What people are told: the whole sentence, with the column, counted in characters from one (C7.3b).

use collieclaw_gate::{AutonomyLevel, GateReason, ReasonWeight};

use crate::test_machine::judge_line;

/// The sentences of what is high or worse, in the order in which they are told.
fn reason_sentences(line: &str) -> Vec<String> {
    let reasons = judge_line(line, AutonomyLevel::Supervised, "").reasons;
    reasons.iter().filter(|reason| reason.weight() >= ReasonWeight::High).map(GateReason::detail).collect()
}

#[test]
fn what_is_refused_is_told_with_its_column() {
    let prints = "what a command prints is known only when it runs";
    let variable = "a variable is known only when it runs";
    for (line, expected) in [
        ("ls $(pwd)", vec![format!("column 4: {prints}")]),
        // Counted in characters: the `é` is two bytes.
        ("ls é $(pwd)", vec![format!("column 6: {prints}")]),
        ("echo \"a é $(pwd) b\"", vec![format!("column 11: {prints}")]),
        ("echo é `pwd`", vec![format!("column 8: {prints}")]),
        ("cat a.txt; ls 'é' $HOME", vec![format!("column 19: {variable}")]),
        // The text of a here-document has no columns of its own: it is where its mark is.
        ("cat <<E\né $HOME\nE", vec![format!("column 7: {variable}")]),
        (
            "for f in a b; do ls; done",
            vec!["column 1: how often a loop runs is known only when it runs".to_owned()],
        ),
        (
            "ls; f() { ls; }",
            vec!["column 5: a function".to_owned(), "column 9: a group in braces".to_owned()],
        ),
        ("echo é 'x", vec!["column 8: this quote is not closed".to_owned()]),
        ("echo é \"x", vec!["column 8: this quote is not closed".to_owned()]),
        ("ls é &", vec!["column 6: `&` leaves something running".to_owned()]),
        ("ls é > b.txt <> a.txt", vec!["column 14: `<>` opens for reading and writing".to_owned()]),
        (
            "true && cd src; cat main.rs",
            vec!["column 17: in which folder this runs is known only when it runs".to_owned()],
        ),
        (
            "é && $X",
            vec![
                "column 6: which command this is can't be known before it runs; write its name out"
                    .to_owned(),
                "`é` is not on the list of allowed commands".to_owned(),
                format!("column 6: {variable}"),
            ],
        ),
    ] {
        assert_eq!(reason_sentences(line), expected, "{line:?}");
    }
}

#[test]
fn what_is_quoted_is_not_longer_than_anyone_reads() {
    let long = "é".repeat(300_000);
    let short = "é".repeat(200);
    let line = format!("awk '{long} | getline' a.txt");
    assert_eq!(
        reason_sentences(&line),
        [format!("`{short}…` makes `awk` follow a program that is too long to be read")]
    );
    let line = format!("X{long}=1 ls");
    assert!(reason_sentences(&line).iter().all(|told| told.chars().count() < 300));
}
