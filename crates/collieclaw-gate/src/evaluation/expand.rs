//! Expands patterns such as `*.rs` before the verdict, so that the checked words are the words that run.

use std::path::Path;

use super::{CommandFolder, ShellEvaluation};
use crate::facts::PathStatus;
use crate::programs::CommandArgument;
use crate::shell::{ShellWord, SimpleCommand, WordPart};

/// The maximum number of words after expansion. Nobody can review a longer line before approving it.
const MAX_EXPANDED_WORDS: usize = 4096;

/// The longest file name that the kernel accepts (`NAME_MAX`), also used as the limit for a pattern.
const LONGEST_NAME: usize = 255;

/// An element of a pattern for a single path component.
#[derive(Debug, Clone, PartialEq, Eq)]
enum GlobToken {
    Char(char),
    AnyText,
    AnyChar,
    /// `[a-z]` or `[!a-z]`, as ranges of characters.
    Set {
        inside: Vec<(char, char)>,
        negated: bool,
    },
}

impl ShellEvaluation<'_> {
    /// Returns a word with its patterns left as written.
    pub(super) fn as_written(&self, word: &ShellWord) -> CommandArgument {
        let mut text = String::new();
        for part in &word.parts {
            match part {
                WordPart::Literal(part) | WordPart::Glob(part) => text.push_str(part),
                WordPart::Home => text.push('~'),
                WordPart::Unknown(_) => return CommandArgument { text: None, at: word.at },
            }
        }
        CommandArgument { text: Some(text), at: word.at }
    }

    /// Returns all words of a command with their patterns expanded; only folders inside the workspace are
    /// listed.
    pub(super) fn expand_words(
        &mut self,
        simple: &SimpleCommand,
        cwd: &CommandFolder,
    ) -> Option<Vec<CommandArgument>> {
        let folder = cwd.folder.as_deref()?;
        let mut words = Vec::new();
        for word in &simple.words {
            if self.files_may_have_changed && word.parts.iter().any(|part| matches!(part, WordPart::Glob(_)))
            {
                self.add_unknowable(
                    "the files that match a pattern are known only when its command runs; write the names out",
                    word.at,
                );
                return None;
            }
            let texts = if word.parts.iter().any(|part| matches!(part, WordPart::Glob(_))) {
                self.expand_pattern(word, folder)
            } else {
                self.known_text(word).map(|text| vec![text])
            };
            let Some(texts) = texts else {
                self.add_unknowable(
                    "this pattern can't be expanded inside the workspace; write the names out",
                    word.at,
                );
                return None;
            };
            words.extend(texts.into_iter().map(|text| CommandArgument { text: Some(text), at: word.at }));
            if words.len() > MAX_EXPANDED_WORDS {
                self.add_unknowable("this pattern matches too many files", word.at);
                return None;
            }
        }
        Some(words)
    }

    /// Expands a pattern. A pattern without a match stays as written.
    fn expand_pattern(&mut self, word: &ShellWord, folder: &Path) -> Option<Vec<String>> {
        let mut names = pattern_components(word)?;
        if names.iter().any(|name| name.len() > LONGEST_NAME) {
            return None;
        }
        if names.iter().any(|name| is_parent(name) || may_match_parent(name)) {
            return None;
        }
        let mut found = vec![String::new()];
        if names.first().is_some_and(Vec::is_empty) {
            names.remove(0);
            found = vec!["/".to_owned()];
        }
        // Some shells collapse double slashes in a pattern and others keep them.
        if names.iter().rev().skip(1).any(Vec::is_empty) {
            return None;
        }
        for (place, name) in names.iter().enumerate() {
            let is_last = place + 1 == names.len();
            let mut next = Vec::new();
            for prefix in &found {
                self.expand_component(folder, prefix, name, &mut next)?;
                if next.len() > MAX_EXPANDED_WORDS {
                    return None;
                }
            }
            if !is_last {
                next.iter_mut().for_each(|path| path.push('/'));
            }
            found = next;
        }
        if found.is_empty() { self.as_written(word).text.map(|text| vec![text]) } else { Some(found) }
    }

    /// Adds the paths that extend a prefix by a path component.
    fn expand_component(
        &mut self,
        folder: &Path,
        prefix: &str,
        name: &[GlobToken],
        next: &mut Vec<String>,
    ) -> Option<()> {
        if let Some(literal) = literal_component(name) {
            self.budget.paths = self.budget.paths.checked_sub(1)?;
            let path = format!("{prefix}{literal}");
            let fits = match literal.is_empty() {
                // A trailing slash matches folders only.
                true => matches!(
                    self.facts.inspect_path(&folder.join(before_slash(prefix))),
                    PathStatus::Folder { .. }
                ),
                false => self.exists(&folder.join(&path)) || self.is_listed(folder, prefix, &literal)?,
            };
            next.extend(fits.then_some(path));
            return Some(());
        }
        self.budget.folders = self.budget.folders.checked_sub(1)?;
        let place = folder.join(before_slash(prefix));
        // Folders outside of the workspace are never listed.
        match self.facts.inspect_path(&place) {
            PathStatus::Folder { leads_to } if leads_to.starts_with(&self.policy.workspace) => {}
            PathStatus::File { leads_to, .. }
            | PathStatus::Special { leads_to }
            | PathStatus::Missing { leads_to }
                if leads_to.starts_with(&self.policy.workspace) =>
            {
                return Some(());
            }
            _ => return None,
        }
        let hidden = name.first() == Some(&GlobToken::Char('.'));
        let entries = self.facts.names_in(&place)?;
        let fits = |entry: &&String| (hidden || !entry.starts_with('.')) && pattern_matches(name, entry);
        next.extend(entries.iter().filter(fits).map(|entry| format!("{prefix}{entry}")));
        Some(())
    }

    /// Returns true if a folder lists a name. Shells match dangling links, too, which `exists` doesn't see.
    fn is_listed(&mut self, folder: &Path, prefix: &str, name: &str) -> Option<bool> {
        self.budget.folders = self.budget.folders.checked_sub(1)?;
        let names = self.facts.names_in(&folder.join(before_slash(prefix)));
        Some(names.is_some_and(|names| names.iter().any(|listed| listed == name)))
    }

    fn exists(&self, path: &Path) -> bool {
        !matches!(self.facts.inspect_path(path), PathStatus::Missing { .. } | PathStatus::Unreachable)
    }
}

/// Removes the trailing slash of a prefix, so that the path can be inspected even if it isn't a folder.
fn before_slash(prefix: &str) -> &str {
    match prefix.strip_suffix('/') {
        Some("") | None => prefix,
        Some(before) => before,
    }
}

/// Splits a word into a pattern per path component; `None` if the word can't be expanded.
fn pattern_components(word: &ShellWord) -> Option<Vec<Vec<GlobToken>>> {
    let mut names = vec![Vec::new()];
    for part in &word.parts {
        match part {
            WordPart::Literal(text) => {
                for letter in text.chars() {
                    match letter {
                        '/' => names.push(Vec::new()),
                        letter => names.last_mut()?.push(GlobToken::Char(letter)),
                    }
                }
            }
            WordPart::Glob(glob) => names.last_mut()?.push(match glob.as_str() {
                "*" => GlobToken::AnyText,
                "?" => GlobToken::AnyChar,
                set => parse_bracket_set(set),
            }),
            WordPart::Home | WordPart::Unknown(_) => return None,
        }
    }
    Some(names)
}

fn parse_bracket_set(glob: &str) -> GlobToken {
    let inside = glob.trim_start_matches('[').trim_end_matches(']');
    let (negated, inside) = inside.strip_prefix('!').map_or((false, inside), |inside| (true, inside));
    let letters: Vec<char> = inside.chars().collect();
    let mut ranges = Vec::new();
    let mut rest = letters.as_slice();
    loop {
        rest = match rest {
            [first, '-', last, rest @ ..] => {
                ranges.push((*first, *last));
                rest
            }
            [letter, rest @ ..] => {
                ranges.push((*letter, *letter));
                rest
            }
            [] => return GlobToken::Set { inside: ranges, negated },
        };
    }
}

fn literal_component(name: &[GlobToken]) -> Option<String> {
    name.iter().map(|piece| if let GlobToken::Char(letter) = piece { Some(*letter) } else { None }).collect()
}

/// Returns true for patterns of hidden names that also match `.` or `..`, which only some shells leave out.
fn may_match_parent(name: &[GlobToken]) -> bool {
    literal_component(name).is_none()
        && (pattern_matches(name, ".") || pattern_matches(name, ".."))
        && name.first() == Some(&GlobToken::Char('.'))
}

fn is_parent(name: &[GlobToken]) -> bool {
    literal_component(name).as_deref() == Some("..")
}

/// Returns true if a name matches a pattern. On a mismatch, backtracking to the last `*` is sufficient.
fn pattern_matches(pattern: &[GlobToken], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut letter) = (0, 0);
    let mut again: Option<(usize, usize)> = None;
    while letter < name.len() {
        let fits_one = match (pattern.get(at), name.get(letter)) {
            (Some(GlobToken::Char(expected)), Some(found)) => expected == found,
            (Some(GlobToken::AnyChar), Some(_)) => true,
            (Some(GlobToken::Set { inside, negated }), Some(found)) => {
                inside.iter().any(|(first, last)| (first..=last).contains(&found)) != *negated
            }
            (Some(GlobToken::AnyText), _) => {
                again = Some((at + 1, letter));
                at += 1;
                continue;
            }
            (None, _) | (_, None) => false,
        };
        if fits_one {
            at += 1;
            letter += 1;
        } else if let Some((after, from)) = again {
            at = after;
            letter = from + 1;
            again = Some((after, from + 1));
        } else {
            return false;
        }
    }
    pattern.get(at..).is_some_and(|rest| rest.iter().all(|piece| *piece == GlobToken::AnyText))
}
