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
