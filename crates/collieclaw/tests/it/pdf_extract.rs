//! The tool `pdf_extract` (C6.2): real documents and malicious ones.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{AgentOutput, TestAgent};

fn extract(test_agent: &TestAgent, arguments: &Value) -> AgentOutput {
    test_agent.run(&["tool", "run", "pdf_extract", "--json", &arguments.to_string()])
}

/// Returns a document of two pages printed by a browser, with accents, a table and Japanese.
pub(crate) fn flock() -> Vec<u8> {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    fs::read(PathBuf::from(root).join("tests/flock.pdf")).unwrap()
}

/// Returns a document with these objects; the first is its root.
fn document(objects: &[String]) -> Vec<u8> {
    let mut text = "%PDF-1.7\n".to_owned();
    let mut places = Vec::new();
    for (number, object) in (1..).zip(objects) {
        places.push(text.len());
        write!(text, "{number} 0 obj\n{object}\nendobj\n").unwrap();
    }
    let start = text.len();
    write!(text, "xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).unwrap();
    for place in places {
        writeln!(text, "{place:010} 00000 n ").unwrap();
    }
    let size = objects.len() + 1;
    write!(text, "trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n").unwrap();
    text.into_bytes()
}

/// Returns a document with one page that shows a content stream.
fn page(content: &str) -> Vec<u8> {
    document(&[
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>"
            .to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ])
}

#[test]
fn the_text_of_a_real_document_comes_page_by_page() {
    let test_agent = TestAgent::new();
    fs::write(test_agent.workspace().join("flock.pdf"), flock()).unwrap();
    let actual = extract(&test_agent, &json!({ "path": "flock.pdf" }));
    assert_eq!(actual.code, 0, "{actual:?}");
    for text in
        ["[page 1]", "23 sheep & 7 goats", "Crème brûlée", "二十三頭", "[page 2]\nSecond page", "pages: 2"]
    {
        assert!(actual.out.contains(text), "{text}: {actual:?}");
    }
    let second = extract(&test_agent, &json!({ "path": "flock.pdf", "first_page": 2, "last_page": 2 }));
    assert!(second.out.contains("[page 2]\nSecond page") && !second.out.contains("sheep"), "{second:?}");
    let receipts = test_agent.receipts();
    assert_eq!(test_agent.receipt_summaries(), [["pdf_extract", "allowed", "reads-inside"]; 2]);
    for beyond in [
        json!({ "path": "flock.pdf", "first_page": 3 }),
        json!({ "path": "flock.pdf", "first_page": 7, "last_page": 9 }),
    ] {
        let actual = extract(&test_agent, &beyond);
        let expected = format!("`flock.pdf` has 2 pages, so there is no page {}", beyond["first_page"]);
        assert!(actual.code == 1 && actual.err.contains(&expected), "{actual:?}");
    }
    assert_ne!(receipts[0]["sandbox"], "none", "{receipts:?}");
}

#[test]
fn only_permitted_files_are_read() {
    let test_agent = TestAgent::new();
    fs::write(test_agent.path().join("outside.pdf"), flock()).unwrap();
    std::os::unix::fs::symlink(
        test_agent.path().join("outside.pdf"),
        test_agent.workspace().join("link.pdf"),
    )
    .unwrap();
    for path in ["../outside.pdf", "/etc/passwd", "link.pdf", "~/.collieclaw/config.toml"] {
        let actual = extract(&test_agent, &json!({ "path": path }));
        assert_eq!(actual.code, 4, "{path}: {actual:?}");
    }
    assert!(test_agent.receipts().iter().all(|receipt| receipt["status"] == "denied"));
    let missing = extract(&test_agent, &json!({ "path": "missing.pdf" }));
    assert!(missing.code == 1 && missing.err.contains("`missing.pdf` does not exist"), "{missing:?}");
    assert!(!missing.err.contains("not a PDF"), "{missing:?}");
    for unfit in [
        json!({ "path": "a.pdf", "first_page": 0 }),
        json!({ "path": "a.pdf", "first_page": 3, "last_page": 2 }),
    ] {
        assert_eq!(extract(&test_agent, &unfit).code, 1);
    }
}

#[test]
fn a_file_that_is_no_document_is_a_failed_call() {
    let test_agent = TestAgent::new();
    let half = flock();
    let cases: [(&str, &[u8]); 4] = [
        ("empty.pdf", b""),
        ("text.pdf", b"just a text"),
        ("header.pdf", b"%PDF-1.7\n%%EOF\n"),
        ("option.pdf", b"-layout"),
    ];
    for (name, bytes) in cases {
        fs::write(test_agent.workspace().join(name), bytes).unwrap();
        let actual = extract(&test_agent, &json!({ "path": name }));
        assert_eq!(actual.code, 1, "{name}: {actual:?}");
        assert!(format!("{actual:?}").contains("is not a readable PDF"), "{name}: {actual:?}");
    }
    // A broken document gives a result or an error, never a crash.
    fs::write(test_agent.workspace().join("half.pdf"), &half[..half.len() / 2]).unwrap();
    assert!(extract(&test_agent, &json!({ "path": "half.pdf" })).code <= 1);
}

#[test]
fn a_document_that_means_harm_is_bounded() {
    let test_agent = TestAgent::new()
        .with_config_change("tool_timeout = \"30s\"", "tool_timeout = \"3s\"")
        .with_config_change("max_response_bytes = 1048576", "max_response_bytes = 20000");
    // A page that is its own parent and child.
    let circle = document(&[
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2000000000 /Parent 2 0 R >>".to_owned(),
    ]);
    // Endless text with terminal escape sequences.
    let much = page(&"BT /F 12 Tf 10 700 Td (\\033[31m baa baa baa) Tj ET\n".repeat(20_000));
    // Unbalanced brackets.
    let deep = page(&format!("BT /F 12 Tf {} ET", "[".repeat(500_000)));
    for (name, bytes) in [("circle.pdf", circle), ("much.pdf", much), ("deep.pdf", deep)] {
        fs::write(test_agent.workspace().join(name), bytes).unwrap();
        let actual = extract(&test_agent, &json!({ "path": name }));
        assert!(actual.code <= 1, "{name}: {actual:?}");
        assert!(actual.out.len() < 25_000 && !actual.out.contains('\u{1b}'), "{name}: {actual:?}");
    }
    assert_eq!(test_agent.receipts().len(), 3);
}
