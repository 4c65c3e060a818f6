//! The sentences that people read, with the column in characters, starting at 1 (C7.3b).
//!
//! Every verdict carries structured reasons (C7.8).

use collieclaw_gate::{AutonomyLevel, GateReason, ReasonWeight, judge_shell};

use crate::judged_lines::JudgingMachine;
use crate::test_machine::{judge_line, policy};

/// Returns the sentences of the reasons with high or blocking weight, in their order.
fn reason_sentences(line: &str) -> Vec<String> {
    let reasons = judge_line(line, AutonomyLevel::Supervised, "").reasons;
    reasons.iter().filter(|reason| reason.weight() >= ReasonWeight::High).map(GateReason::detail).collect()
}

#[test]
fn a_refusal_names_the_column_of_its_cause() {
    let prints = "the output of a command is known only when it runs; run that command first";
    let variable = "the value of a variable is known only when it runs; write it out";
    for (line, expected) in [
        ("ls $(pwd)", vec![format!("column 4: {prints}")]),
        // The `é` has two bytes and counts as a single character.
        ("ls é $(pwd)", vec![format!("column 6: {prints}")]),
        ("echo \"a é $(pwd) b\"", vec![format!("column 11: {prints}")]),
        ("echo é `pwd`", vec![format!("column 8: {prints}")]),
        ("cat a.txt; ls 'é' $HOME", vec![format!("column 19: {variable}")]),
        // Text inside a here-document has the column of the delimiter.
        ("cat <<E\né $HOME\nE", vec![format!("column 7: {variable}")]),
        (
            "for f in a b; do ls; done",
            vec![
                "column 1: the rounds of a loop are known only when it runs; write the commands out"
                    .to_owned(),
            ],
        ),
        (
            "ls; f() { ls; }",
            vec![
                "column 5: a function needs a real shell; write its commands out".to_owned(),
                "column 9: `{ … }` needs a real shell; write the commands without braces".to_owned(),
            ],
        ),
        (
            "cd -",
            vec!["column 1: the folder of this `cd` is known only when it runs; name a folder".to_owned()],
        ),
        ("echo é 'x", vec!["column 8: this quote is not closed".to_owned()]),
        ("echo é \"x", vec!["column 8: this quote is not closed".to_owned()]),
        ("ls é &", vec!["column 6: `&` leaves a command running in the background".to_owned()]),
        (
            "ls é > b.txt <> a.txt",
            vec!["column 14: `<>` opens a file for reading and writing; use `<` or `>`".to_owned()],
        ),
        (
            "true && cd src; cat main.rs",
            vec!["column 17: the folder of this command is known only when it runs".to_owned()],
        ),
        (
            "é && $X",
            vec![
                "column 6: the name of this command is known only when it runs; write it out".to_owned(),
                "`é` isn't on the list of allowed commands".to_owned(),
                format!("column 6: {variable}"),
            ],
        ),
    ] {
        assert_eq!(reason_sentences(line), expected, "{line:?}");
    }
}

/// Many reasons of one weight don't take the column away from those of another weight.
#[test]
fn a_column_is_right_after_many_other_reasons() {
    let programs: String = (0..40).map(|number| format!("prog{number}; ")).collect();
    let column = programs.len() + 1;
    let expected =
        format!("column {column}: the name of this command is known only when it runs; write it out");
    assert_eq!(reason_sentences(&format!("{programs}$X")).first(), Some(&expected));
    let line = format!("{programs}echo $X");
    let verdict = judge_shell(&line, AutonomyLevel::Supervised, &policy(""), &JudgingMachine::new()).verdict;
    let found =
        verdict.reasons.iter().find(|reason| reason.code() == "judged-when-run").map(GateReason::detail);
    let expected = format!(
        "column {}: the value of a variable is known only when it runs, so each command is judged when it runs",
        column + 5
    );
    assert_eq!(found, Some(expected));
}

#[test]
fn long_quotations_are_shortened() {
    let long = "é".repeat(300_000);
    let short = "é".repeat(200);
    let line = format!("awk '{long} | getline' a.txt");
    assert_eq!(
        reason_sentences(&line),
        [format!("`{short}…` makes `awk` run a program that is too long to check")]
    );
    let line = format!("X{long}=1 ls");
    assert!(reason_sentences(&line).iter().all(|sentence| sentence.chars().count() < 300));
}

#[test]
fn a_program_is_refused_with_the_command_that_allows_it() {
    let detail = |name: &str| GateReason::UnlistedProgram { name: name.to_owned() }.detail();
    let longest = "a".repeat(64);
    for name in ["gcc", "g++", "python3.11", "x_y", "./run.sh", &longest] {
        let cure = format!(". To allow it in this workspace: `collieclaw allow {name}`");
        assert!(detail(name).ends_with(&cure), "{name}");
    }
    // A shell would read these names as something else.
    for name in ["", "-x", "a b", "é", "$x", "a;b", &"a".repeat(65)] {
        assert!(detail(name).ends_with("isn't on the list of allowed commands"), "{name}");
    }
}

#[test]
fn commands_whose_work_a_tool_does_are_refused_with_the_tool() {
    for (name, tool) in
        [("rm", Some("file_delete")), ("shred", Some("file_delete")), ("mv", Some("file_move")), ("dd", None)]
    {
        let name = name.to_owned();
        for reason in
            [GateReason::UnlistedProgram { name: name.clone() }, GateReason::ForbiddenCommand { name }]
        {
            let detail = reason.detail();
            let named = detail.split_once("use the tool `").and_then(|(_, rest)| rest.split('`').next());
            assert_eq!(named, tool, "{detail}");
        }
    }
}

#[test]
fn advice_for_a_plan_is_left_out_if_commands_are_judged_when_they_run() {
    let reason =
        GateReason::JudgedWhenRun { what: "a subshell needs a real shell; leave out the rest", column: 3 };
    assert_eq!(
        reason.detail(),
        "column 3: a subshell needs a real shell, so each command is judged when it runs"
    );
}
