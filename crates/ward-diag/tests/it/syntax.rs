//! Reports about texts that are not valid TOML, including the faults found in the rest of the text.

use insta::assert_snapshot;

use crate::value_faults::{faults_of, good_policy_with};

#[test]
fn text_without_quotes() {
    assert_snapshot!(good_policy_with("\"process\"", "process"), @r#"
policy.toml:9:8: the text after `kind =` must be in quotes
   9 | kind = process
     |        ^^^^^^^
help: put `"` before and after it
"#);
}

#[test]
fn a_missing_closing_quote() {
    assert_snapshot!(good_policy_with("\"process\"", "\"process"), @r#"
policy.toml:9:16: this text has no closing quote
   9 | kind = "process
     |                ^
help: end it with the quote it began with, on the same line
"#);
}

#[test]
fn a_missing_value() {
    assert_snapshot!(good_policy_with("\"process\"", ""), @r#"
policy.toml:9:8: `kind` has no value
   9 | kind =
     |        ^
help: write a value after `=`, or remove the line
"#);
}

#[test]
fn a_missing_equals_sign() {
    assert_snapshot!(good_policy_with("kind = ", "kind "), @r#"
policy.toml:9:1: this line has no `=`
   9 | kind "process"
     | ^^^^^^^^^^^^^^
help: write `key = value`, put a table's name in `[…]`, or start a comment with `#`
"#);
}

#[test]
fn a_missing_key() {
    assert_snapshot!(good_policy_with("kind = ", "= "), @r#"
policy.toml:9:1: there is no key before the `=`
   9 | = "process"
     | ^
help: write `key = value`
"#);
}

#[test]
fn a_sentence_in_the_file() {
    assert_snapshot!(good_policy_with("[budget.games]", "This is for the games.\n[budget.games]"), @r#"
policy.toml:3:1: this line has no `=`
   3 | This is for the games.
     | ^^^^^^^^^^^^^^^^^^^^^^
help: write `key = value`, put a table's name in `[…]`, or start a comment with `#`
"#);
}

#[test]
fn a_key_that_is_set_twice() {
    assert_snapshot!(good_policy_with("kind = ", "label = \"x\"\nkind = "), @r#"
policy.toml:9:1: `label` is set twice
   8 | label = "Tux, of Math Command"
     | ----- first set here
   9 | label = "x"
     | ^^^^^
help: keep one of the two, or write `[[entry]]` above it if another one begins here
"#);
}

#[test]
fn a_table_that_is_defined_twice() {
    assert_snapshot!(good_policy_with("[[entry]]", "[budget.games]\ndaily = \"2h\"\n[[entry]]"), @r#"
policy.toml:6:9: the table `games` is defined twice
   3 | [budget.games]
     |         ----- first set here
     ...
   6 | [budget.games]
     |         ^^^^^
help: merge the two tables
"#);
}

#[test]
fn a_dotted_key_that_is_set_twice() {
    assert_snapshot!(good_policy_with("[budget.games]\ndaily = \"1h\"", "budget.games.daily = 1\nbudget.games.daily = 2"), @r#"
policy.toml:4:14: `daily` is set twice
   3 | budget.games.daily = 1
     |              ----- first set here
   4 | budget.games.daily = 2
     |              ^^^^^
help: keep one of the two
"#);
}

#[test]
fn a_key_that_is_set_twice_in_an_inline_table() {
    assert_snapshot!(good_policy_with("[budget.games]\ndaily = \"1h\"", "budget.games = { daily = 1, daily = 2 }"), @r#"
policy.toml:3:29: `daily` is set twice
   3 | budget.games = { daily = 1, daily = 2 }
     |                             ^^^^^
help: keep one of the two
"#);
}

#[test]
fn an_unclosed_list_does_not_swallow_the_file() {
    assert_snapshot!(good_policy_with("[\"tuxmath\", \"--windowed\"]", "[\"tuxmath\",\n  \"--windowed\""), @r#"
policy.toml:10:8: this list is never closed
   10 | argv = ["tuxmath",
      |        ^
help: put a `]` after its last element
"#);
}

#[test]
fn an_unclosed_quote_in_a_list() {
    assert_snapshot!(good_policy_with("[\"tuxmath\", \"--windowed\"]", "[\"tuxmath\", \"--windowed]"), @r#"
policy.toml:10:20: this text has no closing quote
   10 | argv = ["tuxmath", "--windowed]
      |                    ^
help: end it with the quote it began with, on the same line
"#);
}

/// The parser takes these words for broken numbers and booleans.
#[test]
fn a_name_without_quotes() {
    for name in ["tom", "Theo", "finn", "nina", "inge", "emil"] {
        for value in [name.to_owned(), format!("[{name}]")] {
            let report = good_policy_with("[\"tuxmath\", \"--windowed\"]", &value);
            assert!(report.contains("the text after `argv =` must be in quotes"), "{report}");
            assert!(report.ends_with("help: put `\"` before and after it\n"), "{report}");
        }
    }
}

#[test]
fn an_open_brace_in_a_list() {
    assert_snapshot!(good_policy_with("[\"tuxmath\", \"--windowed\"]", "[{ from = \"15:00\", to = \"18:00\" ]"), @r#"
policy.toml:10:9: this `{` is never closed
   10 | argv = [{ from = "15:00", to = "18:00" ]
      |         ^
help: put a `}` before the `]`
"#);
}

#[test]
fn a_typographic_quote_and_a_straight_one_in_a_list() {
    assert_snapshot!(good_policy_with("[\"tuxmath\", \"--windowed\"]", "[“tuxmath\"]"), @r#"
policy.toml:10:9: `“` is a typographic quote, not a straight one
   10 | argv = [“tuxmath"]
      |         ^
help: use straight quotes in this line: `"` before and after the text
"#);
}

#[test]
fn a_missing_comma() {
    assert_snapshot!(good_policy_with("\"tuxmath\", \"--windowed\"", "\"tuxmath\" \"--windowed\""), @r#"
policy.toml:10:19: a comma is missing before this element
   10 | argv = ["tuxmath" "--windowed"]
      |                   ^
help: separate the elements with `,`
"#);
}

#[test]
fn an_unclosed_header() {
    assert_snapshot!(good_policy_with("[[entry.window]]", "[[entry.window]"), @r#"
policy.toml:15:16: this table's name has no closing bracket
   15 | [[entry.window]
      |                ^
help: write `[name]`, or `[[name]]` for one of several
"#);
}

#[test]
fn an_unknown_escape() {
    assert_snapshot!(good_policy_with("\"process\"", "\"C:\\games\""), @r#"
policy.toml:9:12: this backslash doesn't start a valid escape sequence
   9 | kind = "C:\games"
     |            ^
help: write `\\` for a backslash, or put the text in single quotes
"#);
}

#[test]
fn an_impossible_date() {
    assert_snapshot!(good_policy_with("volume = 0.5", "volume = 2026-02-31"), @r#"
policy.toml:13:10: invalid date
   13 | volume = 2026-02-31
      |          ^^^^^^^^^^
help: expected day between 01 and 28
"#);
}

#[test]
fn syntax_faults_and_value_faults_are_reported_together() {
    assert_snapshot!(faults_of(r#"config_version = 1
colour = green

[[entry]]
id = "tuxmath"
label "Tux"
kind = "proces"
argv = ["tuxmath",
volume = 3

[[entry]]
id = "paint"
label = "Paint
kind = "vm"
argv = []
"#), @r#"
policy.toml:2:10: the text after `colour =` must be in quotes
   2 | colour = green
     |          ^^^^^
help: put `"` before and after it

policy.toml:6:1: this line has no `=`
   6 | label "Tux"
     | ^^^^^^^^^^^
help: write `key = value`, put a table's name in `[…]`, or start a comment with `#`

policy.toml:7:8: `kind` can't be "proces"
   7 | kind = "proces"
     |        ^^^^^^^^
help: did you mean `process`? It can be `process`, `vm`, `media` or `custom`

policy.toml:8:8: this list is never closed
   8 | argv = ["tuxmath",
     |        ^
help: put a `]` after its last element

policy.toml:9:10: `volume` must be between 0 and 1, but is 3
   9 | volume = 3
     |          ^
help: write it like `volume = 1`

policy.toml:13:15: this text has no closing quote
   13 | label = "Paint
      |               ^
help: end it with the quote it began with, on the same line

policy.toml:15:8: `argv` must not be empty
   15 | argv = []
      |        ^^
help: add at least one element
"#);
}

#[test]
fn a_word_for_true_or_false() {
    assert_snapshot!(good_policy_with("volume = 0.5", "volume = True"), @r#"
policy.toml:13:10: `True` is written as `true`
   13 | volume = True
      |          ^^^^
help: write `volume = true`; if it is a text, put it in quotes: `"True"`
"#);
}

#[test]
fn a_word_for_true_in_a_list() {
    assert_snapshot!(good_policy_with("[\"tuxmath\", \"--windowed\"]", "[yes, \"x\"]"), @r#"
policy.toml:10:9: `yes` is written as `true`
   10 | argv = [yes, "x"]
      |         ^^^
help: write `true`; if it is a text, put it in quotes: `"yes"`
"#);
}

#[test]
fn typographic_quotes() {
    assert_snapshot!(good_policy_with("\"process\"", "“process”"), @r#"
policy.toml:9:8: `“` is a typographic quote, not a straight one
   9 | kind = “process”
     |        ^
help: use straight quotes in this line: `"` before and after the text
"#);
}

#[test]
fn a_typographic_closing_quote() {
    assert_snapshot!(good_policy_with("\"process\"", "\"process”"), @r#"
policy.toml:9:16: `”` is a typographic quote, not a straight one
   9 | kind = "process”
     |                ^
help: use straight quotes in this line: `"` before and after the text
"#);
}

#[test]
fn an_apostrophe_in_an_unclosed_text_is_not_a_quote() {
    assert_snapshot!(good_policy_with("\"process\"", "\"Anna’s process"), @r#"
policy.toml:9:23: this text has no closing quote
   9 | kind = "Anna’s process
     |                       ^
help: end it with the quote it began with, on the same line
"#);
}

#[test]
fn a_colon_in_place_of_an_equals_sign() {
    assert_snapshot!(good_policy_with("kind = ", "kind: "), @r#"
policy.toml:9:1: there must be a `=` after `kind`, not a `:`
   9 | kind: "process"
     | ^^^^^
help: write `kind = "process"`
"#);
}

#[test]
fn a_colon_after_a_key_of_an_inline_table() {
    assert_snapshot!(good_policy_with("[budget.games]\ndaily = \"1h\"", "budget.games = { daily: \"1h\" }"), @r#"
policy.toml:3:18: there must be a `=` after `daily`, not a `:`
   3 | budget.games = { daily: "1h" }
     |                  ^^^^^^
help: write `daily = …`
"#);
}
