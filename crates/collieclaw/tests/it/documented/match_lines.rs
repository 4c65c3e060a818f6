//! Compares real output with the output on a page.
//!
//! Lines are compared word by word. `…` stands for one word or part of a word, and at the end of a line for the rest of
//! it; alone on a line it stands for any number of lines. A date or a time matches any other. A generated name such as
//! `run-0123` matches the real name in its place, there and in everything that follows.

use std::collections::BTreeMap;

/// The prefixes of generated names.
const KINDS: [&str; 5] = ["approval-", "conversation-", "receipt-", "run-", "trash-"];

/// The generated names of a page, mapped to the real names.
#[derive(Debug, Default)]
pub(crate) struct PlaceholderNames(BTreeMap<String, String>);

impl PlaceholderNames {
    /// Replaces the names in a text of the page with the real names.
    pub(crate) fn substitute(&self, text: &str) -> String {
        // Longer names come first, because a name may be the prefix of another.
        self.0.iter().rev().fold(text.to_owned(), |text, (page, now)| text.replace(page, now))
    }

    /// Returns the first line of the page that is missing in the output, if any.
    pub(crate) fn first_mismatch(&mut self, shown: &[String], actual: &[&str]) -> Option<String> {
        let mut actual = actual.iter().filter(|line| !line.trim().is_empty()).peekable();
        let mut shown = shown.iter().filter(|line| !line.trim().is_empty()).peekable();
        while let Some(line) = shown.next() {
            if line.trim() != "…" {
                let found = actual.next();
                if !found.is_some_and(|found| self.matches_line(line, found)) {
                    return Some(format!("the page shows `{line}`, but the program printed {found:?}"));
                }
                continue;
            }
            match shown.peek() {
                None => return None,
                Some(next) => {
                    while actual.peek().is_some_and(|found| !self.matches_line(next, found)) {
                        actual.next();
                    }
                }
            }
        }
        actual.next().map(|more| format!("the program printed `{more}`, which the page does not show"))
    }

    fn matches_line(&mut self, shown: &str, actual: &str) -> bool {
        let (mut shown, mut actual) = (shown.split_whitespace().peekable(), actual.split_whitespace());
        while let Some(word) = shown.next() {
            let found = actual.next().unwrap_or_default();
            match word.strip_suffix('…').filter(|_| shown.peek().is_none()) {
                Some(beginning) if found.starts_with(beginning) => return true,
                _ if !self.matches_word(word, found) => return false,
                _ => {}
            }
        }
        actual.next().is_none()
    }

    fn matches_word(&mut self, shown: &str, actual: &str) -> bool {
        if let Some((before, name, after)) = name_in(shown) {
            let found = actual.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            let Some(found) = found.filter(|found| name_in(found).is_some_and(|(_, name, _)| name == *found))
            else {
                return false;
            };
            return self.0.entry(name.to_owned()).or_insert_with(|| found.to_owned()) == found;
        }
        if let Some((before, after)) = shown.split_once('…') {
            return actual.strip_prefix(before).is_some_and(|rest| matches_end(after, rest));
        }
        shown == actual || (is_timestamp(shown) && mask_digits(shown) == mask_digits(actual))
    }
}

/// Finds a generated name, with the text around it.
fn name_in(word: &str) -> Option<(&str, &str, &str)> {
    KINDS.iter().find_map(|kind| {
        let start = word.find(kind)?;
        let digits = word[start + kind.len()..].chars().take_while(char::is_ascii_hexdigit).count();
        let end = start + kind.len() + digits;
        (digits >= 4).then(|| (&word[..start], &word[start..end], &word[end..]))
    })
}

/// Returns whether `actual` ends with `shown`, in which `…` stands for any text.
fn matches_end(shown: &str, actual: &str) -> bool {
    let Some((before, after)) = shown.split_once('…') else { return actual.ends_with(shown) };
    actual.find(before).is_some_and(|at| matches_end(after, &actual[at + before.len()..]))
}

/// Returns whether a word is a date or a time, such as `2026-11-16` or `18:47:30`.
fn is_timestamp(word: &str) -> bool {
    let separators = word.matches(['-', ':']).count();
    separators >= 2 && mask_digits(word).chars().all(|letter| "0-:.TZ".contains(letter))
}

fn mask_digits(word: &str) -> String {
    word.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect()
}

#[test]
fn output_matches_except_for_text_that_changes_each_time() {
    let mut names = PlaceholderNames::default();
    let mut check = |shown: &str, actual: &str| {
        let shown: Vec<String> = shown.lines().map(str::to_owned).collect();
        names.first_mismatch(&shown, &actual.lines().collect::<Vec<_>>()).is_none()
    };
    assert!(check("run-0123: stopped at …", "run-89abcdef: stopped at the step x"));
    assert!(check("yes with run-0123", "yes  with run-89abcdef"));
    assert!(!check("yes with run-0123", "yes with run-00000000"));
    assert!(check("at 2026-11-16 18:47:30", "at 2027-01-02 03:04:05") && !check("1", "2"));
    assert!(check("a\n…\nd", "a\nb\nc\nd") && check("a\n…", "a\nb") && !check("a\n…\nd", "a\nb\ne"));
    assert!(!check("a", "a\nb"), "what is not shown must not come");
    assert!(
        !check("a\nb", "a")
            && check("x, … ms", "x, 12 ms")
            && check("{a:…", "{a: 1, b}")
            && check("http://…/", "http://h:1/")
    );
    assert!(check("a:…,b:…}", "a:1,b:2}") && !check("a:…,b:…}", "a:1,c:2}"));
    assert_eq!(names.substitute("show run-0123"), "show run-89abcdef");
}
