//! Reports about wrong values and keys, in a small policy language that is read like the real one.

use insta::assert_snapshot;
use ward_diag::{
    ConfigFault, InvalidValue, ReportStyle, SourceText, Span, Spanned, TomlTable, TomlValue, ValueKind, read,
};

#[derive(Debug)]
pub(crate) struct TestPolicy {
    pub(crate) entries: Vec<TestEntry>,
}

#[derive(Debug)]
pub(crate) struct TestEntry {
    pub(crate) id: Spanned<String>,
    budget: Option<Spanned<String>>,
}

pub(crate) fn policy(root: &mut TomlTable<'_>) -> Option<TestPolicy> {
    let version = root.required_with("config_version", version);
    root.help_if_missing("config_version", "start the file with `config_version = 1`");
    let budgets = root.table("budget").map(|mut table| table.entries()).unwrap_or_default();
    let entries: Vec<Option<TestEntry>> = root.tables("entry").into_iter().map(entry).collect();
    root.faults().report_duplicates("entry id", entries.iter().flatten().map(|entry| &entry.id));
    if !root.is_incomplete() {
        for budget in entries.iter().flatten().filter_map(|entry| entry.budget.as_ref()) {
            if !budgets.iter().any(|(name, _)| name.value == budget.value) {
                let name = Spanned::new(budget.value.as_str(), budget.span);
                root.faults().report_unknown_name("budget", name, budgets.iter().map(|(name, _)| name.value));
            }
        }
    }
    version?;
    Some(TestPolicy { entries: entries.into_iter().collect::<Option<_>>()? })
}

fn version(value: TomlValue<'_>) -> Option<i128> {
    let version = value.integer_in(0..=i128::MAX)?;
    if version != 1 {
        value.reject(
            InvalidValue::new(format!("this program reads version 1, not {version}"))
                .code("wrong-version")
                .help("write `config_version = 1`, or install a newer version"),
        );
        return None;
    }
    Some(version)
}

fn entry(mut table: TomlTable<'_>) -> Option<TestEntry> {
    let id = table.required_with("id", |value| value.parse(entry_id).map(|id| value.spanned(id)));
    let label = table.required_with("label", TomlValue::non_empty_text);
    let _disabled = table.optional::<bool>("disabled");
    let budget = table.optional::<Spanned<String>>("budget");
    let kind = table.required_with("kind", |value| {
        value.one_of(&[("process", 'p'), ("vm", 'v'), ("media", 'm'), ("custom", 'c')])
    });
    let argv = table.required_with("argv", |value| {
        let elements = value.non_empty_elements()?;
        elements
            .into_iter()
            .map(TomlValue::read::<String>)
            .collect::<Vec<_>>()
            .into_iter()
            .collect::<Option<Vec<_>>>()
    });
    let max_run = table.optional_with("max_run", duration);
    let volume = table.optional_with("volume", |value| value.number_in(0.0..=1.0));
    let priority = table.optional::<u8>("priority");
    for mut window in table.tables("window") {
        let _days = window.required::<Vec<String>>("days");
        let from = window.required::<Spanned<String>>("from");
        let to = window.required::<Spanned<String>>("to");
        if let (Some(from), Some(to)) = (from, to)
            && from.value == to.value
        {
            window.faults().push(
                ConfigFault::new("empty-window", to.span, "this window ends when it begins")
                    .related(from.span, "it begins here")
                    .help("write a later `to`; one after midnight is fine"),
            );
        }
        window.finish();
    }
    if let Some(mut warning) = table.table("warning") {
        let before = warning.required_with("before", duration);
        if let (Some(before), Some(max_run)) = (before, max_run)
            && before.value >= max_run.value
        {
            warning.faults().push(
                ConfigFault::new(
                    "warning-too-early",
                    before.span,
                    format!(
                        "this warns {} seconds before the end of a run of {}",
                        before.value, max_run.value
                    ),
                )
                .related(max_run.span, "the longest run")
                .help("lower the warning, or raise `max_run`"),
            );
        }
        warning.finish();
    }
    table.finish();
    let _ = (label?, kind?, argv?, volume, priority);
    Some(TestEntry { id: id?, budget })
}

fn entry_id(text: &str) -> Result<String, InvalidValue> {
    match text.char_indices().find(|(_, c)| !c.is_ascii_lowercase() && *c != '-') {
        None => Ok(text.to_owned()),
        Some((at, bad)) => Err(InvalidValue::new(format!("an id can't contain `{bad}`"))
            .help("use lower-case letters and `-`")
            .at(at..at + bad.len_utf8())),
    }
}

/// Reads `"45m"`, `"90s"` or whole seconds.
fn duration(value: TomlValue<'_>) -> Option<Spanned<u64>> {
    let seconds = match value.kind() {
        ValueKind::Integer(_) => u64::try_from(value.integer_in(0..=86_400)?).ok()?,
        _ => value.parse(|text| {
            let (number, unit) =
                text.split_at(text.len() - text.chars().next_back().map_or(0, char::len_utf8));
            let number: u64 = number
                .parse()
                .map_err(|_| InvalidValue::new("not a duration").help("write it like \"45m\""))?;
            match unit {
                "s" => Ok(number),
                "m" => Ok(number * 60),
                "h" => Ok(number * 3600),
                _ => Err(InvalidValue::new(format!("unknown unit `{unit}`"))
                    .help("use `s`, `m` or `h`")
                    .at(text.len() - unit.len()..text.len())),
            }
        })?,
    };
    Some(value.spanned(seconds))
}

/// Returns the report about a policy that must be rejected.
pub(crate) fn faults_of(text: &str) -> String {
    match read(SourceText::new("policy.toml", text), policy) {
        Ok(policy) => panic!("this should have been rejected: {policy:?}"),
        Err(report) => report.render(ReportStyle::Plain),
    }
}

const GOOD: &str = "\
config_version = 1

[budget.games]
daily = \"1h\"

[[entry]]
id = \"tuxmath\"
label = \"Tux, of Math Command\"
kind = \"process\"
argv = [\"tuxmath\", \"--windowed\"]
budget = \"games\"
max_run = \"60m\"
volume = 0.5

[[entry.window]]
days = [\"sat\"]
from = \"10:00\"
to = \"18:00\"

[entry.warning]
before = 300
";

/// Returns the report about the good policy with one text replaced by another.
pub(crate) fn good_policy_with(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    faults_of(&GOOD.replacen(from, to, 1))
}

#[test]
fn a_good_policy_has_no_faults() {
    let policy = read(SourceText::new("policy.toml", GOOD), policy).unwrap();
    assert_eq!(policy.entries.len(), 1);
    assert_eq!(policy.entries[0].id.value, "tuxmath");
    let Span { start, end } = policy.entries[0].id.span;
    assert_eq!(&GOOD[start..end], "\"tuxmath\"");
}

#[test]
fn an_unknown_key_with_a_near_one() {
    assert_snapshot!(good_policy_with("max_run", "max-runs"), @r#"
policy.toml:12:1: unknown key `max-runs` in `entry`
   12 | max-runs = "60m"
      | ^^^^^^^^
help: did you mean `max_run`?
"#);
}

#[test]
fn an_unknown_key_with_nothing_near() {
    assert_snapshot!(good_policy_with("volume", "colour"), @r#"
policy.toml:13:1: unknown key `colour` in `entry`
   13 | colour = 0.5
      | ^^^^^^
help: remove it; known keys: `id`, `label`, `disabled`, `budget`, `kind`, `argv`, `max_run`, `volume`, `priority`, `window` and `warning`
"#);
}

#[test]
fn an_unknown_table() {
    assert_snapshot!(good_policy_with("[entry.warning]", "[entry.warnign]"), @r#"
policy.toml:20:8: unknown key `warnign` in `entry`
   20 | [entry.warnign]
      |        ^^^^^^^
help: did you mean `warning`?
"#);
}

#[test]
fn a_missing_key() {
    assert_snapshot!(good_policy_with("label = \"Tux, of Math Command\"\n", ""), @r#"
policy.toml:6:1: `label` is missing in `entry`
   6 | [[entry]]
     | ^^^^^^^^^
help: add a line `label = …`
"#);
}

#[test]
fn a_missing_key_of_the_file() {
    assert_snapshot!(good_policy_with("config_version = 1", ""), @r#"
policy.toml:1:1: `config_version` is missing
help: start the file with `config_version = 1`
"#);
}

#[test]
fn a_misspelt_required_key_is_one_fault() {
    assert_snapshot!(good_policy_with("label", "lable"), @r#"
policy.toml:8:1: unknown key `lable` in `entry`
   8 | lable = "Tux, of Math Command"
     | ^^^^^
help: did you mean `label`?
"#);
}

#[test]
fn a_wrong_version() {
    assert_snapshot!(good_policy_with("config_version = 1", "config_version = 2"), @r#"
policy.toml:1:18: this program reads version 1, not 2
   1 | config_version = 2
     |                  ^
help: write `config_version = 1`, or install a newer version
"#);
}

#[test]
fn a_number_in_quotes() {
    assert_snapshot!(good_policy_with("config_version = 1", "config_version = \"1\""), @r#"
policy.toml:1:18: `config_version` must be a whole number, but this is text
   1 | config_version = "1"
     |                  ^^^
help: remove the quotes
"#);
}

#[test]
fn text_without_quotes_that_reads_as_a_time() {
    assert_snapshot!(good_policy_with("\"10:00\"", "10:00"), @r#"
policy.toml:17:8: `from` must be text, but this is a date or time
   17 | from = 10:00
      |        ^^^^^
help: put it in quotes: `"10:00"`
"#);
}

#[test]
fn true_in_quotes() {
    assert_snapshot!(good_policy_with("volume = 0.5", "disabled = \"true\""), @r#"
policy.toml:13:12: `disabled` must be `true` or `false`, but this is text
   13 | disabled = "true"
      |            ^^^^^^
help: remove the quotes
"#);
}

#[test]
fn a_number_out_of_range() {
    assert_snapshot!(good_policy_with("volume = 0.5", "priority = 300"), @r#"
policy.toml:13:12: `priority` must be between 0 and 255, but is 300
   13 | priority = 300
      |            ^^^
help: write it like `priority = 255`
"#);
}

#[test]
fn a_negative_duration() {
    assert_snapshot!(good_policy_with("before = 300", "before = -5"), @r#"
policy.toml:21:10: `before` must be between 0 and 86400, but is -5
   21 | before = -5
      |          ^^
help: write it like `before = 0`
"#);
}

#[test]
fn a_number_beyond_all_bounds() {
    assert_snapshot!(good_policy_with("before = 300", "before = 99999999999999999999999999999999999999999999"), @r#"
policy.toml:21:10: `before` must be between 0 and 86400, but is 99999999999999999999999999999999999999999999
   21 | before = 99999999999999999999999999999999999999999999
      |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
help: write it like `before = 86400`
"#);
}

#[test]
fn a_fraction_out_of_range() {
    assert_snapshot!(good_policy_with("volume = 0.5", "volume = 11"), @r#"
policy.toml:13:10: `volume` must be between 0 and 1, but is 11
   13 | volume = 11
      |          ^^
help: write it like `volume = 1`
"#);
}

#[test]
fn not_a_number() {
    assert_snapshot!(good_policy_with("volume = 0.5", "volume = nan"), @r#"
policy.toml:13:10: `volume` must be between 0 and 1, but is nan
   13 | volume = nan
      |          ^^^
help: write it like `volume = 1`
"#);
}

#[test]
fn an_unknown_kind_with_a_near_one() {
    assert_snapshot!(good_policy_with("\"process\"", "\"proces\""), @r#"
policy.toml:9:8: `kind` can't be "proces"
   9 | kind = "proces"
     |        ^^^^^^^^
help: did you mean `process`? It can be `process`, `vm`, `media` or `custom`
"#);
}

#[test]
fn an_unknown_kind_with_nothing_near() {
    assert_snapshot!(good_policy_with("\"process\"", "\"game\""), @r#"
policy.toml:9:8: `kind` can't be "game"
   9 | kind = "game"
     |        ^^^^^^
help: it can be `process`, `vm`, `media` or `custom`
"#);
}

#[test]
fn an_empty_list() {
    assert_snapshot!(good_policy_with("[\"tuxmath\", \"--windowed\"]", "[]"), @r#"
policy.toml:10:8: `argv` must not be empty
   10 | argv = []
      |        ^^
help: add at least one element
"#);
}

#[test]
fn a_list_without_brackets() {
    assert_snapshot!(good_policy_with("[\"tuxmath\", \"--windowed\"]", "\"tuxmath\""), @r#"
policy.toml:10:8: `argv` must be a list, but this is text
   10 | argv = "tuxmath"
      |        ^^^^^^^^^
help: put it in brackets: `["tuxmath"]`
"#);
}

#[test]
fn every_bad_element_of_a_list() {
    assert_snapshot!(good_policy_with("[\"tuxmath\", \"--windowed\"]", "[1, \"--windowed\", true]"), @r#"
policy.toml:10:9: each element of `argv` must be text, but this is a whole number
   10 | argv = [1, "--windowed", true]
      |         ^
help: put it in quotes: `"1"`

policy.toml:10:26: each element of `argv` must be text, but this is true or false
   10 | argv = [1, "--windowed", true]
      |                          ^^^^
help: put it in quotes: `"true"`
"#);
}

#[test]
fn an_empty_text() {
    assert_snapshot!(good_policy_with("\"Tux, of Math Command\"", "\"  \""), @r#"
policy.toml:8:9: `label` must not be empty
   8 | label = "  "
     |         ^^^^
help: write something between the quotes
"#);
}

#[test]
fn a_bad_character_is_pointed_at() {
    assert_snapshot!(good_policy_with("\"tuxmath\"", "\"tuxMath\""), @r#"
policy.toml:7:10: an id can't contain `M`
   7 | id = "tuxMath"
     |          ^
help: use lower-case letters and `-`
"#);
}

#[test]
fn a_bad_character_behind_an_escape_is_in_the_whole_value() {
    assert_snapshot!(good_policy_with("\"tuxmath\"", "\"tux\\u004dath\""), @r#"
policy.toml:7:6: an id can't contain `M`
   7 | id = "tux\u004dath"
     |      ^^^^^^^^^^^^^^
help: use lower-case letters and `-`
"#);
}

#[test]
fn a_bad_unit() {
    assert_snapshot!(good_policy_with("\"60m\"", "\"60q\""), @r#"
policy.toml:12:14: unknown unit `q`
   12 | max_run = "60q"
      |              ^
help: use `s`, `m` or `h`
"#);
}

#[test]
fn an_empty_duration() {
    assert_snapshot!(good_policy_with("\"60m\"", "\"\""), @r#"
policy.toml:12:11: not a duration
   12 | max_run = ""
      |           ^^
help: write it like "45m"
"#);
}

#[test]
fn a_table_where_text_is_wanted() {
    assert_snapshot!(good_policy_with("label = \"Tux, of Math Command\"", "label = { en = \"Tux\" }"), @r#"
policy.toml:8:9: `label` must be text, but this is a table
   8 | label = { en = "Tux" }
     |         ^^^^^^^^^^^^^^
help: write it like `label = "some text"`
"#);
}

#[test]
fn text_where_a_table_is_wanted() {
    assert_snapshot!(good_policy_with("[budget.games]\ndaily = \"1h\"", "budget = \"games\""), @r#"
policy.toml:3:10: `budget` must be a table, but this is text
   3 | budget = "games"
     |          ^^^^^^^
help: write `[budget]` on a line of its own, and its keys below

policy.toml:10:10: there is no budget `games`
   10 | budget = "games"
      |          ^^^^^^^
help: no budget is defined in this file
"#);
}

#[test]
fn single_brackets_where_double_ones_are_wanted() {
    assert_snapshot!(good_policy_with("[[entry.window]]", "[entry.window]"), @r#"
policy.toml:15:1: each `window` table needs double brackets
   15 | [entry.window]
      | ^^^^^^^^^^^^^^
help: write `[[entry.window]]`
"#);
}
