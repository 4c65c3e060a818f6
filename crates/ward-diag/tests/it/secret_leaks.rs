//! A canary is written under a hidden key, in every form that TOML and typos allow, and must never appear in
//! a report.

use proptest::prelude::*;
use ward_diag::{FaultReport, InvalidValue, ReportStyle, SourceText, TomlTable, TomlValue, ValueKind, read};

use crate::properties::pieces;
use crate::value_faults::policy;

const CANARY: &str = "QZXJWV";

/// A reader that reports a fault about every value, and quotes the value in as many messages as possible.
fn report_every_fault(table: &mut TomlTable<'_>) -> Option<()> {
    for (_, value) in table.entries() {
        report_faults_of_value(value);
        if let ValueKind::Text(text) = value.kind() {
            let name = value.spanned(text);
            table.faults().report_unknown_name("name", name, []);
            table.faults().report_duplicates("name", [&name, &name]);
        }
    }
    None
}

fn report_faults_of_value(value: TomlValue<'_>) {
    value.report_fault("seen", format!("{} is {}", value.name(), value.quoted()));
    let _ = value
        .text()
        .map(|text| value.reject(InvalidValue::new(format!("not {text}")).help(format!("no {text}"))));
    let _ = (value.boolean(), value.integer_in(0..=0), value.deserialize::<u8>());
    match value.kind() {
        ValueKind::Table => value.table().iter_mut().for_each(|table| {
            report_every_fault(table);
        }),
        ValueKind::Array => value.elements().into_iter().flatten().for_each(report_faults_of_value),
        _ => {}
    }
}

fn check_report(text: &str, report: &FaultReport) {
    let json = serde_json::to_string(&report).unwrap();
    for shown in [report.render(ReportStyle::Plain), report.render(ReportStyle::Coloured), json] {
        assert!(!shown.contains(CANARY), "{text}\n---\n{shown}");
    }
}

fn check(text: &str) {
    let source = SourceText::new("config.toml", text).hide_values_of(["token"]);
    let readers: [fn(&mut TomlTable<'_>) -> Option<()>; 3] = [
        report_every_fault,
        |root| policy(root).map(|_| ()),
        |root| root.table("token")?.required::<u8>("v").map(|_| ()),
    ];
    for reader in readers {
        if let Err(report) = read(source.clone(), reader) {
            check_report(text, &report);
        }
    }
    let mut bytes = text.replace(CANARY, "\u{1}QZXJWV").into_bytes();
    bytes.iter_mut().filter(|byte| **byte == 1).for_each(|byte| *byte = 0xff);
    let source = SourceText::from_bytes("config.toml", &bytes).hide_values_of(["token"]);
    check_report(text, &read(source, report_every_fault).unwrap_err());
}

const KEYS: &[&str] = &[
    "token",
    "\"token\"",
    "'token'",
    "\"tok\\u0065n\"",
    "\"\\x74oken\"",
    "\"\\U00000074oken\"",
    "a.token",
    "token.b",
    "a . \"tok\\u0065n\" . b",
];

/// Statements in which `K` stands for the key and `V` for the value.
const STATEMENTS: &[&str] = &[
    "K = V",
    "K V",
    "K: V",
    "K = = V",
    "K =\n  V",
    "K =\n\n# why\n V",
    "x = { K = V }",
    "x = { y = 1, K = V, z = 2 }",
    "x = [ { K = V } ]",
    "x = [\n 1, { K =\n V }\n",
    "[K]\nv = V",
    "[[K]]\nv = V",
    "[K]\nv = 1\nv = V",
    "[K]\nv V",
    "[K.c]\n[K.c.d]\nv = V",
    "[K\nv = V",
    "[[K]\nv = V",
    "[K] v = V",
    "[K]\nv = [ V \"b\" ]",
    "[K]\nv = V\n[x]\nv = 1",
    "K = 1\nK = V",
    "K = [\n \"a\",\n V\n]",
    "K = { a = 1, b = V }",
    "kind = 1 # K = V",
    "# K = V",
    "K = 1 # V",
    "K = \"\"\"\nabc\"\"\"V",
    "K = '''\nabc''' V",
    "K = \"\"\"\n[x]\ny = V\n",
    "K = '''\nkind = V\n''' x",
    "K = \"abc\\\" V",
    "budget = '''\nK = V\n'''",
    "[[entry]]\nbudget = '''\nK = V\n'''",
];

const VALUES: &[&str] = &[
    "C",
    "\"C\"",
    "'C'",
    "\"C",
    "C\"",
    "\"\"\"C\"\"\"",
    "\"\"\"\nC\n\"\"\"",
    "'''C",
    "'''\nx\nC'''",
    "[\"C\"]",
    "[\"C\", 3",
    "{ d = \"C\" }",
    "{ d = C }",
    "\"C\" oops",
    "\"a\" C",
    "\"a\\qC\"",
    "\"a\" # C",
    "1C",
    "2026-13-40C",
    "C, D",
    "C]",
    "}C",
];

fn document(key: &str, statement: &str, value: &str) -> String {
    statement.replace('K', key).replace('V', value).replace('C', CANARY)
}

#[test]
fn secrets_stay_hidden_in_every_position_and_typo() {
    let mut other_keys = KEYS.iter().cycle();
    for statement in STATEMENTS {
        for value in VALUES {
            check(&document("token", statement, value));
            check(&document(other_keys.next().unwrap(), statement, value));
        }
    }
}

#[test]
fn secrets_stay_hidden_in_known_regressions() {
    for text in [
        "[token]\nvalue = \"QZXJWV\" oops\n",
        "[token]\nv = 1\nv = \"QZXJWV\"\n",
        "[token]\nv = [ \"QZXJWV\" \"b\" ]\n",
        "[[token]]\nv = QZXJWV\n",
        "[a.token.b]\nv = QZXJWV\n",
        "token =\n  \"QZXJWV\"\n",
        "token = \"\"\"\nabc\"\"\"QZXJWV\n",
        "\"tok\\u0065n\" = \"QZXJWV\" x\n",
        "x = { \"tok\\u0065n\" = QZXJWV }\n",
        "tokne.x = \"QZXJWV\"\n",
        "tokne = QZXJWV\n",
        "tokne = \"QZXJWV\"\ntokne = 1\n",
    ] {
        let source = SourceText::new("config.toml", text).hide_values_of(["token"]);
        check_report(text, &read(source, |root| root.optional::<u8>("token")).unwrap_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn secrets_stay_hidden_with_any_text_around_them(
        before in pieces(),
        key in prop::sample::select(KEYS),
        statement in prop::sample::select(STATEMENTS),
        value in prop::sample::select(VALUES),
        after in pieces(),
    ) {
        check(&format!("{before}\n{}\n{after}", document(key, statement, value)));
    }
}
