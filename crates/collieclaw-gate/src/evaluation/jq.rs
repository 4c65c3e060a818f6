//! Programs of `jq`, which can read other files.

/// Returns the effect of a `jq` program beyond transforming its input, as a verb phrase.
pub(super) fn find_side_effect(program: &str) -> Option<&'static str> {
    // If strings can't be told from code, the whole program counts as code.
    let code = strip_literals(program);
    let reads = match &code {
        // A key of an object may have these names, and reads nothing.
        Some(code) => {
            text_after_words(code, &["import", "include"]).any(|after| !is_key(after))
                || text_after_words(code, &["modulemeta"]).next().is_some()
        }
        None => text_after_words(program, &["import", "include", "modulemeta"]).next().is_some(),
    };
    reads.then_some("possibly read another file")
}

/// Returns true if the text after a word shows that the word is a key of an object, or the last word of an
/// expression.
fn is_key(after: &str) -> bool {
    let after = after.trim_start();
    after.is_empty() || after.starts_with([':', ',', '}', ']', ')', '|'])
}

/// Returns the text after each occurrence of these words.
fn text_after_words<'p>(program: &'p str, words: &'p [&str]) -> impl Iterator<Item = &'p str> {
    let is_in_name = |letter: char| letter == '_' || letter.is_alphanumeric();
    words.iter().flat_map(move |word| {
        program.match_indices(word).filter_map(move |(place, _)| {
            let before = program.get(..place)?.chars().next_back();
            let after = program.get(place + word.len()..)?;
            let alone = !before.is_some_and(|letter| is_in_name(letter) || matches!(letter, '.' | '$'))
                && !after.starts_with(is_in_name);
            alone.then_some(after)
        })
    })
}

/// Removes the contents of strings and comments; `None` if a string may contain code.
fn strip_literals(program: &str) -> Option<String> {
    let mut code = String::new();
    let mut letters = program.chars();
    while let Some(letter) = letters.next() {
        code.push(letter);
        match letter {
            '"' => loop {
                match letters.next()? {
                    '"' => break code.push('"'),
                    '\\' => _ = letters.next().filter(|escaped| *escaped != '(')?,
                    _ => {}
                }
            },
            // Some versions of `jq` continue a comment after a backslash at the end of a line.
            '#' => while letters.next().filter(|letter| *letter != '\\')? != '\n' {},
            _ => {}
        }
    }
    Some(code)
}
