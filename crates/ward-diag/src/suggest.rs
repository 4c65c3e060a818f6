//! "Did you mean": the nearest known name, or none when nothing is near.

/// The candidate that a name was probably meant to be. Case and `-` for `_` cost nothing; otherwise one slip
/// is forgiven for every three letters, so that short names never get a far-fetched suggestion.
#[must_use]
pub fn closest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let wanted = normalised(name);
    let length = wanted.chars().count();
    let allowed = length / 3;
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let known = normalised(candidate);
        // Also keeps a name of a megabyte away from an algorithm that is quadratic.
        if known.chars().count().abs_diff(length) > allowed {
            continue;
        }
        let distance = strsim::damerau_levenshtein(&wanted, &known);
        let nearer = best.is_none_or(|(least, _)| distance < least);
        if distance <= allowed && nearer {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

fn normalised(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}
