//! Whether what came is what a page shows.
//!
//! Lines are compared word by word. `…` stands for one word, a part of one, or at the end of a line for the rest of it;
//! alone on a line it stands for any lines. A date or a time stands for any. A name such as `run-0123` stands for the one
//! that comes in its place, there and in all that follows.

use std::collections::BTreeMap;

/// Kinds of names that are made anew each time.
const KINDS: [&str; 4] = ["approval-", "conversation-", "receipt-", "run-"];

/// Names as a page has them, and as they are now.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeMap<String, String>);

impl Names {
    /// A text of the page with the names as they are now.
    pub(crate) fn filled(&self, text: &str) -> String {
        // Longer ones first: one may be the beginning of another.
        self.0.iter().rev().fold(text.to_owned(), |text, (page, now)| text.replace(page, now))
    }

    /// What of the page did not come, if anything.
    pub(crate) fn missing(&mut self, shown: &[String], told: &[&str]) -> Option<String> {
        let mut told = told.iter().filter(|line| !line.trim().is_empty()).peekable();
        let mut shown = shown.iter().filter(|line| !line.trim().is_empty()).peekable();
        while let Some(line) = shown.next() {
            if line.trim() != "…" {
                let came = told.next();
                if !came.is_some_and(|came| self.is_line(line, came)) {
                    return Some(format!("`{line}` is shown, and {came:?} came"));
                }
                continue;
            }
            match shown.peek() {
                None => return None,
                Some(next) => {
                    while told.peek().is_some_and(|came| !self.is_line(next, came)) {
                        told.next();
                    }
                }
            }
        }
        told.next().map(|more| format!("`{more}` came, and is not shown"))
    }

    fn is_line(&mut self, shown: &str, told: &str) -> bool {
        let (mut shown, mut told) = (shown.split_whitespace().peekable(), told.split_whitespace());
        while let Some(word) = shown.next() {
            let came = told.next().unwrap_or_default();
            match word.strip_suffix('…').filter(|_| shown.peek().is_none()) {
                Some(beginning) if came.starts_with(beginning) => return true,
                _ if !self.is_word(word, came) => return false,
                _ => {}
            }
        }
        told.next().is_none()
    }

    fn is_word(&mut self, shown: &str, told: &str) -> bool {
        if let Some((before, name, after)) = name_in(shown) {
            let came = told.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            let Some(came) = came.filter(|came| name_in(came).is_some_and(|(_, name, _)| name == *came))
            else {
                return false;
            };
            return self.0.entry(name.to_owned()).or_insert_with(|| came.to_owned()) == came;
        }
        if let Some((before, after)) = shown.split_once('…') {
            return told.strip_prefix(before).is_some_and(|rest| ends_like(after, rest));
        }
        shown == told || (is_moment(shown) && shape(shown) == shape(told))
    }
}

/// A name that is made anew, with what stands around it.
fn name_in(word: &str) -> Option<(&str, &str, &str)> {
    KINDS.iter().find_map(|kind| {
        let start = word.find(kind)?;
        let digits = word[start + kind.len()..].chars().take_while(char::is_ascii_hexdigit).count();
        let end = start + kind.len() + digits;
        (digits >= 4).then(|| (&word[..start], &word[start..end], &word[end..]))
    })
}

/// Whether this comes after anything.
fn ends_like(shown: &str, told: &str) -> bool {
    let Some((before, after)) = shown.split_once('…') else { return told.ends_with(shown) };
    told.find(before).is_some_and(|at| ends_like(after, &told[at + before.len()..]))
}

/// `2026-11-16`, `18:47:30`.
fn is_moment(word: &str) -> bool {
    let separators = word.matches(['-', ':']).count();
    separators >= 2 && shape(word).chars().all(|letter| "0-:.TZ".contains(letter))
}

fn shape(word: &str) -> String {
    word.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect()
}

#[test]
fn what_is_shown_is_what_came_but_for_what_changes_each_time() {
    let mut names = Names::default();
    let mut check = |shown: &str, told: &str| {
        let shown: Vec<String> = shown.lines().map(str::to_owned).collect();
        names.missing(&shown, &told.lines().collect::<Vec<_>>()).is_none()
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
    assert_eq!(names.filled("show run-0123"), "show run-89abcdef");
}
