//! The words of a folded text, as the word index stores them.
//!
//! Scripts without spaces between words, and pictograms, are indexed as single letters and pairs of letters,
//! so that one or two letters are enough to find them.

/// The maximum length of an indexed word. The rest of a longer run is found by the trigram index.
const MAX_WORD_CHARS: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum LetterKind {
    Gap,
    Letter,
    Standalone,
}

/// Returns the words of a text for the index, separated by spaces.
pub(super) fn index_words(folded: &str) -> String {
    let mut words = String::with_capacity(folded.len());
    let mut add = |word: &str| {
        words.push_str(word);
        words.push(' ');
    };
    for run in runs(folded) {
        match run {
            TextRun::Word(word) => add(word),
            TextRun::Standalone(run) => {
                single_letters(run).for_each(&mut add);
                letter_pairs(run).for_each(&mut add);
            }
        }
    }
    words
}

/// Returns the index entries of every turn that contains `folded` between word boundaries.
pub(super) fn query_words(folded: &str) -> Vec<String> {
    let mut words = Vec::new();
    for run in runs(folded) {
        match run {
            TextRun::Word(word) => words.push(word.to_owned()),
            TextRun::Standalone(run) if letter_pairs(run).next().is_none() => words.push(run.to_owned()),
            TextRun::Standalone(run) => words.extend(letter_pairs(run).map(str::to_owned)),
        }
    }
    words
}

/// Returns true if the text contains signs or spaces, which the word index doesn't store.
pub(super) fn has_punctuation(folded: &str) -> bool {
    folded.chars().any(|letter| letter_kind(letter) == LetterKind::Gap)
}

/// Returns true if a letter continues the word before it.
pub(super) fn is_inside_word(letter: char) -> bool {
    letter_kind(letter) == LetterKind::Letter
}

enum TextRun<'text> {
    Word(&'text str),
    Standalone(&'text str),
}

fn runs(folded: &str) -> impl Iterator<Item = TextRun<'_>> {
    let mut rest = folded;
    std::iter::from_fn(move || {
        loop {
            let first = letter_kind(rest.chars().next()?);
            let end = rest.find(|letter| letter_kind(letter) != first).unwrap_or(rest.len());
            let (run, after) = rest.split_at_checked(end)?;
            rest = after;
            match first {
                LetterKind::Gap => {}
                LetterKind::Letter => return Some(TextRun::Word(truncate_word(run))),
                LetterKind::Standalone => return Some(TextRun::Standalone(run)),
            }
        }
    })
}

fn truncate_word(word: &str) -> &str {
    let end = word.char_indices().nth(MAX_WORD_CHARS).map_or(word.len(), |(end, _)| end);
    word.get(..end).unwrap_or(word)
}

fn single_letters(run: &str) -> impl Iterator<Item = &str> {
    run.char_indices().filter_map(|(start, letter)| run.get(start..start + letter.len_utf8()))
}

fn letter_pairs(run: &str) -> impl Iterator<Item = &str> {
    let second = run.char_indices().skip(1).map(|(start, letter)| start + letter.len_utf8());
    run.char_indices().zip(second).filter_map(|((start, _), end)| run.get(start..end))
}

fn letter_kind(letter: char) -> LetterKind {
    match letter {
        'a'..='z' | '0'..='9' => LetterKind::Letter,
        '\0'..='\x7f' => LetterKind::Gap,
        // Thai and Lao, Burmese, Khmer; arrows and signs; kana and ideographs; pictograms; more ideographs.
        '\u{e01}'..='\u{eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{2190}'..='\u{2bff}'
        | '\u{3041}'..='\u{30ff}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{1f000}'..='\u{1faff}'
        | '\u{20000}'..='\u{3ffff}' => LetterKind::Standalone,
        letter if letter.is_alphanumeric() => LetterKind::Letter,
        _ => LetterKind::Gap,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_words_and_ideographs_are_letters_and_pairs() {
        for (folded, indexed, queried) in [
            ("the foo-bar, 2nd.", "the foo bar 2nd ", "the foo bar 2nd"),
            ("東京都 ok", "東 京 都 東京 京都 ok ", "東京 京都 ok"),
            ("京", "京 ", "京"),
            ("yes🎉", "yes 🎉 ", "yes 🎉"),
            ("\"*()-", "", ""),
            ("", "", ""),
        ] {
            assert_eq!(index_words(folded), indexed);
            assert_eq!(query_words(folded).join(" "), queried);
        }
    }

    #[test]
    fn a_very_long_word_is_truncated() {
        assert_eq!(index_words(&"é".repeat(500)).chars().count(), MAX_WORD_CHARS + 1);
    }
}
