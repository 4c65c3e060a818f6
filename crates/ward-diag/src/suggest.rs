//! Suggestions for misspelt names ("did you mean …?").

/// Returns the candidate that a misspelt name was probably meant to be. Differences in case, and `-` in place
/// of `_`, don't count. Otherwise a name may have one typo per three letters, so that short names don't get
/// far-fetched suggestions.
#[must_use]
pub fn closest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let wanted = normalised(name);
    let length = wanted.chars().count();
    let allowed = length / 3;
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let known = normalised(candidate);
        // This also keeps very long names away from the quadratic edit distance.
        if known.chars().count().abs_diff(length) > allowed {
            continue;
        }
        let distance = strsim::damerau_levenshtein(&wanted, &known);
        let is_nearer = best.is_none_or(|(least, _)| distance < least);
        if distance <= allowed && is_nearer {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

fn normalised(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

/// Returns a date in the form of TOML, `2026-12-24`, if a text is a date in another common notation: `24.12.2026`,
/// `24.12.26`, `2026/12/24`, `24/12/2026` or `12/24/2026`. A date such as `05/06/2026` could mean two days.
#[must_use]
pub fn date_in_other_notation(text: &str) -> Option<String> {
    let separator = text.chars().find(|character| !character.is_ascii_digit())?;
    let parts: Vec<&str> = text.split(separator).map(str::trim).collect();
    let [first, second, third] = parts.as_slice() else { return None };
    let number = |part: &str| part.parse::<u16>().ok();
    let (year, day, month) = match separator {
        '.' | '/' if first.len() == 4 => (number(first)?, number(third)?, number(second)?),
        '.' if third.len() == 2 => (number(third)? + 2000, number(first)?, number(second)?),
        '.' | '/' | '-' if third.len() == 4 => {
            let (day, month) = (number(first)?, number(second)?);
            match separator {
                '.' => (number(third)?, day, month),
                _ if day > 12 || day == month => (number(third)?, day, month),
                _ if month > 12 => (number(third)?, month, day),
                _ => return None,
            }
        }
        _ => return None,
    };
    let is_date = (1..=31).contains(&day) && (1..=12).contains(&month);
    is_date.then(|| format!("{year:04}-{month:02}-{day:02}"))
}
