//! Programs of `jq`, which can read other files.

/// What a program of `jq` does beyond printing what it is given, if anything.
pub(super) fn does(program: &str) -> Option<&'static str> {
    let reads = ["import", "include", "modulemeta"].iter().any(|word| {
        program.match_indices(word).any(|(place, _)| {
            let before = program.get(..place).and_then(|before| before.chars().next_back());
            let after = program.get(place + word.len()..).and_then(|after| after.chars().next());
            let is_in_name = |letter: char| letter == '_' || letter.is_alphanumeric();
            !before.is_some_and(|letter| is_in_name(letter) || matches!(letter, '.' | '$'))
                && !after.is_some_and(is_in_name)
        })
    });
    reads.then_some("read another file, perhaps")
}
