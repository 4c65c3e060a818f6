//! Other words for days, for suggestions.

use super::WEEKDAYS;

/// Full names of the weekdays, Monday first.
pub(in crate::read) const FULL_NAMES: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// German names of the weekdays, Monday first.
const GERMAN_NAMES: [[&str; 2]; 7] = [
    ["mo", "montag"],
    ["di", "dienstag"],
    ["mi", "mittwoch"],
    ["do", "donnerstag"],
    ["fr", "freitag"],
    ["sa", "samstag"],
    ["so", "sonntag"],
];

/// Words for groups of days.
const GROUP_WORDS: [(&[&str], &str); 3] = [
    (&["weekday", "workdays", "school days", "schooldays", "werktags", "wochentags"], "weekdays"),
    (&["weekend", "wochenende", "am wochenende"], "weekends"),
    (&["daily", "every day", "everyday", "any", "always", "täglich", "alle", "jeden tag"], "all"),
];

/// Returns the word for a day, or for a group of days, that another word in lower case means.
pub(super) fn single(word: &str) -> Option<&'static str> {
    let group = GROUP_WORDS.iter().find(|(words, _)| words.contains(&word)).map(|(_, group)| *group);
    group.or_else(|| WEEKDAYS.get(position(word)?).copied())
}

/// Returns the days that a text with several days in lower case means, such as `mon-fri` or `mon, wed`.
pub(super) fn several(text: &str) -> Option<Vec<&'static str>> {
    let mut days = Vec::new();
    for part in text.split([',', ';', '+', '&', '/']) {
        let part = part.trim();
        let range = ["-", "–", " to ", " bis "].iter().find_map(|between| part.split_once(between));
        match range {
            Some((first, last)) => {
                let (first, last) = (position(first.trim())?, position(last.trim())?);
                // A range such as `fri-mon` passes Sunday.
                let length = (last + WEEKDAYS.len() - first) % WEEKDAYS.len() + 1;
                days.extend(
                    (first..first + length).filter_map(|day| WEEKDAYS.get(day % WEEKDAYS.len()).copied()),
                );
            }
            None => {
                for word in part.split_whitespace().filter(|word| !matches!(*word, "and" | "und")) {
                    days.push(WEEKDAYS.get(position(word)?).copied()?);
                }
            }
        }
    }
    (days.len() > 1).then_some(days)
}

fn position(word: &str) -> Option<usize> {
    let word = word.trim_end_matches('.');
    let is_german = |names: &[&str; 2]| names.contains(&word) || word == "sonnabend" && names.contains(&"sa");
    WEEKDAYS
        .iter()
        .position(|day| *day == word)
        .or_else(|| FULL_NAMES.iter().position(|name| *name == word))
        .or_else(|| GERMAN_NAMES.iter().position(is_german))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_words_for_days_are_recognised() {
        for (word, meant) in
            [("monday", "mon"), ("mo.", "mon"), ("samstag", "sat"), ("sonnabend", "sat"), ("täglich", "all")]
        {
            assert_eq!(single(word), Some(meant), "{word}");
        }
        assert_eq!(single("someday"), None);
        for (text, meant) in [
            ("mon-wed", &["mon", "tue", "wed"][..]),
            ("fri - mon", &["fri", "sat", "sun", "mon"]),
            ("mo bis do, sa", &["mon", "tue", "wed", "thu", "sat"]),
            ("saturday and sunday", &["sat", "sun"]),
        ] {
            assert_eq!(several(text).as_deref(), Some(meant), "{text}");
        }
        for text in ["", "mon", "mon-someday", "-", "mon,"] {
            assert_eq!(several(text), None, "{text}");
        }
    }
}
