//! Checks that required documents exist and that links resolve.

use std::path::{Component, Path, PathBuf};

use super::{SourceTree, at_line};
use crate::located_error::LocatedError;

const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// The longest ARCHITECTURE.md, which a newcomer can read in ten minutes.
const MAX_ARCHITECTURE_LINES: usize = 199;

/// The documents that visitors expect.
const EXPECTED: &[&str] = &[
    ARCHITECTURE,
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "SECURITY.md",
];

const CRATE_PREFIXES: &[&str] = &["ward-", "shepherd-", "collieclaw-"];

/// Reports documents at the root that are missing or empty.
pub(super) fn expected_documents(model: &SourceTree) -> Vec<LocatedError> {
    EXPECTED
        .iter()
        .filter(|name| model.text(Path::new(name)).is_none_or(|text| text.trim().is_empty()))
        .map(|name| LocatedError::new(*name, "the document is missing or empty", "write it"))
        .collect()
}

/// Reports links to files of the repository that don't exist.
pub(super) fn links(model: &SourceTree) -> Vec<LocatedError> {
    let mut faults = Vec::new();
    for (path, text) in model.texts_ending_with("md") {
        for (line, target) in prose(text)
            .flat_map(|(line, prose)| targets(&prose).into_iter().map(move |target| (line, target)))
        {
            let Some(file) = local_file(&target) else { continue };
            let resolved = resolve(path.parent().unwrap_or(Path::new("")), file);
            if resolved.as_ref().is_none_or(|resolved| !exists(model, resolved)) {
                let fault = format!("the link to `{file}` is broken");
                faults.push(LocatedError::new(
                    at_line(path, line),
                    fault,
                    "correct the path, which is relative to the folder of this file",
                ));
            }
        }
    }
    faults
}

/// Checks that the map in ARCHITECTURE.md names every member and no unknown crate, and that the page is short.
pub(super) fn architecture(model: &SourceTree) -> Vec<LocatedError> {
    let path = Path::new(ARCHITECTURE);
    let Some(text) = model.text(path) else { return Vec::new() };
    let mut faults = Vec::new();
    let lines = text.lines().count();
    if lines > MAX_ARCHITECTURE_LINES {
        let fault = format!("{lines} lines, but the limit is {MAX_ARCHITECTURE_LINES}");
        faults.push(LocatedError::new(ARCHITECTURE, fault, "move detail into the crates' own documentation"));
    }
    let mut named = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for name in crate_names(line) {
            if !is_crate_or_program(model, name) {
                let fault = format!("there is no crate `{name}`");
                faults.push(LocatedError::new(at_line(path, index + 1), fault, "correct the name"));
            }
            named.push(name);
        }
    }
    for package in &model.packages {
        let is_named =
            named.contains(&package.name.as_str()) || text.contains(&format!("`{}`", package.name));
        if !is_named {
            let fault = format!("the map lacks the crate `{}`", package.name);
            faults.push(LocatedError::new(ARCHITECTURE, fault, "describe its purpose in one line"));
        }
    }
    faults
}

fn is_crate_or_program(model: &SourceTree, name: &str) -> bool {
    model.packages.iter().any(|package| {
        package.name == name
            || package.targets.iter().any(|target| target.has_kind("bin") && target.name == name)
    })
}

/// Returns the words of a line that look like names of our crates and are not part of a path or a pattern.
fn crate_names(line: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find(|character: char| character.is_ascii_lowercase()) {
        let word = rest.get(start..).unwrap_or_default();
        let before = line.get(..line.len() - word.len()).unwrap_or_default();
        let length = word.find(|character: char| !is_name_character(character)).unwrap_or(word.len());
        let (name, after) = word.split_at_checked(length).unwrap_or((word, ""));
        let joined = |character: char| "/~.$_".contains(character) || character.is_alphanumeric();
        let stands_alone = before.ends_with("crates/") || !before.ends_with(joined);
        let is_named =
            CRATE_PREFIXES.iter().any(|prefix| name.len() > prefix.len() && name.starts_with(prefix));
        if is_named && stands_alone {
            names.push(name);
        }
        rest = after;
    }
    names
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-'
}

/// Returns the lines outside of fenced blocks with their numbers. Code spans are replaced by spaces.
fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut fence: Option<&str> = None;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let ticks = line.trim_start();
        let length = ticks.len() - ticks.trim_start_matches('`').len();
        match fence {
            Some(open) => {
                if ticks.trim_end() == open {
                    fence = None;
                }
                None
            }
            None if length >= 3 => {
                fence = ticks.get(..length);
                None
            }
            None => Some((index + 1, without_code(line))),
        }
    })
}

fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("code")
}

/// Returns the targets of the links and images of a line: `[text](target)` and `[name]: target`.
fn targets(line: &str) -> Vec<String> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let reference =
        line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target.trim());
    inline.chain(reference).map(|target| target.trim_matches(['<', '>']).to_owned()).collect()
}

/// Returns the file part of a link, unless the link leads out of the repository or stays on the page.
fn local_file(target: &str) -> Option<&str> {
    let is_outside = target.contains("://") || target.starts_with("mailto:");
    let file = target.split('#').next().unwrap_or_default();
    (!is_outside && !file.is_empty()).then_some(file)
}

fn resolve(folder: &Path, file: &str) -> Option<PathBuf> {
    let mut resolved = PathBuf::new();
    for component in folder.join(file.trim_end_matches('/')).components() {
        match component {
            Component::Normal(name) => resolved.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !resolved.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(resolved)
}

fn exists(model: &SourceTree, path: &Path) -> bool {
    model.files.iter().any(|file| file.starts_with(path))
}

#[cfg(test)]
mod tests {
    use super::super::tests::messages;
    use super::*;

    #[test]
    fn a_missing_or_empty_document_is_found() {
        let texts: Vec<_> = EXPECTED
            .iter()
            .map(|name| (*name, if *name == "LICENSE-MIT" { " \n" } else { "text" }))
            .collect();
        let model = SourceTree::of_texts(texts.get(1..).unwrap());
        assert_eq!(
            messages(expected_documents, &model),
            [
                "ARCHITECTURE.md: the document is missing or empty",
                "LICENSE-MIT: the document is missing or empty"
            ]
        );
    }

    #[test]
    fn links_are_followed_from_the_folder_of_their_file() {
        let text = "[a](decisions/0001.md#why) [b](../README.md) [c](https://example.org) [d](#here)\n\
                    `[not](a-link.md)`\n```md\n[nor](this.md)\n```\n[gone](missing.md) ![picture](../x.png)\n[r]: nowhere.md\n[up](../../x)";
        let model = SourceTree::of_texts(&[
            ("docs/a.md", text),
            ("docs/decisions/0001.md", ""),
            ("README.md", "[docs](docs/)"),
        ]);
        assert_eq!(
            messages(links, &model),
            [
                "docs/a.md:6: the link to `missing.md` is broken",
                "docs/a.md:6: the link to `../x.png` is broken",
                "docs/a.md:7: the link to `nowhere.md` is broken",
                "docs/a.md:8: the link to `../../x` is broken",
            ]
        );
    }

    #[test]
    fn the_map_and_the_members_agree() {
        let map = "`ward-ledger` and ward-* and crates/ward-gone/ and ~/collieclaw-workspace\n├ shepherd-cli bin\n`xtask`\n";
        let model = SourceTree::of_texts(&[("ARCHITECTURE.md", map)])
            .with_package("ward-ledger", &[])
            .with_package("shepherd-cli", &[])
            .with_package("xtask", &[])
            .with_package("ward-process", &[]);
        assert_eq!(
            messages(architecture, &model),
            [
                "ARCHITECTURE.md:1: there is no crate `ward-gone`",
                "ARCHITECTURE.md: the map lacks the crate `ward-process`",
            ]
        );
    }

    #[test]
    fn a_long_map_is_found() {
        let model = SourceTree::of_texts(&[("ARCHITECTURE.md", &"line\n".repeat(200))]);
        assert_eq!(messages(architecture, &model), ["ARCHITECTURE.md: 200 lines, but the limit is 199"]);
    }
}
