//! Checks on every text file.

use super::{SourceTree, at_line};
use crate::located_error::LocatedError;

/// The maximum number of lines in a file. A longer file has more than one subject.
const MAX_LINES: usize = 800;

/// The extensions of files that people write. Data, logs and lock files may be longer.
const CHECKED_EXTENSIONS: &[&str] = &["css", "html", "js", "md", "py", "rs", "sh", "toml"];

/// The changelog may be longer, because it grows with every release.
const UNBOUNDED_FILE: &str = "CHANGELOG.md";

/// Names of home folders that are allowed in examples.
const EXAMPLE_HOMES: &[&str] =
    &["alex", "alice", "ann", "anna", "ben", "bob", "child", "kid", "me", "mia", "parent", "user", "you"];

/// Reports files that are too long.
pub(super) fn sizes(model: &SourceTree) -> Vec<LocatedError> {
    let mut faults = Vec::new();
    for (path, text) in CHECKED_EXTENSIONS.iter().flat_map(|extension| model.texts_ending_with(extension)) {
        let lines = text.lines().count();
        if lines > MAX_LINES && !path.ends_with(UNBOUNDED_FILE) {
            let fault = format!("{lines} lines, but the limit is {MAX_LINES}");
            faults.push(LocatedError::new(path.display().to_string(), fault, "split it by subject"));
        }
    }
    faults
}

/// Reports conflict markers of a merge.
pub(super) fn merge_markers(model: &SourceTree) -> Vec<LocatedError> {
    // The markers are composed, so that this file has none itself.
    let marks = ["<", ">"].map(|mark| format!("{} ", mark.repeat(7)));
    let mut faults = Vec::new();
    for (path, text) in &model.texts {
        for (index, line) in text.lines().enumerate() {
            if marks.iter().any(|mark| line.starts_with(mark)) {
                let fault = "conflict marker of an unfinished merge";
                faults.push(LocatedError::new(at_line(path, index + 1), fault, "resolve the conflict"));
            }
        }
    }
    faults
}

/// Reports paths of a developer's machine.
pub(super) fn private_paths(model: &SourceTree) -> Vec<LocatedError> {
    let mut faults = Vec::new();
    for (path, text) in &model.texts {
        for (index, line) in text.lines().enumerate() {
            if let Some(found) = private_path(line, &model.private_folders) {
                let fault = format!("`{found}` is a path on a developer's machine");
                let cure = "make the path relative, take it from the environment, or use an example name such as `kid`";
                faults.push(LocatedError::new(at_line(path, index + 1), fault, cure));
            }
        }
    }
    faults
}

/// Returns the first path in a line that exists only on one machine.
fn private_path<'line>(line: &'line str, private_folders: &[String]) -> Option<&'line str> {
    let starts = line.match_indices('/').map(|(start, _)| start);
    for start in starts.filter(|start| begins_path(line, *start)) {
        let rest = line.get(start..).unwrap_or_default();
        let path = rest.split(|character: char| !is_path_character(character)).next().unwrap_or(rest);
        let mut parts = path.split('/').skip(1);
        let own = match (parts.next(), parts.next()) {
            (Some("home"), Some(name)) => {
                parts.next().is_some() && !name.is_empty() && !EXAMPLE_HOMES.contains(&name)
            }
            // Files in root's home are used as examples of protected files, but a checkout or a toolchain there is a
            // local path.
            (Some("root"), Some(name)) => {
                let tools = [".cargo", ".rustup"].contains(&name);
                tools || (parts.next().is_some() && !name.is_empty() && !name.starts_with('.'))
            }
            _ => false,
        };
        let is_within = |folder: &String| {
            path.strip_prefix(folder.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if own || private_folders.iter().any(is_within) {
            return Some(path);
        }
    }
    None
}

/// Returns whether the slash begins an absolute path, and isn't inside a relative path or a URL.
fn begins_path(line: &str, slash: usize) -> bool {
    let before = line.get(..slash).and_then(|before| before.chars().next_back());
    before.is_none_or(|character| !is_path_character(character) && !"~>}/*".contains(character))
}

fn is_path_character(character: char) -> bool {
    character.is_alphanumeric() || "/._-+@".contains(character)
}

#[cfg(test)]
mod tests {
    use super::super::tests::messages;
    use super::*;

    #[test]
    fn a_file_that_grew_absurd_is_found() {
        let long = "line\n".repeat(801);
        let model = SourceTree::of_texts(&[
            ("crates/ward-a/src/long.rs", &long),
            ("crates/ward-a/src/fits.rs", &"line\n".repeat(800)),
            ("CHANGELOG.md", &long),
            ("Cargo.lock", &long),
        ]);
        assert_eq!(messages(sizes, &model), ["crates/ward-a/src/long.rs: 801 lines, but the limit is 800"]);
    }

    #[test]
    fn a_merge_that_was_left_half_done_is_found() {
        let half = format!("a\n{} HEAD\nb\n=======\nc\n{} other\n", "<".repeat(7), ">".repeat(7));
        let model = SourceTree::of_texts(&[("docs/a.md", &half), ("docs/b.md", "Title\n=======\n")]);
        let mark = "conflict marker of an unfinished merge";
        assert_eq!(
            messages(merge_markers, &model),
            [format!("docs/a.md:2: {mark}"), format!("docs/a.md:6: {mark}")]
        );
    }

    /// Returns whether the line names a private path. The pattern is written in two parts, or this file would match it.
    fn check(first: &str, second: &str, expected: Option<&str>) {
        let line = format!("{first}{second}");
        let folders = ["/srv/checkout".to_owned()];
        assert_eq!(private_path(&line, &folders), expected, "{line}");
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        check("open(\"/home/", "maria/notes.txt\")", Some(&["/home/", "maria/notes.txt"].concat()));
        check("built in /root/", "build/x.log today", Some(&["/root/", "build/x.log"].concat()));
        check("see /root/", ".cargo/registry", Some(&["/root/", ".cargo/registry"].concat()));
        check("at /srv/", "checkout/src/lib.rs:3", Some("/srv/checkout/src/lib.rs"));
    }

    #[test]
    fn examples_and_relative_paths_are_left_alone() {
        check("/home/", "kid/.config", None);
        check("/home/", "<name>/x", None);
        check("cat /root/", ".ssh/id_ed25519", None);
        check("touch /root/", "x", None);
        check("crates/root/", "src", None);
        check("https://example.org/home/", "page/x", None);
        check("$T/root/", "etc", None);
        check("/srv/", "checkouts", None);
        check("everything under /root", "", None);
    }
}
