//! Checks that every source file belongs to a crate, and that modules and tests are in their usual places.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use super::SourceTree;
use super::lexer::{SourceToken, TokenKind, tokens};
use crate::located_error::LocatedError;

/// Folders of a member in which every Rust file must be part of a crate.
const SOURCE_FOLDERS: &[&str] = &["src", "tests", "benches", "examples"];

/// The only integration test binary of a member, so that it is linked once.
const INTEGRATION_TEST: &str = "tests/it/main.rs";

/// Reports Rust files that no `mod` declaration or target includes, and files called `mod.rs`.
pub(super) fn orphans(model: &SourceTree) -> Vec<LocatedError> {
    let roots =
        model.packages.iter().flat_map(|package| &package.targets).map(|target| target.src_path.clone());
    let reached = reachable_files(&model.texts, roots.collect());
    let mut faults = Vec::new();
    for (path, _) in model.texts_ending_with("rs").filter(|(path, _)| is_source(model, path)) {
        if path.file_name().is_some_and(|name| name == "mod.rs") {
            let folder = path.parent().unwrap_or(path);
            let cure = format!("move it to `{}.rs`", folder.display());
            faults.push(LocatedError::new(
                path.display().to_string(),
                "module files must not be called `mod.rs`",
                cure,
            ));
        } else if !reached.contains(path) {
            let cure = "declare it with `mod` where it belongs, or remove it";
            faults.push(LocatedError::new(path.display().to_string(), "no crate includes this file", cure));
        }
    }
    faults
}

/// Reports integration tests outside of the one test binary of a member.
pub(super) fn integration_binaries(model: &SourceTree) -> Vec<LocatedError> {
    let mut faults = Vec::new();
    for package in &model.packages {
        let Some(folder) = package.manifest_path.parent() else { continue };
        let tests = package.targets.iter().filter(|target| target.has_kind("test"));
        for test in tests.filter(|test| test.src_path != folder.join(INTEGRATION_TEST)) {
            let place = test.src_path.display().to_string();
            let cure = format!("make it a module of `{INTEGRATION_TEST}`");
            faults.push(LocatedError::new(place, "an integration test has a binary of its own", cure));
        }
    }
    faults
}

fn is_source(model: &SourceTree, path: &Path) -> bool {
    model
        .packages
        .iter()
        .filter_map(|package| package.manifest_path.parent())
        .any(|folder| SOURCE_FOLDERS.iter().any(|name| path.starts_with(folder.join(name))))
}

/// A file to read, and the folder of its child modules.
struct ModuleVisit {
    file: PathBuf,
    children: PathBuf,
}

impl ModuleVisit {
    /// Creates the visit of a crate root or a file named by `#[path]`, whose child modules are in the same folder.
    fn owner(file: PathBuf) -> Self {
        let children = file.parent().unwrap_or(Path::new("")).to_owned();
        Self { file, children }
    }
}

/// Returns the files that the compiler reads, starting at the crate roots.
fn reachable_files(texts: &BTreeMap<PathBuf, String>, roots: Vec<PathBuf>) -> BTreeSet<PathBuf> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<_> = roots.into_iter().map(ModuleVisit::owner).collect();
    while let Some(visit) = open.pop() {
        let Some(text) = texts.get(&visit.file) else { continue };
        if !reached.insert(visit.file.clone()) {
            continue;
        }
        let beside = visit.file.parent().unwrap_or(Path::new(""));
        for link in links(&tokens(text)) {
            match link {
                ModuleLink::Include(path) => open.push(ModuleVisit::owner(normalize(&beside.join(path)))),
                ModuleLink::Module { inside, path: Some(path), .. } => {
                    let from =
                        if inside == Path::new("") { beside.to_owned() } else { visit.children.join(inside) };
                    open.push(ModuleVisit::owner(normalize(&from.join(path))));
                }
                ModuleLink::Module { inside, name, path: None } => {
                    let folder = visit.children.join(inside);
                    let children = folder.join(name);
                    open.push(ModuleVisit {
                        file: folder.join(format!("{name}.rs")),
                        children: children.clone(),
                    });
                    open.push(ModuleVisit { file: children.join("mod.rs"), children });
                }
            }
        }
    }
    reached
}

/// A reference from one source file to another.
#[derive(Debug, PartialEq, Eq)]
enum ModuleLink<'source> {
    /// `mod name;`, inside the inline modules `inside`, with the path of its `#[path]` attribute.
    Module { inside: PathBuf, name: &'source str, path: Option<&'source str> },
    /// The macro `include!("path")`.
    Include(&'source str),
}

fn links<'source>(tokens: &[SourceToken<'source>]) -> Vec<ModuleLink<'source>> {
    let mut links = Vec::new();
    // One entry for each open brace: the name of the inline module it opens, if it opens one.
    let mut braces: Vec<Option<&str>> = Vec::new();
    let mut path = None;
    let pieces: Vec<_> = tokens.iter().map(|token| token.kind).collect();
    for (index, piece) in pieces.iter().enumerate() {
        match pieces.get(index..).unwrap_or_default() {
            [TokenKind::Word("mod"), TokenKind::Word(name), TokenKind::Mark(';'), ..] => {
                let inside = braces.iter().flatten().collect();
                links.push(ModuleLink::Module { inside, name, path: path.take() });
            }
            [
                TokenKind::Word("include"),
                TokenKind::Mark('!'),
                TokenKind::Mark('('),
                TokenKind::Text(file),
                ..,
            ] => {
                links.push(ModuleLink::Include(file));
            }
            [TokenKind::Word("path"), TokenKind::Mark('='), TokenKind::Text(file), ..] => path = Some(*file),
            _ => {}
        }
        match piece {
            TokenKind::Mark('{') => {
                let before = pieces.get(index.saturating_sub(2)..index).unwrap_or_default();
                braces.push(if let [TokenKind::Word("mod"), TokenKind::Word(name)] = before {
                    Some(name)
                } else {
                    None
                });
                path = None;
            }
            TokenKind::Mark('}') => {
                braces.pop();
                path = None;
            }
            TokenKind::Mark(';') => path = None,
            _ => {}
        }
    }
    links
}

/// Removes `.` and `..` from a path, without accessing the file system.
fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::super::tests::messages;
    use super::*;

    fn member(texts: &[(&str, &str)]) -> SourceTree {
        SourceTree::of_texts(texts).with_package("ward-a", &[]).with_target("lib", "crates/ward-a/src/lib.rs")
    }

    #[test]
    fn files_are_reached_in_every_way_the_compiler_knows() {
        let model = member(&[
            (
                "crates/ward-a/src/lib.rs",
                "mod one;\nmod inline { mod deep; }\n#[path = \"../odd/two.rs\"] mod two;",
            ),
            ("crates/ward-a/src/one.rs", "#[cfg(test)] pub(crate) mod r#type; include!(\"table.rs\");"),
            ("crates/ward-a/src/one/type.rs", ""),
            ("crates/ward-a/src/table.rs", ""),
            ("crates/ward-a/src/inline/deep.rs", ""),
            ("crates/ward-a/odd/two.rs", "mod beside;"),
            ("crates/ward-a/odd/beside.rs", ""),
            ("docs/example.rs", "not ours"),
        ]);
        assert_eq!(messages(orphans, &model), [""; 0]);
    }

    #[test]
    fn a_file_that_only_a_comment_or_a_string_names_is_an_orphan() {
        let model = member(&[
            ("crates/ward-a/src/lib.rs", "// mod lost;\nconst S: &str = \"mod gone;\"; mod kept { }"),
            ("crates/ward-a/src/lost.rs", ""),
            ("crates/ward-a/src/gone.rs", ""),
            ("crates/ward-a/src/kept/inner.rs", ""),
            ("crates/ward-a/tests/it/helper.rs", ""),
        ]);
        assert_eq!(
            messages(orphans, &model),
            [
                "crates/ward-a/src/gone.rs: no crate includes this file",
                "crates/ward-a/src/kept/inner.rs: no crate includes this file",
                "crates/ward-a/src/lost.rs: no crate includes this file",
                "crates/ward-a/tests/it/helper.rs: no crate includes this file",
            ]
        );
    }

    #[test]
    fn a_path_attribute_belongs_to_the_next_item_only() {
        let model = member(&[
            ("crates/ward-a/src/lib.rs", "#[path = \"x.rs\"] mod named; mod plain;"),
            ("crates/ward-a/src/x.rs", ""),
            ("crates/ward-a/src/plain.rs", ""),
        ]);
        assert_eq!(messages(orphans, &model), [""; 0]);
    }

    #[test]
    fn a_mod_rs_is_found() {
        let model =
            member(&[("crates/ward-a/src/lib.rs", "mod engine;"), ("crates/ward-a/src/engine/mod.rs", "")]);
        assert_eq!(
            messages(orphans, &model),
            ["crates/ward-a/src/engine/mod.rs: module files must not be called `mod.rs`"]
        );
    }

    #[test]
    fn a_second_integration_binary_is_found() {
        let model = member(&[])
            .with_target("test", "crates/ward-a/tests/it/main.rs")
            .with_target("test", "crates/ward-a/tests/second.rs");
        assert_eq!(
            messages(integration_binaries, &model),
            ["crates/ward-a/tests/second.rs: an integration test has a binary of its own"]
        );
    }
}
