//! Compares real output with the output on a page.
//!
//! Lines are compared word by word. `…` stands for one word or part of a word, and at the end of a line for the rest of
//! it; alone on a line it stands for any number of lines. A date or a time matches any other. A generated name such as
//! `run-0123` matches the real name in its place, there and in everything that follows.

use std::collections::BTreeMap;

/// The prefixes of generated names.
const KINDS: [&str; 4] = ["approval-", "conversation-", "receipt-", "run-"];

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
    pub(crate) fn first_mismatch(&mut self, shown: &[String], told: &[&str]) -> Option<String> {
        let mut told = told.iter().filter(|line| !line.trim().is_empty()).peekable();
        let mut shown = shown.iter().filter(|line| !line.trim().is_empty()).peekable();
        while let Some(line) = shown.next() {
            if line.trim() != "…" {
                let came = told.next();
                if !came.is_some_and(|came| self.matches_line(line, came)) {
                    return Some(format!("`{line}` is shown, and {came:?} came"));
                }
                continue;
            }
            match shown.peek() {
                None => return None,
                Some(next) => {
                    while told.peek().is_some_and(|came| !self.matches_line(next, came)) {
                        told.next();
                    }
                }
            }
        }
        told.next().map(|more| format!("`{more}` came, and is not shown"))
    }

    fn matches_line(&mut self, shown: &str, told: &str) -> bool {
        let (mut shown, mut told) = (shown.split_whitespace().peekable(), told.split_whitespace());
        while let Some(word) = shown.next() {
            let came = told.next().unwrap_or_default();
            match word.strip_suffix('…').filter(|_| shown.peek().is_none()) {
                Some(beginning) if came.starts_with(beginning) => return true,
                _ if !self.matches_word(word, came) => return false,
                _ => {}
            }
        }
        told.next().is_none()
    }

    fn matches_word(&mut self, shown: &str, told: &str) -> bool {
        if let Some((before, name, after)) = name_in(shown) {
            let came = told.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            let Some(came) = came.filter(|came| name_in(came).is_some_and(|(_, name, _)| name == *came))
            else {
                return false;
            };
            return self.0.entry(name.to_owned()).or_insert_with(|| came.to_owned()) == came;
        }
        if let Some((before, after)) = shown.split_once('…') {
            return told.strip_prefix(before).is_some_and(|rest| matches_end(after, rest));
        }
        shown == told || (is_timestamp(shown) && mask_digits(shown) == mask_digits(told))
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

/// Returns whether `told` ends with `shown`, in which `…` stands for any text.
fn matches_end(shown: &str, told: &str) -> bool {
    let Some((before, after)) = shown.split_once('…') else { return told.ends_with(shown) };
    told.find(before).is_some_and(|at| matches_end(after, &told[at + before.len()..]))
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
fn what_is_shown_is_what_came_but_for_what_changes_each_time() {
    let mut names = PlaceholderNames::default();
    let mut check = |shown: &str, told: &str| {
        let shown: Vec<String> = shown.lines().map(str::to_owned).collect();
        names.first_mismatch(&shown, &told.lines().collect::<Vec<_>>()).is_none()
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
