//! Faults that involve two places of a file, and reports with several faults.

use std::collections::BTreeMap;

use insta::assert_snapshot;
use ward_diag::{
    FaultReport, InvalidValue, ReportStyle, SourceText, TomlTable, UnknownKeyAdvice, read, read_with_warnings,
};

use crate::value_faults::{faults_of, good_policy_with};

#[test]
fn a_warning_before_the_run_begins() {
    assert_snapshot!(good_policy_with("before = 300", "before = \"90m\""), @r#"
policy.toml:21:10: this warns 5400 seconds before the end of a run of 3600
   12 | max_run = "60m"
      |           ----- the longest run
      ...
   21 | before = "90m"
      |          ^^^^^
help: lower the warning, or raise `max_run`
"#);
}

#[test]
fn an_empty_window() {
    assert_snapshot!(good_policy_with("18:00", "10:00"), @r#"
policy.toml:18:6: this window ends when it begins
   17 | from = "10:00"
      |        ------- it begins here
   18 | to = "10:00"
      |      ^^^^^^^
help: write a later `to`; one after midnight is fine
"#);
}

#[test]
fn a_reference_to_nothing_with_a_near_name() {
    assert_snapshot!(good_policy_with("budget = \"games\"", "budget = \"gamse\""), @r#"
policy.toml:11:10: there is no budget `gamse`
   11 | budget = "gamse"
      |          ^^^^^^^
help: did you mean `games`?
"#);
}

#[test]
fn a_reference_to_nothing_with_nothing_near() {
    assert_snapshot!(good_policy_with("budget = \"games\"", "budget = \"films\""), @r#"
policy.toml:11:10: there is no budget `films`
   11 | budget = "films"
      |          ^^^^^^^
help: use `games`
"#);
}

#[test]
fn a_reference_where_nothing_is_defined() {
    assert_snapshot!(good_policy_with("[budget.games]\ndaily = \"1h\"\n", ""), @r#"
policy.toml:9:10: there is no budget `games`
   9 | budget = "games"
     |          ^^^^^^^
help: no budget is defined in this file
"#);
}

#[test]
fn a_duplicate_id_shows_both_places() {
    let entry = |label: &str| {
        format!(
            "[[entry]]\nid = \"paint\"\nlabel = \"{label}\"\nkind = \"process\"\nargv = [\"tuxpaint\"]\n\n"
        )
    };
    assert_snapshot!(faults_of(&format!("config_version = 1\n\n{}{}", entry("One"), entry("Two"))), @r#"
policy.toml:10:6: entry id `paint` is used twice
    4 | id = "paint"
      |      ------- first used here
      ...
   10 | id = "paint"
      |      ^^^^^^^
help: give each a different entry id
"#);
}

#[test]
fn everything_at_once_in_source_order() {
    assert_snapshot!(faults_of(r#"config_version = 3
colour = "green"

[[entry]]
id = "Tux Math"
label = ""
kind = "proces"
argv = []
max_run = "60"
budget = "games"

[entry.warning]
befor = 5

[[entry]]
id = "paint"
label = 7
"#), @r#"
policy.toml:1:18: this program reads version 1, not 3
   1 | config_version = 3
     |                  ^
help: write `config_version = 1`, or install a newer version

policy.toml:2:1: unknown key `colour`
   2 | colour = "green"
     | ^^^^^^
help: remove it; known keys: `config_version`, `budget` and `entry`

policy.toml:5:7: an id can't contain `T`
   5 | id = "Tux Math"
     |       ^
help: use lower-case letters and `-`

policy.toml:6:9: `label` must not be empty
   6 | label = ""
     |         ^^
help: write something between the quotes

policy.toml:7:8: `kind` can't be "proces"
   7 | kind = "proces"
     |        ^^^^^^^^
help: did you mean `process`? It can be `process`, `vm`, `media` or `custom`

policy.toml:8:8: `argv` must not be empty
   8 | argv = []
     |        ^^
help: add at least one element

policy.toml:9:13: unknown unit `0`
   9 | max_run = "60"
     |             ^
help: use `s`, `m` or `h`

policy.toml:13:1: unknown key `befor` in `warning`
   13 | befor = 5
      | ^^^^^
help: did you mean `before`?

policy.toml:15:1: `kind` is missing in `entry`
   15 | [[entry]]
      | ^^^^^^^^^
help: add a line `kind = …`

policy.toml:15:1: `argv` is missing in `entry`
   15 | [[entry]]
      | ^^^^^^^^^
help: add a line `argv = …`

policy.toml:17:9: `label` must be text, but this is a whole number
   17 | label = 7
      |         ^
help: put it in quotes: `"7"`
"#);
}

#[test]
fn inline_tables_and_dotted_keys_have_places() {
    assert_snapshot!(faults_of(r#"config_version = 1
entry = [
  { id = "a", label = "A", kind = "vm", argv = ["a"], warning.befor = 3 },
  { id = "b", label = "B", kind = "tape", argv = ["b"] },
]
"#), @r#"
policy.toml:3:63: unknown key `befor` in `warning`
   3 |   { id = "a", label = "A", kind = "vm", argv = ["a"], warning.befor = 3 },
     |                                                               ^^^^^
help: did you mean `before`?

policy.toml:4:35: `kind` can't be "tape"
   4 |   { id = "b", label = "B", kind = "tape", argv = ["b"] },
     |                                   ^^^^^^
help: it can be `process`, `vm`, `media` or `custom`
"#);
}

#[test]
fn only_the_first_line_of_a_multi_line_value_is_shown() {
    assert_snapshot!(faults_of("config_version = 1\n[[entry]]\nid = \"a\"\nlabel = \"A\"\nkind = \"\"\"\nvm\nor so\"\"\"\nargv = [\"a\"]\n"), @r#"
policy.toml:5:8: `kind` can't be "vm\nor so"
   5 | kind = """
     |        ^^^
help: it can be `process`, `vm`, `media` or `custom`
"#);
}

#[test]
fn beyond_the_limit_faults_are_counted() {
    let many: String = (0..130).map(|number| format!("k{number:03} = 1\n")).collect();
    let text = faults_of(&format!("config_version = 1\n{many}"));
    let tail: String =
        text.lines().rev().take(6).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n");
    assert_snapshot!(tail, @r#"
policy.toml:101:1: unknown key `k099`
   101 | k099 = 1
       | ^^^^
help: remove it; known keys: `config_version`, `budget` and `entry`

and 30 more faults
"#);
    assert_eq!(text.matches("unknown key").count(), ward_diag::MAX_FAULTS);
}

fn cooldown(root: &mut TomlTable<'_>) -> Option<u32> {
    root.value_or_alias("cooldown_after_run", "min_gap_between_runs")?.read()
}

fn report<T: std::fmt::Debug>(result: Result<T, FaultReport>) -> String {
    result.unwrap_err().render(ReportStyle::Plain)
}

#[test]
fn a_key_with_two_names_is_read_by_either() {
    for text in ["cooldown_after_run = 5", "min_gap_between_runs = 5"] {
        assert_eq!(read(SourceText::new("a.toml", text), cooldown), Ok(5));
    }
    let both = "min_gap_between_runs = 5\ncooldown_after_run = 6\n";
    assert_snapshot!(report(read(SourceText::new("a.toml", both), cooldown)), @r#"
a.toml:1:1: `min_gap_between_runs` is another name for `cooldown_after_run`
   1 | min_gap_between_runs = 5
     | ^^^^^^^^^^^^^^^^^^^^
   2 | cooldown_after_run = 6
     | ------------------ set here as well
help: keep one of the two
"#);
}

#[test]
fn a_part_of_a_file_can_be_read_with_serde() {
    let payload = |root: &mut TomlTable<'_>| root.value("payload")?.deserialize::<BTreeMap<String, u8>>();
    let good = read(SourceText::new("a.toml", "payload = { a = 1, b = 2 }"), payload);
    assert_eq!(good.unwrap().into_values().collect::<Vec<_>>(), [1, 2]);
    assert_snapshot!(report(read(SourceText::new("a.toml", "[payload]\na = 1\nb = 256\n"), payload)), @r#"
a.toml:3:5: invalid value: integer `256`
   3 | b = 256
     |     ^^^
help: expected u8
"#);
    let hidden = SourceText::new("a.toml", "[payload]\npin = \"4711\"\n").hide_values_of(["pin"]);
    assert_snapshot!(report(read(hidden, payload)), @r#"
a.toml:2:7: could not read this value
   2 | pin = ***
     |       ^^^
help: correct it, or remove it
"#);
}

#[test]
fn an_unknown_key_with_advice_is_not_reported_as_missing() {
    let report = read(SourceText::new("policy.toml", "command = 1\ncolour = 2\n"), |root| {
        let argv = root.required::<u8>("argv");
        root.advise_unknown_keys(|key, _| {
            let advice = UnknownKeyAdvice { help: "write `argv`".to_owned(), meant: Some("argv".to_owned()) };
            (key == "command").then_some(advice)
        });
        argv
    });
    assert_snapshot!(report.unwrap_err().render(ReportStyle::Plain), @r#"
policy.toml:1:1: unknown key `command`
   1 | command = 1
     | ^^^^^^^
help: write `argv`

policy.toml:2:1: unknown key `colour`
   2 | colour = 2
     | ^^^^^^
help: remove it; known keys: `argv`
"#);
}

#[test]
fn warnings_come_with_the_value() {
    let read = |text: &str| {
        read_with_warnings(SourceText::new("policy.toml", text), |root| {
            root.required_with("run", |value| {
                value.warn(InvalidValue::new("this is short").help("write more"));
                value.read::<u8>()
            })
        })
    };
    let (value, warnings) = read("run = 30").unwrap();
    assert_eq!(
        (value, warnings.lines()),
        (30, vec!["policy.toml:1:7: this is short; write more".to_owned()])
    );
    // A source with faults gets a report about the faults only.
    assert_eq!(read("run = 300").unwrap_err().faults().len(), 1);
}
