//! Reports as JSON and through the accessors of a fault.

use serde_json::json;
use ward_diag::{SourceText, TomlTable, read};

fn two_numbers(root: &mut TomlTable<'_>) -> Option<(u8, u8)> {
    let first = root.required::<u8>("first");
    let second = root.required::<u8>("second");
    first.zip(second)
}

#[test]
fn a_report_is_data_with_places_and_codes() {
    let report =
        read(SourceText::new("a.toml", "first = \"é\"\nsecnd = 2\nfirst = 3\n"), two_numbers).unwrap_err();
    assert_eq!(
        serde_json::to_value(&report).unwrap(),
        json!({
            "faults": [
                {
                    "file": "a.toml", "line": 1, "column": 9, "end": { "line": 1, "column": 12 },
                    "code": "wrong-type", "fault": "`first` must be a whole number, but this is text",
                    "help": "write it like `first = 10`",
                },
                {
                    "file": "a.toml", "line": 2, "column": 1, "end": { "line": 2, "column": 6 },
                    "code": "unknown-key", "fault": "unknown key `secnd`", "help": "did you mean `second`?",
                },
                {
                    "file": "a.toml", "line": 3, "column": 1, "end": { "line": 3, "column": 6 },
                    "code": "duplicate-key", "fault": "`first` is set twice", "help": "keep one of the two",
                    "related": [{ "line": 1, "column": 1, "end": { "line": 1, "column": 6 }, "note": "first set here" }],
                },
            ],
            "more": 0,
        })
    );
}

#[test]
fn a_fault_exposes_its_code_place_and_help() {
    let report = read(SourceText::new("a.toml", "first = 1\n"), two_numbers).unwrap_err();
    let [fault] = report.faults() else { panic!("{report}") };
    assert_eq!(fault.code(), "missing-key");
    assert_eq!(fault.message(), "`second` is missing");
    assert_eq!(fault.help_text(), Some("add a line `second = …`"));
    assert_eq!(fault.span(), ward_diag::Span::FILE);
    assert!(fault.related_places().is_empty());
    assert_eq!(report.omitted_count(), 0);
}
