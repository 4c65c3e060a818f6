//! A report never contains a hidden value, whatever is wrong with the value or around it.

use insta::assert_snapshot;
use ward_diag::{InvalidValue, ReportStyle, SourceText, TomlTable, read};

const SECRET: &str = "hunter2";

fn provider(root: &mut TomlTable<'_>) -> Option<()> {
    let kind = root.required_with("kind", |value| value.one_of(&[("mock", ()), ("remote", ())]));
    let key = root.optional_parsed("api_key", |text| {
        if text.len() == 32 {
            Ok(())
        } else {
            Err(InvalidValue::new(format!("`{text}` is no key")).help(format!("not {text}")))
        }
    });
    let timeout = root.optional::<u32>("timeout");
    kind.and(key).and(timeout.map(|_| ()))
}

/// Returns the report, after checking that the secret is not in it.
fn check(text: &str) -> String {
    assert!(text.contains(SECRET));
    let source = SourceText::new("config.toml", text).hide_values_of(["api_key"]);
    let report = read(source, provider).unwrap_err();
    let plain = report.render(ReportStyle::Plain);
    let json = serde_json::to_string(&report).unwrap();
    for shown in [&plain, &json, &report.render(ReportStyle::Coloured)] {
        assert!(!shown.contains("hunter"), "{shown}");
    }
    plain
}

#[test]
fn a_secret_is_masked_in_a_parser_message() {
    assert_snapshot!(check("kind = \"mock\"\napi_key = \"hunter2\" # mine\n"), @r#"
config.toml:2:11: `***` is no key
   2 | api_key = *** ***
     |           ^^^
help: not ***
"#);
}

#[test]
fn a_secret_of_the_wrong_type_is_masked() {
    assert_snapshot!(check("kind = \"mock\"\napi_key = [\"hunter2\"]\n"), @r#"
config.toml:2:11: `api_key` must be text, but this is a list
   2 | api_key = ***
     |           ^^^
help: write it like `api_key = "some text"`
"#);
}

#[test]
fn a_secret_under_a_misspelt_key_is_masked() {
    assert_snapshot!(check("kind = \"mock\"\napi_kye = \"hunter2\"\n"), @r#"
config.toml:2:1: unknown key `api_kye`
   2 | api_kye = ***
     | ^^^^^^^
help: did you mean `api_key`?
"#);
}

#[test]
fn a_secret_beside_another_fault_is_masked() {
    let text = "a = { api_key = \"hunter2\", kind = \"mok\" }\n";
    let source = SourceText::new("config.toml", text).hide_values_of(["api_key"]);
    let report = read(source, |root| {
        let mut table = root.table("a")?;
        provider(&mut table)
    })
    .unwrap_err();
    assert!(!report.to_string().contains("hunter"), "{report}");
    assert_snapshot!(report.render(ReportStyle::Plain), @r#"
config.toml:1:17: `***` is no key
   1 | a = { api_key = ***, kind = "mok" }
     |                 ^^^
help: not ***

config.toml:1:35: `kind` can't be "mok"
   1 | a = { api_key = ***, kind = "mok" }
     |                             ^^^^^
help: did you mean `mock`? It can be `mock` or `remote`
"#);
}

#[test]
fn a_secret_without_a_closing_quote_is_masked() {
    assert_snapshot!(check("kind = \"mock\"\napi_key = \"hunter2\n"), @r#"
config.toml:2:19: this text has no closing quote
   2 | api_key = ***
     |              ^
help: end it with the quote it began with, on the same line
"#);
}

#[test]
fn a_secret_without_quotes_is_masked() {
    assert_snapshot!(check("kind = \"mock\"\napi_key = hunter2\n"), @r#"
config.toml:2:11: the text after `api_key =` must be in quotes
   2 | api_key = ***
     |           ^^^
help: put `"` before and after it
"#);
}

#[test]
fn a_secret_without_an_equals_sign_is_masked() {
    assert_snapshot!(check("kind = \"mock\"\napi_key \"hunter2\"\n"), @r#"
config.toml:2:1: this line has no `=`
   2 | api_key ***
     | ^^^^^^^^^^^
help: write `key = value`, put a table's name in `[…]`, or start a comment with `#`
"#);
}

#[test]
fn a_secret_in_a_file_that_does_not_parse_is_masked() {
    for text in [
        "api_key = \"\"\"\nhunter2\n",
        "api_key = '''\nhunter2\n''' x",
        "api_key = [\n\"hunter2\"\n",
        "api_key = [\"a\", # don't ]\n\"hunter2\" 3]\n",
        "api_key = { a = 1,\n b = \"hunter2\" 3 }\n",
        "\"api_key\" = \"hunter2\nkind = 3",
        "x.api_key = \"hunter2",
        "api_key.x = \"hunter2",
        "api_key = \"a\"\napi_key = \"hunter2\"",
        "api_key : \"hunter2\"",
        "api_key = = \"hunter2\"",
    ] {
        check(text);
    }
}

#[test]
fn a_secret_under_an_escaped_key_is_masked() {
    assert_snapshot!(check("kind = \"mock\"\n\"api\\u005fkey\" = \"hunter2\"\n"), @r#"
config.toml:2:18: `***` is no key
   2 | "api\u005fkey" = ***
     |                  ^^^
help: not ***
"#);
}

#[test]
fn secrets_in_a_table_with_a_hidden_name_are_masked() {
    assert_snapshot!(check("kind = \"mock\"\n[api_key]\nvalue = \"hunter2\"\n"), @r#"
config.toml:2:1: `api_key` must be text, but this is a table
   2 | [api_key]
     | ^^^^^^^^^
help: write it like `api_key = "some text"`
"#);
    let source =
        SourceText::new("config.toml", "[api_key]\nvalue = \"hunter2\"\n").hide_values_of(["api_key"]);
    let report = read(source, |root| root.table("api_key")?.required::<u8>("value")).unwrap_err();
    assert_snapshot!(report.render(ReportStyle::Plain), @r#"
config.toml:2:9: `value` must be a whole number, but this is text
   2 | value = ***
     |         ^^^
help: write it like `value = 10`
"#);
}

#[test]
fn a_span_can_be_hidden_explicitly() {
    let report = read(SourceText::new("config.toml", "pin = 4711\n"), |root| {
        let pin = root.value("pin")?;
        root.faults().hide(pin.span());
        pin.report_fault("too-short", "the pin is too short");
        Some(())
    })
    .unwrap_err();
    assert_snapshot!(report.render(ReportStyle::Plain), @r#"
config.toml:1:7: the pin is too short
   1 | pin = ***
     |       ^^^
"#);
}

#[test]
fn secrets_in_an_unknown_table_are_masked_but_its_name_is_shown() {
    let report = check("kind = \"mock\"\ntimeout = 3\n[timout]\nx = \"hunter2\"\n");
    assert_snapshot!(report, @r#"
    config.toml:3:2: unknown key `timout`
       3 | [timout]
         |  ^^^^^^
    help: did you mean `timeout`?
    "#);
}
