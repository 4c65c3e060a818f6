//! Checks on Rust sources: headers, banned words, libraries that only one crate may use.

use super::lexer::{SourceToken, TokenKind, tokens};
use super::{SourceTree, at_line};
use crate::located_error::LocatedError;

/// Reports libraries and programs without a `//!` comment at the start.
pub(super) fn headers(model: &SourceTree) -> Vec<LocatedError> {
    let targets = model.packages.iter().flat_map(|package| &package.targets);
    targets
        .filter(|target| target.has_kind("lib") || target.has_kind("bin"))
        .filter(|target| {
            model.text(&target.src_path).is_some_and(|text| !text.trim_start().starts_with("//!"))
        })
        .map(|target| {
            let place = at_line(&target.src_path, 1);
            LocatedError::new(place, "the crate has no documentation", "begin the file with a `//!` comment")
        })
        .collect()
}

/// Reports unfinished code, disabled tests, and lints that are switched off with `allow`.
pub(super) fn banned_words(model: &SourceTree) -> Vec<LocatedError> {
    let mut faults = Vec::new();
    for (path, text) in model.texts_ending_with("rs") {
        for (line, fault, cure) in find_banned_uses(&tokens(text)) {
            faults.push(LocatedError::new(at_line(path, line), fault, cure));
        }
    }
    faults
}

/// Libraries that only one program may use, with its path. In another program they would add megabytes and parse
/// untrusted messages in a privileged process.
const CONFINED: &[(&str, &str)] = &[
    ("rmcp", "crates/collieclaw-mcp-adapter"),
    ("collieclaw_mcp_adapter", "crates/collieclaw/src/bin/collieclaw-mcp.rs"),
];

/// Reports uses of a confined library outside of its program.
pub(super) fn confined_libraries(model: &SourceTree) -> Vec<LocatedError> {
    let mut faults = Vec::new();
    for (path, text) in model.texts_ending_with("rs") {
        for (library, folder) in CONFINED.iter().filter(|(_, folder)| !path.starts_with(folder)) {
            let used = tokens(text).into_iter().find(|token| token.kind == TokenKind::Word(library));
            faults.extend(used.map(|token| {
                let fault = format!("`{library}` is used outside of its program");
                LocatedError::new(at_line(path, token.line), fault, format!("use it in {folder}"))
            }));
        }
    }
    faults
}

type BannedUse = (usize, &'static str, &'static str);

fn find_banned_uses(tokens: &[SourceToken<'_>]) -> Vec<BannedUse> {
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let ahead = tokens.get(index..).unwrap_or_default();
        let piece = |offset: usize| ahead.get(offset).map(|token| token.kind);
        match (token.kind, piece(1), piece(2)) {
            (TokenKind::Word("todo" | "unimplemented"), Some(TokenKind::Mark('!')), _) => {
                found.push((
                    token.line,
                    "the code is unfinished here",
                    "finish it, or leave the feature out",
                ));
            }
            (TokenKind::Mark('#'), Some(TokenKind::Mark('[')), _) => {
                found.extend(attribute(ahead.get(2..).unwrap_or_default()));
            }
            (TokenKind::Mark('#'), Some(TokenKind::Mark('!')), Some(TokenKind::Mark('['))) => {
                found.extend(attribute(ahead.get(3..).unwrap_or_default()));
            }
            _ => {}
        }
    }
    found
}

/// Returns the fault of an attribute, given its tokens from the first word on. A `cfg_attr` may contain another
/// attribute.
fn attribute(tokens: &[SourceToken<'_>]) -> Option<BannedUse> {
    let first = tokens.first()?;
    let conditional = first.kind == TokenKind::Word("cfg_attr");
    let inside = tokens.iter().take_while(|token| token.kind != TokenKind::Mark(']'));
    for token in inside.take(if conditional { usize::MAX } else { 1 }) {
        match token.kind {
            TokenKind::Word("ignore") => {
                return Some((token.line, "the test is disabled", "fix it, or remove it"));
            }
            TokenKind::Word("allow") => {
                let cure = "write `#[expect(lint, reason = \"…\")]` on the smallest item";
                return Some((token.line, "`allow` stays silent when its lint no longer fires", cure));
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::tests::messages;
    use super::*;

    #[test]
    fn a_crate_without_a_header_is_found() {
        let model = SourceTree::of_texts(&[
            ("crates/ward-a/src/lib.rs", "mod a;"),
            ("crates/ward-a/src/main.rs", "//! A.\n"),
        ])
        .with_package("ward-a", &[])
        .with_target("lib", "crates/ward-a/src/lib.rs")
        .with_target("bin", "crates/ward-a/src/main.rs");
        assert_eq!(messages(headers, &model), ["crates/ward-a/src/lib.rs:1: the crate has no documentation"]);
    }

    #[test]
    fn unfinished_code_and_switched_off_checks_are_found() {
        let source = "#![allow(dead_code)]\nfn a() { todo!() }\n#[test]\n#[ignore = \"slow\"]\nfn b() {\n\
                      unimplemented!(\"x\") }\n#[cfg_attr(test, allow(unused))]\nfn c() {}";
        assert_eq!(
            messages(banned_words, &SourceTree::of_texts(&[("a.rs", source)])),
            [
                "a.rs:1: `allow` stays silent when its lint no longer fires",
                "a.rs:2: the code is unfinished here",
                "a.rs:4: the test is disabled",
                "a.rs:6: the code is unfinished here",
                "a.rs:7: `allow` stays silent when its lint no longer fires",
            ]
        );
    }

    #[test]
    fn a_library_with_a_program_of_its_own_is_used_nowhere_else() {
        let model = SourceTree::of_texts(&[
            ("crates/collieclaw-mcp-adapter/src/ask.rs", "use rmcp::model;"),
            ("crates/collieclaw-mcp/src/lib.rs", "// rmcp\nuse rmcp::model;"),
            ("crates/collieclaw/src/bin/collieclaw-mcp.rs", "fn main() { collieclaw_mcp_adapter::main() }"),
            ("crates/collieclaw/src/main.rs", "use collieclaw_mcp_adapter::main;"),
        ]);
        assert_eq!(
            messages(confined_libraries, &model),
            [
                "crates/collieclaw/src/main.rs:1: `collieclaw_mcp_adapter` is used outside of its program",
                "crates/collieclaw-mcp/src/lib.rs:2: `rmcp` is used outside of its program",
            ]
        );
    }

    #[test]
    fn words_that_only_look_alike_are_left_alone() {
        let source = "// todo!()\n#[expect(unused, reason = \"allow\")]\n#[serde(skip, allow)]\nfn todo() {}\n\
                      const S: &str = \"#[ignore] todo!()\"; fn allow() { ignore(todo) }";
        assert_eq!(messages(banned_words, &SourceTree::of_texts(&[("a.rs", source)])), [""; 0]);
    }
}
