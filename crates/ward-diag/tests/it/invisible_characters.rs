//! Reports escape every character that is invisible or controls a terminal.

use proptest::prelude::*;
use ward_diag::{InvalidValue, ReportStyle, SourceText, read};

fn check(character: char) {
    // The character occurs in a comment, a string, a key, an escape sequence and messages of the caller.
    let code = u32::from(character);
    let text = format!("x{character} = 1\nbad = \"a{character}b\" # {character}\n\"k\\U{code:08X}\" = 2\n");
    let report = read(SourceText::new(format!("{character}.toml"), text), |root| {
        let value = root.value("bad")?;
        let name = value.spanned(value.text()?);
        value.reject(InvalidValue::new(format!("no {character}")).help(format!("not {character}")));
        root.faults().report_unknown_name("thing", name, [name.value]);
        root.faults().report_duplicates("thing", [&name, &name]);
        Some(())
    })
    .unwrap_err();
    assert!(!report.render(ReportStyle::Plain).contains(character), "{code:x}: {report:?}");
    let coloured = report.render(ReportStyle::Coloured);
    assert!(character == '\u{1b}' || !coloured.contains(character), "{code:x}: {coloured:?}");
}

/// Line feeds and tabs are allowed, since every file has them.
fn belongs_in_files(character: char) -> bool {
    matches!(character, '\n' | '\t')
}

#[test]
fn control_and_other_invisible_characters_are_escaped() {
    let controls = ('\0'..='\u{9f}').filter(|c| c.is_control() && !belongs_in_files(*c));
    let other_invisible = [
        '\u{ad}',
        '\u{34f}',
        '\u{61c}',
        '\u{115f}',
        '\u{180e}',
        '\u{200b}',
        '\u{200c}',
        '\u{200d}',
        '\u{2028}',
        '\u{2029}',
        '\u{202e}',
        '\u{2060}',
        '\u{2065}',
        '\u{2066}',
        '\u{206f}',
        '\u{3164}',
        '\u{e000}',
        '\u{fdd0}',
        '\u{fe0f}',
        '\u{feff}',
        '\u{ffa0}',
        '\u{fff9}',
        '\u{fffb}',
        '\u{ffff}',
        '\u{1fffe}',
        '\u{e0001}',
        '\u{e0041}',
        '\u{e01ef}',
        '\u{10fffd}',
    ];
    controls.chain(other_invisible).for_each(check);
}

#[test]
fn visible_characters_are_not_escaped() {
    let text = "x = \"naïve, e\u{301}, 数字, שלום, 🦀, a\u{a0}b\"\n";
    let report = read(SourceText::new("é.toml", text), |_| None::<()>).unwrap_err();
    assert!(report.to_string().contains(text.trim_end()), "{report}");
}

/// Generates characters of the invisible Unicode categories, and characters that a renderer may ignore.
fn invisible() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => "\\p{Cf}",
        1 => "\\p{Cc}",
        1 => "\\p{Zl}|\\p{Zp}",
        1 => "\\p{Co}",
        1 => "\\p{Default_Ignorable_Code_Point}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn characters_of_invisible_unicode_categories_are_escaped(text in invisible()) {
        let character = text.chars().next().unwrap();
        if !belongs_in_files(character) {
            check(character);
        }
    }
}
