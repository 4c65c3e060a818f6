//! Properties that hold for any text: reading never panics, spans lie within the text, faults are in source
//! order, and valid documents have no faults.

use proptest::prelude::*;
use ward_diag::{FaultReport, MAX_FAULTS, ReportStyle, SourceText, read};

use crate::value_faults::policy;

fn check_report(report: &FaultReport) {
    let text = report.source().text();
    for fault in report.faults() {
        for span in
            std::iter::once(fault.span()).chain(fault.related_places().iter().map(|related| related.span))
        {
            assert!(text.get(span.start..span.end).is_some(), "{span:?} is not in {text:?}");
        }
    }
    for fault in report.faults() {
        assert!(fault.help_text().is_some(), "{fault:?}");
    }
    assert!(report.faults().is_sorted_by_key(|fault| fault.span().start));
    assert!(!report.faults().is_empty() && report.faults().len() <= MAX_FAULTS);
    assert!(!report.render(ReportStyle::Plain).contains('\u{1b}'));
    assert!(!report.render(ReportStyle::Coloured).is_empty());
    serde_json::to_string(report).unwrap();
}

/// Generates texts that look like policies, valid or not.
pub(crate) fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => prop::sample::select(vec![
            "config_version", "entry", "id", "label", "kind", "argv", "window", "max_run", "warning", "before", "budget",
            "= ", "= ", "= ", "\n", "\n", "\n", "\r\n", "[", "]", "[[", "]]", "{", "}", ",", ".", "#", "\"", "'", "\"\"\"",
            "'''", "\\", "\\u00e9", "1", "-7", "0x1f", "1.5", "nan", "true", "10:00", "2026-11-15", "\"process\"", "\"45m\"",
            "[[entry]]\n", "[entry.warning]\n", "id = \"a\"\n", "argv = [\"a\"]\n", "\t", " ", "é", "数", "🦀", "\u{202e}", "\0",
        ]).prop_map(str::to_owned),
        1 => "\\PC{0,4}",
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn texts_like_policies_never_panic(text in pieces()) {
        if let Err(report) = read(SourceText::new("policy.toml", text), policy) {
            check_report(&report);
        }
    }

    #[test]
    fn texts_with_hidden_keys_never_panic(text in pieces()) {
        let source = SourceText::new("policy.toml", text).hide_values_of(["id", "label", "warning"]);
        if let Err(report) = read(source, policy) {
            check_report(&report);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err(report) = read(SourceText::from_bytes("policy.toml", &bytes), policy) {
            check_report(&report);
        }
    }

    #[test]
    fn valid_documents_have_no_faults(
        labels in prop::collection::vec("[^\\x00-\\x1f\\x7f\"\\\\]{0,12}x", 0..8),
        before in 0_u32..60,
        inline in any::<bool>(),
    ) {
        let mut text = "config_version = 1\n".to_owned();
        if inline && !labels.is_empty() {
            let entries: Vec<String> = labels.iter().enumerate()
                .map(|(index, label)| format!("{{ id = \"e-{}\", label = \"{label}\", kind = \"vm\", argv = [\"x\"] }}", "i".repeat(index)))
                .collect();
            text.push_str(&format!("entry = [{}]\n", entries.join(",\n")));
        } else {
            for (index, label) in labels.iter().enumerate() {
                let id = "i".repeat(index);
                text.push_str(&format!(
                    "[[entry]]\nid = \"e-{id}\"\nlabel = \"{label}\"\nkind = \"vm\"\nargv = [\"x\"]\nmax_run = \"1m\"\nwarning.before = {before}\n",
                ));
            }
        }
        let read = read(SourceText::new("policy.toml", text.clone()), policy);
        prop_assert!(read.is_ok(), "{}\n{}", text, read.unwrap_err());
    }
}
