//! The numbered requirements in `docs/requirements`: every citation resolves, and every "must" has a citing test.
//!
//! A requirement is a list item that begins with its number in bold (`- **S3.5b** …`) or a section (`## S3 …`). Code,
//! tests and documents cite it by the number alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{SourceTree, at_line};
use crate::located_error::LocatedError;

const FOLDER: &str = "docs/requirements";

/// A numbered requirement, with the whole text of its list item.
#[derive(Debug)]
struct NumberedRequirement {
    place: String,
    text: String,
}

/// Reports citations of requirements that don't exist, in code, tests and documents.
pub(super) fn citations(model: &SourceTree) -> Vec<LocatedError> {
    let (requirements, sections, mut faults) = read_requirements(model);
    for (path, text) in cited_texts(model) {
        for (index, line) in text.lines().enumerate() {
            let cited = numbers(line).into_iter();
            let unknown =
                cited.filter(|number| !requirements.contains_key(*number) && !sections.contains(*number));
            for number in unknown {
                let fault = format!("there is no requirement {number}");
                let cure = format!("correct the number, or write the requirement in {FOLDER}");
                faults.push(LocatedError::new(at_line(path, index + 1), fault, cure));
            }
        }
    }
    faults
}

/// Reports requirements with "must" that no test cites or that don't name their tests.
pub(super) fn shown_by_tests(model: &SourceTree) -> Vec<LocatedError> {
    let (requirements, _, _) = read_requirements(model);
    let mut tested = BTreeSet::new();
    for (path, text) in model.texts_ending_with("rs") {
        let tests = test_part(path, text);
        tested.extend(tests.lines().flat_map(numbers));
    }
    let mut faults = Vec::new();
    for (number, requirement) in requirements.iter().filter(|(_, requirement)| requirement.is_binding()) {
        if !tested.contains(number.as_str()) {
            let fault = format!("{number} says \"must\", but no test cites it");
            let cure = format!("write `{number}` beside the test that shows it");
            faults.push(LocatedError::new(requirement.place.as_str(), fault, cure));
        }
        if !requirement.text.contains("Shown by") {
            let fault = format!("{number} doesn't say which crate and test show it");
            let cure = "end it with `Shown by` and links to the crate's tests";
            faults.push(LocatedError::new(requirement.place.as_str(), fault, cure));
        }
    }
    faults
}

impl NumberedRequirement {
    fn is_binding(&self) -> bool {
        self.text.split(|character: char| !character.is_alphanumeric()).any(|word| word == "must")
    }
}

type Requirements = (BTreeMap<String, NumberedRequirement>, BTreeSet<String>, Vec<LocatedError>);

/// Reads the requirements and the numbers of the sections; a number that is given twice is a fault.
fn read_requirements(model: &SourceTree) -> Requirements {
    let mut requirements: BTreeMap<String, NumberedRequirement> = BTreeMap::new();
    let (mut sections, mut faults) = (BTreeSet::new(), Vec::new());
    for (path, text) in model.texts_ending_with("md").filter(|(path, _)| path.starts_with(FOLDER)) {
        let mut current = None;
        for (index, line) in text.lines().enumerate() {
            if let Some(heading) = line.strip_prefix("## ") {
                current = None;
                sections.extend(leading_number(heading).map(str::to_owned));
            } else if let Some(number) = line.strip_prefix("- **").and_then(leading_number) {
                let place = at_line(path, index + 1);
                let requirement = NumberedRequirement { place: place.clone(), text: line.to_owned() };
                if requirements.insert(number.to_owned(), requirement).is_some() {
                    let cure = "give each requirement a number of its own";
                    faults.push(LocatedError::new(place, format!("{number} is defined twice"), cure));
                }
                current = Some(number.to_owned());
            } else if let Some(requirement) = current.as_ref().and_then(|number| requirements.get_mut(number))
            {
                requirement.text.push('\n');
                requirement.text.push_str(line);
            }
        }
    }
    (requirements, sections, faults)
}

fn cited_texts(model: &SourceTree) -> impl Iterator<Item = (&Path, &str)> {
    let sources = model.texts_ending_with("rs");
    // The checks of xtask have examples of numbers in their tests.
    let sources = sources.filter(|(path, _)| !path.starts_with("xtask/src/tidy"));
    sources.chain(model.texts_ending_with("md"))
}

/// Returns the part of a source file that holds tests.
fn test_part<'text>(path: &Path, text: &'text str) -> &'text str {
    if path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs") {
        return text;
    }
    text.find("#[cfg(test)]").map_or("", |start| &text[start..])
}

/// Returns the numbers of requirements in a line: `S3.5b` anywhere, `S12` only as `(S12)`.
fn numbers(line: &str) -> Vec<&str> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find(is_part) {
        let before = rest[..start].chars().next_back();
        let word = &rest[start..];
        let end = word.find(|character| !is_part(character)).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        let word = word.trim_end_matches('.');
        let in_brackets = before == Some('(') && after.starts_with(')');
        if leading_number(word) == Some(word) && (word.contains('.') || in_brackets) {
            found.push(word);
        }
        rest = after;
    }
    found
}

/// Returns the number at the start of a text: `S3`, `S3.5` or `S3.5b`.
fn leading_number(text: &str) -> Option<&str> {
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let after_letter = text.strip_prefix(['S', 'C'])?;
    let chapter = digits(after_letter);
    if chapter == 0 || chapter > 2 {
        return None;
    }
    let rest = &after_letter[chapter..];
    let article = rest.strip_prefix('.').map_or(0, digits);
    if article == 0 {
        return Some(&text[..1 + chapter]);
    }
    let letter = rest[1 + article..].starts_with(|c: char| c.is_ascii_lowercase());
    Some(&text[..1 + chapter + 1 + article + usize::from(letter)])
}

#[cfg(test)]
mod tests {
    use super::super::tests::messages;
    use super::*;

    const SPEC: (&str, &str) = (
        "docs/requirements/shepherd.md",
        "## S3 The engine\n\n- **S3.1** An engine must start.\n  Shown by `a`.\n- **S3.5b** Planned: more.\n",
    );

    #[test]
    fn a_cited_number_must_be_there() {
        let model = SourceTree::of_texts(&[
            SPEC,
            ("crates/a/src/lib.rs", "// As in S3.1, S3.5b and (S3).\n// (S4) and S3.2. SHA1.2 S300.1\n"),
        ]);
        assert_eq!(
            messages(citations, &model),
            [
                "crates/a/src/lib.rs:2: there is no requirement S4",
                "crates/a/src/lib.rs:2: there is no requirement S3.2"
            ]
        );
    }

    #[test]
    fn a_number_is_given_once() {
        let twice = ("docs/requirements/b.md", "- **S3.1** Again.\n");
        let model = SourceTree::of_texts(&[twice, SPEC]);
        assert_eq!(messages(citations, &model), ["docs/requirements/shepherd.md:3: S3.1 is defined twice"]);
    }

    #[test]
    fn what_must_be_is_cited_by_a_test() {
        let code = ("crates/a/src/lib.rs", "// S3.1\n");
        let fault = "docs/requirements/shepherd.md:3: S3.1 says \"must\", but no test cites it";
        assert_eq!(messages(shown_by_tests, &SourceTree::of_texts(&[SPEC, code])), [fault]);
        for test in [
            ("crates/a/tests/it/start.rs", "// S3.1\n"),
            ("crates/a/src/start.rs", "#[cfg(test)]\nmod tests {\n    // S3.1\n}\n"),
        ] {
            assert_eq!(messages(shown_by_tests, &SourceTree::of_texts(&[SPEC, test])), [""; 0]);
        }
    }

    #[test]
    fn what_must_be_says_where_it_is_shown() {
        let spec = ("docs/requirements/c.md", "- **C1.1** It must work.\n");
        let test = ("crates/a/tests/it/main.rs", "//! C1.1\n");
        assert_eq!(
            messages(shown_by_tests, &SourceTree::of_texts(&[spec, test])),
            ["docs/requirements/c.md:1: C1.1 doesn't say which crate and test show it"]
        );
    }
}
