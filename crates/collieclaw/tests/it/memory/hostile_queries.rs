//! Malicious queries and texts.

use super::support::{memory_with, search_excerpts};

const QUERIES: &[&str] = &[
    "\"",
    "\"\"",
    "'",
    "*",
    "a*",
    "^a",
    "-a",
    "+",
    ":",
    "content:a",
    "words : a",
    "folded:abc",
    "{words}: a",
    "NEAR(a b)",
    "NEAR(",
    "NEAR(a b, 999999999999)",
    "AND",
    "OR",
    "NOT",
    "AND OR NOT",
    "a AND",
    "(a",
    "a)",
    "((((",
    "a\0b",
    "\0",
    "%",
    "_",
    "\\",
    "--",
    ";",
    "/*",
    "?1",
    ":a",
    "@a",
    "$a",
    "\u{feff}",
    "\u{202e}abc",
    "\u{301}",
    "\u{1b}[31m",
    "\r\n",
    "  ",
    "🎉🎉🎉",
    "👩‍👩‍👧",
    "שלום",
    "\u{10ffff}",
    "\u{fffd}",
    "İ",
    "ﬃ",
    "½",
    "\u{fdfa}",
    "\"a\" OR \"b\"",
    "a\" OR \"b",
    "rank",
    "rowid",
    "turn_words",
    "delete-all",
];

#[test]
fn no_query_is_an_error_or_an_operator() {
    let (_place, memory) = memory_with(&["plain text", "a b"]);
    for query in QUERIES {
        let found = memory.search(query, 20).unwrap();
        for found in found {
            let shown = found.excerpt.to_lowercase();
            let any = query.to_lowercase().split(|c: char| c.is_whitespace() || c == '\0').any(|term| {
                let seen: String = term.chars().filter(|c| !c.is_control()).collect();
                shown.contains(seen.trim_matches(['\u{feff}', '\u{202e}', '\u{301}', '\u{307}']))
            });
            assert!(any, "{query:?} found {shown:?}");
        }
    }
}

#[test]
fn text_that_looks_like_an_operator_is_found_as_text() {
    let (_place, memory) = memory_with(QUERIES);
    for (number, query) in QUERIES.iter().enumerate() {
        let visible = query.chars().any(|c| !c.is_control() && !c.is_whitespace())
            && !["\u{feff}", "\u{301}"].contains(query);
        let found = memory.search(query, QUERIES.len()).unwrap();
        let itself = found.iter().any(|found| found.conversation_id == format!("c{number}"));
        assert_eq!(itself, visible, "{query:?}");
    }
}

#[test]
fn a_query_of_a_megabyte_is_cut_and_answered() {
    let (_place, memory) = memory_with(&["needle in a haystack", &"x".repeat(10_000)]);
    for (query, expected) in [
        ("x".repeat(1 << 20), &["c1"][..]),
        ("needle ".repeat(1 << 17), &["c0"]),
        (format!("needle {}", "\"".repeat(1 << 20)), &["c0"]),
        ("é".repeat(1 << 19), &[]),
        ((0..100_000).map(|number| format!("w{number} ")).collect(), &[]),
        ("(".repeat(1 << 20), &[]),
    ] {
        assert_eq!(search_excerpts(&memory, &query), expected, "{}", &query[..6]);
    }
}

#[test]
fn an_excerpt_can_not_move_a_cursor_or_turn_text_around() {
    let nasty: String = (0..=0x2100).chain(0xe0000..0xe0100).filter_map(char::from_u32).collect();
    let texts: Vec<String> = ["start ", "", &"lead ".repeat(100)]
        .iter()
        .flat_map(|before| {
            [format!("{before}needle{nasty}"), format!("{nasty}{before}\u{1b}]0;title\u{7}needle\n\n\tend")]
        })
        .collect();
    let (_place, memory) = memory_with(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let found = memory.search("needle", 20).unwrap();
    assert_eq!(found.len(), texts.len());
    for found in found {
        assert!(found.excerpt.contains("needle"), "{}", found.excerpt);
        assert!(found.excerpt.chars().count() <= 162);
        let bad = |c: char| c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}');
        assert!(!found.excerpt.contains(bad), "{:?}", found.excerpt);
    }
}
