//! Files with unusual encodings, sizes, characters or nesting.

use std::time::{Duration, Instant};

use insta::assert_snapshot;
use ward_diag::{InvalidValue, MAX_SOURCE_BYTES, ReportStyle, SourceText, Spanned, TomlTable, read};

fn number(root: &mut TomlTable<'_>) -> Option<u8> {
    root.required::<u8>("number")
}

fn check(bytes: &[u8]) -> String {
    read(SourceText::from_bytes("a.toml", bytes), number).unwrap_err().render(ReportStyle::Plain)
}

#[test]
fn an_empty_file() {
    assert_snapshot!(check(b""), @r#"
a.toml:1:1: `number` is missing
help: add a line `number = …`
"#);
}

#[test]
fn a_file_that_is_not_utf8() {
    assert_snapshot!(check(b"number = 3\nname = \"caf\xe9\"\n"), @r#"
a.toml:2:12: the file is not valid UTF-8 from here on
   2 | name = "caf�"
     |            ^
help: save the file as UTF-8
"#);
}

#[test]
fn a_file_that_is_not_utf8_after_a_byte_order_mark() {
    assert_snapshot!(check(b"\xef\xbb\xbfname = \"caf\xe9\"\n"), @r#"
a.toml:1:12: the file is not valid UTF-8 from here on
   1 | name = "caf�"
     |            ^
help: save the file as UTF-8
"#);
}

#[test]
fn a_byte_order_mark_does_not_move_the_columns() {
    assert_snapshot!(check("\u{feff}number = true\n".as_bytes()), @r#"
a.toml:1:10: `number` must be a whole number, but this is true or false
   1 | number = true
     |          ^^^^
help: write it like `number = 10`
"#);
}

#[test]
fn windows_line_ends() {
    assert_snapshot!(check(b"# one\r\nnumber = true\r\nx = 1\r\n"), @r#"
a.toml:2:10: `number` must be a whole number, but this is true or false
   2 | number = true
     |          ^^^^
help: write it like `number = 10`

a.toml:3:1: unknown key `x`
   3 | x = 1
     | ^
help: remove it; known keys: `number`
"#);
}

#[test]
fn tabs_and_wide_characters_before_the_place() {
    assert_snapshot!(check("\t\tnumber = \"数字🦀\"\nx = { 'ключ' = 1, y = \"é\" }\n".as_bytes()), @r#"
a.toml:1:12: `number` must be a whole number, but this is text
   1 |         number = "数字🦀"
     |                  ^^^^^^^^
help: write it like `number = 10`

a.toml:2:1: unknown key `x`
   2 | x = { 'ключ' = 1, y = "é" }
     | ^
help: remove it; known keys: `number`
"#);
}

#[test]
fn control_characters_are_made_visible() {
    let text = check(b"number = 1 # \x1b[31m red\nx = \"a\0b\"\n\"\x1b[2J\" = 1");
    assert!(!text.contains(['\u{1b}', '\0']), "{text:?}");
    assert_snapshot!(text, @r#"
a.toml:1:14: this is an invisible control character
   1 | number = 1 # ␛[31m red
     |              ^
help: remove it

a.toml:2:7: this is an invisible control character
   2 | x = "a␀b"
     |       ^
help: remove it

a.toml:3:2: this is an invisible control character
   3 | "␛[2J" = 1
     |  ^
help: remove it
"#);
}

#[test]
fn an_escaped_key_does_not_reach_the_terminal() {
    let text = check(b"number = 1\n\"\\u001b[2J\\u202e\" = 1");
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    assert_snapshot!(text, @r#"
a.toml:2:1: unknown key `\u{1b}[2J\u{202e}`
   2 | "\u001b[2J\u202e" = 1
     | ^^^^^^^^^^^^^^^^^
help: remove it; known keys: `number`
"#);
}

#[test]
fn messages_of_the_caller_are_escaped_too() {
    let report = read(SourceText::new("\u{1b}c.toml", "number = 1\n"), |root| {
        let value = root.value("number")?;
        value.reject(InvalidValue::new("bad \u{1b}[2J\n\u{202e}thing").help("not \u{7}this"));
        let name = value.spanned("\u{1b}]0;x");
        root.faults().report_unknown_name("budget", name, ["a\u{1b}b"]);
        root.faults().report_duplicates("id", [&name, &name]);
        Some(())
    });
    let text = report.unwrap_err().render(ReportStyle::Plain);
    assert!(!text.contains(|c: char| c.is_control() && c != '\n' || c == '\u{202e}'), "{text:?}");
    assert_snapshot!(text, @r#"
\u{1b}c.toml:1:10: bad \u{1b}[2J\n\u{202e}thing
   1 | number = 1
     |          ^
help: not \u{7}this

\u{1b}c.toml:1:10: there is no budget `\u{1b}]0;x`
   1 | number = 1
     |          ^
help: use `a\u{1b}b`

\u{1b}c.toml:1:10: id `\u{1b}]0;x` is used twice
   1 | number = 1
     |          ^
     |          |
     |          first used here
help: give each a different id
"#);
}

#[test]
fn heavy_a_very_long_line_is_cut_around_the_place() {
    let text = format!("{} = 1\nnumber = 1 # {}", "k".repeat(400_000), "c".repeat(400_000));
    let started = Instant::now();
    let report = check(text.as_bytes());
    assert!(report.lines().all(|line| line.chars().count() < 200), "{report}");
    assert!(report.contains("unknown key `kkk"), "{report}");
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_file_beyond_the_limit_is_rejected() {
    assert_snapshot!(check("x = 1\n".repeat(10 * 1024 * 1024 / 6).as_bytes()), @r#"
a.toml:1:1: this file has 10485756 bytes, but the limit is 1048576
help: check that it is the right file
"#);
    assert!(check(&vec![0xff; MAX_SOURCE_BYTES + 1]).contains("but the limit is 1048576"));
}

#[test]
fn a_file_at_the_limit_is_read() {
    let text = format!("number = 1\n#{}", "x".repeat(MAX_SOURCE_BYTES - 12));
    assert_eq!(text.len(), MAX_SOURCE_BYTES);
    assert_eq!(read(SourceText::new("a.toml", text), number), Ok(1));
}

#[test]
fn very_deep_nesting_is_rejected() {
    for text in [
        format!("number = {}", "[".repeat(50_000)),
        format!("number = {}1{}", "[".repeat(50_000), "]".repeat(50_000)),
        format!("number = {}", "{a=".repeat(50_000)),
        format!("{} = 1", vec!["a"; 50_000].join(".")),
        format!("[{}]", vec!["a"; 50_000].join(".")),
    ] {
        let report = check(text.as_bytes());
        assert!(report.contains("nested too deeply"), "{report}");
    }
}

#[test]
fn heavy_a_file_full_of_faults_is_rejected_in_time() {
    let started = Instant::now();
    for line in ["= 1\n", "x\n", "[a\n", "a = [\n", "\"\n", "k = nonsense\n", "]\n", "a.b = 1\n"] {
        check(line.repeat(20_000 / line.len()).as_bytes());
    }
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn heavy_a_file_full_of_hidden_keys_is_read_in_time() {
    let started = Instant::now();
    let text = "key = [\n".repeat(20_000);
    let report = read(SourceText::new("a.toml", text).hide_values_of(["key"]), number).unwrap_err();
    assert!(
        report.omitted_count() == 0 && started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn deep_tables_with_a_double_key_are_read_in_time() {
    let path = vec!["a"; 70].join(".");
    let report = check(format!("{path} = 1\n{path} = 2\n").as_bytes());
    assert!(report.contains("`a` is set twice") && report.contains("first set here"), "{report}");
}

#[test]
fn a_reader_that_fails_without_a_fault_is_reported() {
    let report = read(SourceText::new("a.toml", ""), |_| None::<()>).unwrap_err();
    assert_eq!(report.faults()[0].code(), "unreadable");
}

#[test]
fn positions_count_characters() {
    let source = SourceText::new("a.toml", "é = 1\r\n数 = 2");
    let at = |offset| {
        let position = source.position(offset);
        (position.line, position.column)
    };
    assert_eq!(
        [at(0), at(1), at(2), at(7), at(8), at(11), at(999)],
        [(1, 1), (1, 1), (1, 2), (1, 7), (2, 1), (2, 2), (2, 6)]
    );
}

#[test]
fn colours_are_the_callers_choice() {
    let report = read(SourceText::new("a.toml", "number = 300\nx = 1"), number).unwrap_err();
    assert!(report.render(ReportStyle::Coloured).contains("\u{1b}["));
    assert!(!report.render(ReportStyle::Plain).contains('\u{1b}'));
    assert_eq!(report.to_string(), report.render(ReportStyle::Plain));
}

#[test]
fn maps_keep_every_element() {
    let read = read(SourceText::new("a.toml", "[ages]\nanna = 7\nben = 9\n"), |root| {
        root.required::<std::collections::BTreeMap<String, Spanned<u8>>>("ages")
    });
    let ages: Vec<_> = read.unwrap().into_iter().map(|(name, age)| (name, age.value)).collect();
    assert_eq!(ages, [("anna".to_owned(), 7), ("ben".to_owned(), 9)]);
}
